package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on the text of a schema.
const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 128
)

// jsonNode is a value of the schema's text. Unlike a map it keeps the order of
// keys, which is the order of an object's properties in the answer.
type jsonNode struct {
	id     int // number in the order of the text
	parent *jsonNode
	key    string // in the parent

	kind   jsonKind
	keys   []string // of an object
	values []*jsonNode
	text   string // a string, or a number as it was spelled
	truth  bool
}

type jsonKind string

const (
	jsonObject jsonKind = "an object"
	jsonArray  jsonKind = "an array"
	jsonString jsonKind = "a string"
	jsonNumber jsonKind = "a number"
	jsonBool   jsonKind = "a boolean"
	jsonNull   jsonKind = "null"
)

// path is the JSON pointer of the node, "#" for the whole schema.
func (n *jsonNode) path() string {
	if n.parent == nil {
		return "#"
	}
	return n.parent.path() + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n.key)
}

// get returns a member of an object or an item of an array, nil without one.
func (n *jsonNode) get(key string) *jsonNode {
	if n.kind == jsonObject {
		if i := slices.Index(n.keys, key); i >= 0 {
			return n.values[i]
		}
	}
	if n.kind == jsonArray {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.values) {
			return n.values[i]
		}
	}
	return nil
}

// parseSchemaText reads the JSON of a schema.
func parseSchemaText(text []byte) (*jsonNode, error) { return new(schemaReader).read(text) }

// schemaReader reads a schema. Its nodes have ids from count on.
type schemaReader struct {
	dec   *json.Decoder
	count int
}

func (r *schemaReader) read(text []byte) (*jsonNode, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("grammar: a schema of %d bytes, at most %d are allowed: %w", len(text), maxSchemaBytes, ErrTooLarge)
	}
	if !utf8.Valid(text) {
		return nil, &SyntaxError{Input: "schema", Reason: "not valid UTF-8"}
	}
	r.dec = json.NewDecoder(bytes.NewReader(text))
	r.dec.UseNumber()
	root, err := r.value(nil, "", 0)
	if err != nil {
		return nil, err
	}
	if r.dec.More() {
		return nil, r.bad("something follows the schema")
	}
	return root, nil
}

func (r *schemaReader) bad(reason string) error {
	return &SyntaxError{Input: "schema", Where: fmt.Sprintf("byte %d", r.dec.InputOffset()), Reason: reason}
}

func (r *schemaReader) value(parent *jsonNode, key string, depth int) (*jsonNode, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("grammar: a schema nested more than %d deep: %w", maxSchemaDepth, ErrTooLarge)
	}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, r.bad(err.Error())
	}
	n := &jsonNode{id: r.count, parent: parent, key: key}
	r.count++
	switch tok := tok.(type) {
	case string:
		n.kind, n.text = jsonString, tok
	case json.Number:
		n.kind, n.text = jsonNumber, tok.String()
	case bool:
		n.kind, n.truth = jsonBool, tok
	case nil:
		n.kind = jsonNull
	case json.Delim:
		n.kind = jsonArray
		if tok == '{' {
			n.kind = jsonObject
		}
		return n, r.members(n, depth)
	}
	return n, nil
}

func (r *schemaReader) members(n *jsonNode, depth int) error {
	seen := map[string]bool{}
	for r.dec.More() {
		key := strconv.Itoa(len(n.values))
		if n.kind == jsonObject {
			tok, err := r.dec.Token()
			if err != nil {
				return r.bad(err.Error())
			}
			key = tok.(string) // the decoder takes nothing else for a key
			if seen[key] {
				return r.bad(fmt.Sprintf("key %q twice in one object", key))
			}
			seen[key] = true
			n.keys = append(n.keys, key)
		}
		v, err := r.value(n, key, depth+1)
		if err != nil {
			return err
		}
		n.values = append(n.values, v)
	}
	if _, err := r.dec.Token(); err != nil {
		return r.bad(err.Error())
	}
	return nil
}

// wrongType is the error of a keyword with a value it cannot have.
func (n *jsonNode) wrongType(want string) error {
	return &SyntaxError{Input: "schema", Where: n.path(), Reason: fmt.Sprintf("is %s, not %s", n.kind, want)}
}

func (n *jsonNode) expect(kind jsonKind) error {
	if n.kind != kind {
		return n.wrongType(string(kind))
	}
	return nil
}

// strings returns the items of an array of strings.
func (n *jsonNode) strings() ([]string, error) {
	if err := n.expect(jsonArray); err != nil {
		return nil, err
	}
	var out []string
	for _, v := range n.values {
		if err := v.expect(jsonString); err != nil {
			return nil, err
		}
		out = append(out, v.text)
	}
	return out, nil
}

// number returns the exact value of a number.
func (n *jsonNode) number() (*big.Rat, error) {
	if err := n.expect(jsonNumber); err != nil {
		return nil, err
	}
	// The exponent first: the value of 1e999999999 would not fit in memory.
	if _, exp, ok := strings.Cut(strings.ToLower(n.text), "e"); ok {
		if e, err := strconv.Atoi(exp); err != nil || e < -maxNumberDigits || e > maxNumberDigits {
			return nil, fmt.Errorf("grammar: the number at %s: %w", n.path(), ErrTooLarge)
		}
	}
	v, ok := new(big.Rat).SetString(n.text)
	if !ok || len(n.text) > maxNumberDigits {
		return nil, fmt.Errorf("grammar: the number at %s: %w", n.path(), ErrTooLarge)
	}
	return v, nil
}

// maxNumberDigits bounds the numbers of a schema.
const maxNumberDigits = 330 // a float64 in full

// count returns a value that counts something. One above any length is lowered.
func (n *jsonNode) count() (int, error) {
	v, err := n.number()
	if err != nil {
		return 0, err
	}
	if !v.IsInt() || v.Sign() < 0 {
		return 0, n.wrongType("a non-negative integer")
	}
	if !v.Num().IsInt64() || v.Num().Int64() > math.MaxInt32-1 {
		return math.MaxInt32 - 1, nil
	}
	return int(v.Num().Int64()), nil
}

// spell is the node as compact JSON, in the one spelling that constants have.
func (n *jsonNode) spell(b *strings.Builder) {
	switch n.kind {
	case jsonString:
		b.WriteString(quote(n.text))
	case jsonNumber:
		b.WriteString(n.text)
	case jsonBool:
		b.WriteString(strconv.FormatBool(n.truth))
	case jsonNull:
		b.WriteString("null")
	case jsonArray, jsonObject:
		open, end := "[", "]"
		if n.kind == jsonObject {
			open, end = "{", "}"
		}
		b.WriteString(open)
		for i, v := range n.values {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.kind == jsonObject {
				b.WriteString(quote(n.keys[i]) + ":")
			}
			v.spell(b)
		}
		b.WriteString(end)
	}
}

func (n *jsonNode) String() string {
	var b strings.Builder
	n.spell(&b)
	return b.String()
}

// resolve returns the node that a "$ref" names.
func (n *jsonNode) resolve(root *jsonNode) (*jsonNode, error) {
	if err := n.expect(jsonString); err != nil {
		return nil, err
	}
	if n.text != "#" && !strings.HasPrefix(n.text, "#/") {
		return nil, &UnsupportedError{Keyword: "$ref", Path: n.path(), Reason: fmt.Sprintf("%q does not begin with #/; only pointers into the schema itself are followed", n.text)}
	}
	fragment, err := url.PathUnescape(n.text[1:])
	if err != nil {
		return nil, &SyntaxError{Input: "schema", Where: n.path(), Reason: err.Error()}
	}
	at := root
	for i, key := range strings.Split(fragment, "/") {
		if i == 0 {
			continue // before the first slash
		}
		at = at.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
		if at == nil {
			return nil, &SyntaxError{Input: "schema", Where: n.path(), Reason: fmt.Sprintf("%q names nothing", n.text)}
		}
	}
	return at, nil
}
