package inspectcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/token"
)

// vocabulary is what the tokens of a model are, read without its weights.
type vocabulary struct {
	*token.Vocab
	template string // chat template; may be empty
}

// openVocabulary reads the tokenizer of a GGUF file, of a checkpoint's folder or of
// a model of the store, whose chat template comes before that of its file.
func openVocabulary(name string) (*vocabulary, error) {
	found, err := locate.LookUp(name)
	if err != nil {
		return nil, err
	}
	path := found.Path
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if st.IsDir() {
		return folderVocabulary(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v := new(vocabulary)
	if v.Vocab, err = token.FromGGUF(f); err != nil {
		var broken *token.FormatError
		var foreign *token.UnsupportedError
		if errors.As(err, &broken) || errors.As(err, &foreign) { // these know the key, not the file
			err = fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	if found.Stored != nil && found.Stored.Template != "" {
		v.template = found.Stored.Template
		return v, nil
	}
	v.template, err = f.StrOr("tokenizer.chat_template", "")
	return v, err
}

// folderVocabulary reads tokenizer.json or tiktoken.model of a checkpoint.
func folderVocabulary(dir string) (*vocabulary, error) {
	for _, kind := range []struct {
		file string
		load func(string) (*token.Vocab, error)
	}{{"tiktoken.model", token.LoadTiktoken}, {"tokenizer.json", token.LoadTokenizerJSON}} {
		path := filepath.Join(dir, kind.file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		v, err := kind.load(path)
		if err != nil {
			return nil, err
		}
		template, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return &vocabulary{v, string(template)}, nil
	}
	return nil, fmt.Errorf("%s: no tokenizer is in this folder (tokenizer.json, tiktoken.model)", dir)
}

// renderer makes prompts in the model's way.
func (v *vocabulary) renderer(path string) (chat.Renderer, string, error) {
	r, kind, err := chat.NewRenderer(v.Vocab, v.template)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return r, kind, nil
}

// piece is one token as tokenize and template show it.
type piece struct {
	ID      int32  `json:"id"`
	Piece   string `json:"piece"`           // as text; bytes that are no text are U+FFFD
	Bytes   []byte `json:"bytes,omitempty"` // where the piece is not valid UTF-8, base64
	Special bool   `json:"special,omitempty"`
}

// pieces spells ids.
func (v *vocabulary) pieces(ids []int32) []piece {
	out := make([]piece, 0, len(ids))
	for _, id := range ids {
		raw, _ := v.Token(id)
		p := piece{ID: id, Special: v.Type(id) != token.Normal}
		p.Piece = validText(raw)
		if p.Piece != string(raw) {
			p.Bytes = raw
		}
		out = append(out, p)
	}
	return out
}
