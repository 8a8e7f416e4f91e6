package server

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// fieldNames lists the json tags of a struct, embedded structs included.
func fieldNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fieldNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// section is the part of a page below a heading, up to the next one of its level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("docs/api.md has no section %s", heading)
	}
	text, _, _ := strings.Cut(rest, "\n### ")
	return text
}

// TestFieldsDocumented: docs/api.md names each field that requests are read for.
func TestFieldsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, v := range map[string][]reflect.Type{
		"POST /v1/chat/completions": {reflect.TypeFor[chatRequest](), reflect.TypeFor[chatMessage]()},
		"POST /v1/completions":      {reflect.TypeFor[completionsRequest]()},
		"POST /v1/embeddings":       {reflect.TypeFor[embeddingsRequest]()},
		"POST /v1/responses":        {reflect.TypeFor[responsesRequest]()},
		"POST /api/chat":            {reflect.TypeFor[ollamaChatRequest](), reflect.TypeFor[ollamaMessage](), reflect.TypeFor[ollamaOptions]()},
		"POST /api/generate":        {reflect.TypeFor[ollamaGenerateRequest]()},
		"POST /v1/messages":         {reflect.TypeFor[anthropicRequest]()},
	} {
		text := section(t, string(data), heading)
		for _, typ := range v {
			for _, name := range fieldNames(typ) {
				if !strings.Contains(text, "`"+name+"`") {
					t.Errorf("%s: %s is not documented", heading, name)
				}
			}
		}
	}
}
