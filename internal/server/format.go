package server

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/inkling-go/inkling/internal/grammar"
)

// format is the form that an answer must have.
type format struct {
	Kind   formatKind
	Schema json.RawMessage // of formatSchema
	Text   string          // of formatRegex and formatGBNF
	Param  string          // field of the request, for errors
}

// formatKind is the kind of a format.
type formatKind int

// Kinds of formats.
const (
	formatFree   formatKind = iota // text
	formatJSON                     // a JSON object
	formatSchema                   // JSON that a schema allows
	formatRegex                    // a regular expression
	formatGBNF                     // a grammar in llama.cpp's notation
)

// compile makes the grammar; nil means any text.
func (f *format) compile() (*grammar.Grammar, error) {
	switch f.Kind {
	case formatJSON:
		return grammar.JSON(), nil
	case formatSchema:
		return grammar.FromJSONSchema(f.Schema)
	case formatRegex:
		return grammar.FromRegex(f.Text)
	case formatGBNF:
		return grammar.FromGBNF(f.Text)
	}
	return nil, nil
}

// empty is an error for a form that says nothing, which is a mistake: an empty
// expression allows the empty answer alone, an empty schema any JSON.
func (f *format) empty() error {
	var members map[string]json.RawMessage
	switch {
	case (f.Kind == formatGBNF || f.Kind == formatRegex) && strings.TrimSpace(f.Text) == "":
		return invalid(f.Param, "is empty")
	case f.Kind == formatSchema && json.Unmarshal(f.Schema, &members) == nil && len(members) == 0:
		return invalid(f.Param, "is empty: any JSON would do; json_object alone asks for any JSON object")
	}
	return nil
}

// maxFormat bounds the text of a grammar, in bytes.
const maxFormat = 256 << 10

// keptFormats is how many grammars are kept for requests to come.
const keptFormats = 32

// formats keeps compiled grammars, which remember what they have found out about
// a vocabulary.
type formats struct {
	mu   sync.Mutex
	kept []keptFormat // the one used last at the end
}

type keptFormat struct {
	kind    formatKind
	text    string
	grammar *grammar.Grammar
}

// grammar compiles a format, or finds it.
func (c *formats) grammar(f *format) (*grammar.Grammar, error) {
	if f.Kind == formatFree {
		return nil, nil
	}
	text := f.Text + string(f.Schema)
	if len(text) > maxFormat {
		return nil, invalid(f.Param, "has %d bytes, at most %d are allowed", len(text), maxFormat)
	}
	if err := f.empty(); err != nil {
		return nil, err
	}
	if g := c.find(f.Kind, text); g != nil {
		return g, nil
	}
	g, err := f.compile()
	if err != nil {
		return nil, invalid(f.Param, "%w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == keptFormats {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, keptFormat{f.Kind, text, g})
	return g, nil
}

func (c *formats) find(kind formatKind, text string) *grammar.Grammar {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k keptFormat) bool { return k.kind == kind && k.text == text })
	if i < 0 {
		return nil
	}
	k := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), k)
	return k.grammar
}
