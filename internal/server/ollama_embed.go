package server

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// ollamaEmbed is POST /api/embed.
func (s *Server) ollamaEmbed(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Model      string         `json:"model"`
		Input      textsField     `json:"input"`
		KeepAlive  keepAliveField `json:"keep_alive"`
		Dimensions int            `json:"dimensions"`
	}
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if len(req.Input) == 1 && req.Input[0] == "" {
		req.Input = nil // which only loads the model
	}
	e, err := s.ollamaVectors(r.Context(), req.Model, req.Input, req.KeepAlive.d, req.Dimensions)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e)
	return nil
}

// ollamaEmbeddings is POST /api/embeddings, the older form for one text.
func (s *Server) ollamaEmbeddings(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Model     string         `json:"model"`
		Prompt    string         `json:"prompt"`
		KeepAlive keepAliveField `json:"keep_alive"`
	}
	if err := readJSON(r, &req); err != nil {
		return err
	}
	var texts textsField
	if req.Prompt != "" {
		texts = textsField{req.Prompt}
	}
	e, err := s.ollamaVectors(r.Context(), req.Model, texts, req.KeepAlive.d, 0)
	if err != nil {
		return err
	}
	vector := []float32{}
	if len(e.Embeddings) > 0 {
		vector = e.Embeddings[0]
	}
	writeJSON(w, http.StatusOK, map[string][]float32{"embedding": vector})
	return nil
}

// ollamaVector is the answer of /api/embed.
type ollamaVector struct {
	Model      string      `json:"model"`
	Embeddings [][]float32 `json:"embeddings"`

	TotalDuration   time.Duration `json:"total_duration,omitempty"`
	LoadDuration    time.Duration `json:"load_duration,omitempty"`
	PromptEvalCount int           `json:"prompt_eval_count,omitempty"`
}

// ollamaVectors computes the vectors of texts; without any it loads the model.
func (s *Server) ollamaVectors(ctx context.Context, model string, texts textsField, keep *time.Duration, dimensions int) (*ollamaVector, error) {
	begin := time.Now()
	if len(texts) > maxEmbedTexts {
		return nil, invalid("input", "has %d texts, at most %d are allowed", len(texts), maxEmbedTexts)
	}
	if err := texts.checkEach(); err != nil {
		return nil, err
	}
	l, err := s.acquire(ctx, model)
	if err != nil {
		return nil, err
	}
	defer s.pool.release(l, keep)
	e := &ollamaVector{Model: cmp.Or(model, l.Name), Embeddings: [][]float32{}, LoadDuration: time.Since(begin)}
	if dimensions != 0 {
		if err := l.checkDimensions(dimensions); err != nil {
			return nil, err
		}
	}
	if len(texts) > 0 {
		if e.Embeddings, e.PromptEvalCount, err = l.eng.Embed(ctx, texts); err != nil {
			return nil, err
		}
	}
	e.TotalDuration = time.Since(begin)
	return e, nil
}
