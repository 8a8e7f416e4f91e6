package grammar

import (
	"errors"
	"strings"
	"testing"
)

// TestWithin: a schema that stands within another keeps its own references, and is
// held to what the other says of its place.
func TestWithin(t *testing.T) {
	const frame = `{"type":"object","properties":{"name":{"const":"f"},"args":{"type":"object"}},"required":["name","args"],"additionalProperties":false}`
	for _, tt := range []struct {
		name, frame, key, schema string
		yes, no                  []string
	}{
		{
			"a member", frame, "args", `{"properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`,
			[]string{`{"name":"f","args":{"n":1}}`, `{"name": "f", "args": {"n": 27}}`},
			[]string{`{"name":"f","args":{}}`, `{"name":"g","args":{"n":1}}`, `{"name":"f","args":{"n":0}}`, `{"n":1}`, `{"name":"f","args":[]}`},
		},
		{
			"references", frame, "args", `{"$defs":{"n":{"enum":[1,2]}},"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#"}},"additionalProperties":false}`,
			[]string{`{"name":"f","args":{"a":1,"b":{"b":{"a":2}}}}`, `{"name":"f","args":{}}`},
			[]string{`{"name":"f","args":{"a":3}}`, `{"name":"f","args":{"b":{"name":"f"}}}`},
		},
		{"says nothing", frame, "args", `true`, []string{`{"name":"f","args":{"x":[]}}`}, []string{`{"name":"f","args":1}`}},
		{"more types", frame, "args", `{"type":["object","null"]}`, []string{`{"name":"f","args":{}}`}, []string{`{"name":"f","args":null}`}},
		{"the whole", `{"type":"object"}`, "", `{"properties":{"n":{"const":1}},"$id":"x"}`, []string{`{"n":1}`, `{}`}, []string{`{"n":2}`, `1`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := FromJSONSchemaWithin([]byte(tt.frame), tt.key, []byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			checkTexts(t, g, tt.yes, tt.no)
		})
	}
}

// TestWithinErrors: places are those in the schema.
func TestWithinErrors(t *testing.T) {
	frame := []byte(`{"type":"object","properties":{"args":{"type":"object"}},"required":["args"]}`)
	for schema, want := range map[string]string{
		`{"properties":{"n":{"type":"thing"}}}`: `at #/properties/n/type: "thing" is no type`,
		`{"properties":{"n":{"not":{}}}}`:       `"not" is not supported at #/properties/n`,
		`{"type":"string"}`:                     "no text can satisfy it",
		`{`:                                     "malformed schema",
		`"x"`:                                   "is a string, not a schema",
		``:                                      "malformed schema",
	} {
		for _, key := range []string{"", "args"} {
			if _, err := FromJSONSchemaWithin(frame, key, []byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s in %q: error %v, want %q", schema, key, err, want)
			}
		}
	}
	if _, err := FromJSONSchemaWithin(frame, "args", []byte(strings.Repeat(" ", maxSchemaBytes+1))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v of a large schema", err)
	}
	if _, err := FromJSONSchemaWithin(frame, "other", []byte(`{}`)); err == nil {
		t.Error("no error of a member that the frame does not declare")
	}
}
