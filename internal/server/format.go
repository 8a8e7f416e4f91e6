package server

import (
	"encoding/json"

	"github.com/inkling-go/inkling/internal/engine"
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
	formatRegex
	formatGBNF
)

func (f *format) apply(_ *engine.Request) error {
	if f.Kind == formatFree {
		return nil
	}
	return unsupported(f.Param, "is not built yet")
}
