package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
)

// embeddingsRequest is the body of /v1/embeddings.
type embeddingsRequest struct {
	Model          string     `json:"model"`
	Input          textsField `json:"input"`
	EncodingFormat string     `json:"encoding_format"`
	Dimensions     *int       `json:"dimensions"`
}

// textsField is a string or a list of strings.
type textsField []string

func (t *textsField) decode(d *decoder, tok json.Token, path string) error {
	if s, ok := tok.(string); ok {
		*t = textsField{s}
		return nil
	}
	return d.array(tok, path, func(path string, tok json.Token) error {
		s, ok := tok.(string)
		if !ok {
			return invalid(path, "is %s, want a string: the ids of another tokenizer mean nothing here", typeName(tok))
		}
		*t = append(*t, s)
		return nil
	})
}

// maxEmbedTexts is OpenAI's limit of a request.
const maxEmbedTexts = 2048

type embeddingJSON struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or base64 of them in little endian
}

// embeddings is POST /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var req embeddingsRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	l, err := s.acquire(r.Context(), req.Model)
	if err != nil {
		return err
	}
	defer s.pool.release(l, nil)
	if req.Dimensions != nil {
		if err := l.checkDimensions(*req.Dimensions); err != nil {
			return err
		}
	}
	vectors, tokens, err := l.eng.Embed(r.Context(), req.Input)
	if err != nil {
		return err
	}
	resp := struct {
		Object string          `json:"object"`
		Data   []embeddingJSON `json:"data"`
		Model  string          `json:"model"`
		Usage  struct {
			PromptTokens int `json:"prompt_tokens"`
			TotalTokens  int `json:"total_tokens"`
		} `json:"usage"`
	}{Object: "list", Model: req.Model}
	for i, v := range vectors {
		e := embeddingJSON{Object: "embedding", Index: i, Embedding: v}
		if req.EncodingFormat == "base64" {
			e.Embedding = base64Floats(v)
		}
		resp.Data = append(resp.Data, e)
	}
	resp.Usage.PromptTokens, resp.Usage.TotalTokens = tokens, tokens
	writeJSON(w, http.StatusOK, resp)
	return nil
}

func (r *embeddingsRequest) check() error {
	switch r.EncodingFormat {
	case "", "float", "base64":
	default:
		return invalid("encoding_format", "%q is not known, want float or base64", r.EncodingFormat)
	}
	if len(r.Input) == 0 || len(r.Input) > maxEmbedTexts {
		return invalid("input", "has %d texts, want 1 to %d", len(r.Input), maxEmbedTexts)
	}
	return r.Input.checkEach()
}

// checkEach refuses texts without a token.
func (t textsField) checkEach() error {
	for i, text := range t {
		if text == "" {
			return invalid(fmt.Sprintf("input[%d]", i), "is empty")
		}
	}
	return nil
}

// checkDimensions refuses another length of vectors than the model has.
func (l *loaded) checkDimensions(want int) error {
	if n := l.eng.Config().Embd; want != n {
		return unsupported("dimensions", "is %d, but the vectors of %s have %d, and the model was not trained to have them cut", want, l.Name, n)
	}
	return nil
}

func base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
