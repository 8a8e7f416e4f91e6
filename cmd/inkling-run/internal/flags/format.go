package flags

import (
	"fmt"
	"path/filepath"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/internal/grammar"
)

// maxFormat bounds a schema or a grammar, in bytes.
const maxFormat = 256 << 10

// ReadFormat reads what --format says: json for any JSON object, or a file with a
// JSON schema, or a grammar in llama.cpp's notation if its name ends in .gbnf.
func ReadFormat(value string) (*grammar.Grammar, error) {
	if value == "json" {
		return grammar.JSON(), nil
	}
	name, data, err := files.Read(value, nil)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFormat {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are allowed", name, len(data), maxFormat)
	}
	var g *grammar.Grammar
	if filepath.Ext(name) == ".gbnf" {
		g, err = grammar.FromGBNF(string(data))
	} else {
		g, err = grammar.FromJSONSchema(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}
