package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// scanner reads JSON token by token. Unlike a decode into structs it refuses
// keys that appear twice and knows the offset of everything.
type scanner struct {
	dec  *json.Decoder
	base int64 // offset in the file of the first byte
}

// newScanner reads text, which starts at offset base of its file.
func newScanner(text []byte, base int64) (*scanner, error) {
	if !utf8.Valid(text) {
		return nil, formatErrorf(base, "not valid utf-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return &scanner{dec: dec, base: base}, nil
}

// at returns the offset in the file of what was read last.
func (s *scanner) at() int64 { return s.base + s.dec.InputOffset() }

// token returns the next token: a json.Delim, string, json.Number, bool or nil.
func (s *scanner) token() (json.Token, error) {
	t, err := s.dec.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, formatErrorf(s.at(), "json ends early")
	}
	if err != nil {
		return nil, formatErrorf(s.at(), "%v", err)
	}
	return t, nil
}

// delim reads one of the tokens { } [ ].
func (s *scanner) delim(want json.Delim, what string) error {
	t, err := s.token()
	if err == nil && t != want {
		err = formatErrorf(s.at(), "%s: found %v, want %v", what, describe(t), want)
	}
	return err
}

// object reads an object and calls field after each key, to read its value.
func (s *scanner) object(what string, field func(key string) error) error {
	if err := s.delim('{', what); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for s.dec.More() {
		key, err := s.str(what)
		if err != nil {
			return err
		}
		if seen[key] {
			return formatErrorf(s.at(), "%s: key %q appears twice", what, key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	return s.delim('}', what)
}

func (s *scanner) str(what string) (string, error) {
	t, err := s.token()
	if err != nil {
		return "", err
	}
	str, ok := t.(string)
	if !ok {
		return "", formatErrorf(s.at(), "%s: found %v, want a string", what, describe(t))
	}
	return str, nil
}

// sizes reads an array of at most limit whole numbers that are not negative.
func (s *scanner) sizes(limit int, what string) ([]int64, error) {
	if err := s.delim('[', what); err != nil {
		return nil, err
	}
	out := []int64{}
	for s.dec.More() {
		t, err := s.token()
		if err != nil {
			return nil, err
		}
		num, _ := t.(json.Number)
		n, err := strconv.ParseInt(string(num), 10, 64)
		if err != nil || n < 0 {
			return nil, formatErrorf(s.at(), "%s: found %v, want a whole number from 0 to 2^63-1", what, describe(t))
		}
		if len(out) == limit {
			return nil, formatErrorf(s.at(), "%s: more than %d numbers", what, limit)
		}
		out = append(out, n)
	}
	return out, s.delim(']', what)
}

// skip reads any value and drops it.
func (s *scanner) skip() error {
	for depth := 0; ; {
		t, err := s.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// end checks that nothing but white space follows.
func (s *scanner) end() error {
	if _, err := s.dec.Token(); !errors.Is(err, io.EOF) {
		return formatErrorf(s.at(), "text after the json object")
	}
	return nil
}

// describe shows a token in an error.
func describe(t json.Token) string {
	switch v := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return v.String()
	case json.Number:
		return v.String()
	case string:
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return "an unknown token"
}
