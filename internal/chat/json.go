package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of JSON values; the functions here recurse.
const maxDepth = 500

// object is a JSON object with its keys in the order of their first appearance. The value of a repeated key is its last one, as
// in Python.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) set(key string, v any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

// get returns the value of key, nil if it is absent or null or o is nil.
func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

// has reports whether the object has the key, be it with null.
func (o *object) has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.values[key]
	return ok
}

// decodeJSON parses one JSON value into nil, bool, json.Number, string, []any and *object.
func decodeJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("json: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("json: text after the value at offset %d", d.InputOffset())
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nesting deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := &object{values: map[string]any{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v) // the decoder accepts no other key
		}
		_, err := d.Token()
		return o, err
	}
	return t, nil
}

// appendCanonical writes v as the models were trained to see JSON: compact, keys sorted by code point at every depth, only what
// must be escaped escaped, numbers as Python prints them.
func appendCanonical(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return appendString(b, v), nil
	case json.Number:
		return appendNumber(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendCanonical(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *object:
		b = append(b, '{')
		for i, key := range slices.Sorted(slices.Values(v.keys)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			if b, err = appendCanonical(b, v.values[key]); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fmt.Errorf("json: value of type %T", v)
}

// appendString quotes s as Python's json.dumps does with ensure_ascii off: no HTML escapes.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		default:
			if c < ' ' {
				b = fmt.Appendf(b, `\u%04x`, c)
			} else {
				b = append(b, c)
			}
		}
	}
	return append(b, '"')
}

// appendNumber keeps integers of any size as they are and prints other numbers like Python's repr: the shortest digits that read
// back, ".0" for whole numbers, an exponent outside 1e-4 … 1e16.
func appendNumber(b []byte, n json.Number) ([]byte, error) {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			s = "0"
		}
		return append(b, s...), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("json: number %s is out of range", s)
	}
	sci := strconv.FormatFloat(f, 'e', -1, 64)
	_, digits, _ := strings.Cut(sci, "e")
	if exp, _ := strconv.Atoi(digits); exp < -4 || exp >= 16 {
		return append(b, sci...), nil
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if !bytes.ContainsRune(b[start:], '.') {
		b = append(b, ".0"...)
	}
	return b, nil
}

// encodeOrdered writes v as compact JSON with the keys and numbers as they came.
func encodeOrdered(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = encodeOrdered(b, e)
		}
		return append(b, ']')
	case *object:
		b = append(b, '{')
		for i, key := range v.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			b = encodeOrdered(b, v.values[key])
		}
		return append(b, '}')
	case string:
		return appendString(b, v)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	}
	return append(b, "null"...)
}

// canonical is the canonical form of JSON text.
func canonical(data []byte) (string, error) {
	v, err := decodeJSON(data)
	if err != nil {
		return "", err
	}
	b, err := appendCanonical(nil, v)
	return string(b), err
}
