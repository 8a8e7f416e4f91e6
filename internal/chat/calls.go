package chat

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// Calls is how a protocol spells calls of certain tools.
type Calls struct {
	names   []string
	prefix  string // before the name
	counted bool   // a colon and the number of the call follow the name
	inBody  bool   // the body names the tool once more
}

// NewCalls returns the spelling of calls of the named tools; ok is false if the vocabulary has no protocol for calls.
func NewCalls(v *token.Vocab, names []string) (c *Calls, ok bool) {
	if _, ok := newProtocol(v); ok {
		return &Calls{names: names, inBody: true}, true
	}
	if p, ok := newKimi(v); ok && p.hasCalls() {
		return &Calls{names: names, prefix: "functions.", counted: true}, true
	}
	return nil, false
}

// CallOpeners are the ids without which no call begins; none if the vocabulary has no protocol for calls.
func CallOpeners(v *token.Vocab) []int32 {
	if p, ok := newProtocol(v); ok {
		return ids(p.toolJSON, p.toolText)
	}
	if p, ok := newKimi(v); ok {
		return ids(p.sectionBegin, p.callBegin)
	}
	return nil
}

// maxCallDigits bounds the number of a call.
const maxCallDigits = 4

// Name reports whether text is the beginning of what names a call, and whether it is all of it.
func (c *Calls) Name(text []byte) (begins, whole bool) {
	for _, name := range c.names {
		want := c.prefix + name
		if c.counted {
			want += ":"
		}
		if strings.HasPrefix(want, string(text)) {
			begins = true
			whole = whole || !c.counted && len(text) == len(want)
			continue
		}
		number, ok := strings.CutPrefix(string(text), want)
		if ok && c.counted && len(number) <= maxCallDigits && strings.Trim(number, "0123456789") == "" {
			return true, number != ""
		}
	}
	return begins, whole
}

// Schema is the JSON schema of the body of a call that is named by text: an object, in which Inkling's arguments are one of two
// members.
func (c *Calls) Schema(text []byte) []byte {
	if !c.inBody {
		return []byte(`{"type":"object"}`)
	}
	return append(appendString([]byte(`{"type":"object","properties":{"name":{"const":`), string(text)),
		`},"args":{"type":"object"}},"required":["name","args"],"additionalProperties":false}`...)
}

// ToolNames returns the names of declared tools.
func ToolNames(tools []Tool) ([]string, error) {
	names := make([]string, len(tools))
	for i, t := range tools {
		v, err := decodeJSON(t)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		o, ok := v.(*object)
		if !ok {
			return nil, fmt.Errorf("tool %d is %s, want an object", i, jsonType(v))
		}
		if f, ok := o.get("function").(*object); ok {
			o = f
		}
		if names[i], err = stringField(o, "name"); err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		if names[i] == "" {
			return nil, fmt.Errorf("tool %d has no name", i)
		}
	}
	return names, nil
}
