package runcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/inkling-go/inkling/internal/grammar"
)

// responseFormat reads OpenAI's response_format, or a schema as Ollama's format.
func responseFormat(data json.RawMessage) (*grammar.Grammar, error) {
	var f struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
		Schema json.RawMessage `json:"schema"` // where llama.cpp takes it too
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("want an object with a type")
	}
	schema := f.JSONSchema.Schema
	if schema == nil {
		schema = f.Schema
	}
	switch {
	case f.Type == "text":
		return nil, nil
	case f.Type == "json_object" && schema == nil:
		return grammar.JSON(), nil
	case f.Type == "json_object", f.Type == "json_schema" && schema != nil:
		return grammar.FromJSONSchema(bytes.TrimSpace(schema))
	case f.Type == "json_schema":
		return nil, fmt.Errorf("json_schema without a schema")
	}
	return nil, fmt.Errorf("type %q, want text, json_object or json_schema", cmp.Or(f.Type, "(none)"))
}
