package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// comment writes lines of comment. Empty lines stay empty.
func comment(text, indent string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = indent + "// " + l
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// constraints are the members of a schema that are told as comments, by its type.
var constraints = map[string][]string{
	"string": {"maxLength", "minLength", "pattern"}, "number": {"maximum", "minimum"}, "integer": {"maximum", "minimum"},
	"array": {"maxItems", "minItems"},
}

// docs writes the description and the constraints of a schema.
func docs(schema any, indent string) (string, error) {
	o, ok := schema.(*object)
	if !ok {
		return "", nil
	}
	description, err := stringField(o, "description")
	if err != nil {
		return "", err
	}
	var text string
	if description != "" {
		text = comment(description, indent)
	}
	kind, _ := o.get("type").(string)
	if o.has("$ref") || o.has("anyOf") || o.has("enum") {
		kind = "" // the type counts for nothing then
	}
	var told []string
	for _, key := range constraints[kind] {
		if !o.has(key) {
			continue
		}
		v, ok := o.get(key).(string)
		if !ok {
			if v, err = pythonText(o.get(key)); err != nil {
				return "", err
			}
		}
		told = append(told, key+": "+v)
	}
	if told != nil {
		text += indent + "// " + strings.Join(told, ", ") + "\n"
	}
	return text, nil
}

// pythonText writes a scalar as Python prints it.
func pythonText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case json.Number:
		b, err := appendNumber(nil, v)
		return string(b), err
	}
	return "", fmt.Errorf("value is %s, want a scalar", jsonType(v))
}

// defaultText writes the default of a member: numbers and truth values as Python prints them, the rest as JSON with spaces after its
// separators and sorted keys.
func defaultText(v any) (string, error) {
	switch v.(type) {
	case bool, json.Number:
		return pythonText(v)
	}
	b, err := appendSpaced(nil, v)
	return string(b), err
}

// appendSpaced is appendCanonical with a space after commas and colons.
func appendSpaced(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			if b, err = appendSpaced(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *object:
		b = append(b, '{')
		for i, key := range slices.Sorted(slices.Values(v.keys)) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendString(b, key), ": "...)
			if b, err = appendSpaced(b, v.values[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return appendCanonical(b, v)
}
