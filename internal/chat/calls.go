package chat

import (
	"encoding/json"
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

// Body is the JSON schema of the body of a call of a tool, an object, and the member of it that the arguments are; with an empty member
// they are all of it.
func (c *Calls) Body(name string) (schema []byte, arguments string) {
	if !c.inBody {
		return []byte(`{"type":"object"}`), ""
	}
	return append(appendString([]byte(`{"type":"object","properties":{"name":{"const":`), name),
		`},"args":{"type":"object"}},"required":["name","args"],"additionalProperties":false}`...), "args"
}

// Tool is the place among the names of the one that text names, -1 for none.
func (c *Calls) Tool(text []byte) int {
	for i, name := range c.names {
		if _, whole := (&Calls{names: []string{name}, prefix: c.prefix, counted: c.counted}).Name(text); whole {
			return i
		}
	}
	return -1
}

// Function is what a tool declares.
type Function struct {
	Name       string
	Parameters json.RawMessage // the schema of its arguments; nil if it says nothing about them
}

// Functions reads the declarations of tools.
func Functions(tools []Tool) ([]Function, error) {
	all := make([]Function, len(tools))
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
		if all[i].Name, err = stringField(o, "name"); err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		if all[i].Name == "" {
			return nil, fmt.Errorf("tool %d has no name", i)
		}
		if p := o.get("parameters"); p != nil {
			all[i].Parameters = encodeOrdered(nil, p)
		}
	}
	return all, nil
}

// ToolNames returns the names of declared tools.
func ToolNames(tools []Tool) ([]string, error) {
	all, err := Functions(tools)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	return names, nil
}
