package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep the JSON of a request is nested.
const maxDepth = 128

// readJSON reads a request's body, whatever content type it claims, into dst, a
// pointer to a struct with json tags. It is strict about types and names the field
// that is wrong by its path; it knows nothing of members that dst has no field
// for, and skips them. null is the same as an absent member.
func readJSON(r *http.Request, dst any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) || errors.Is(err, errBodyRoom) {
			return err
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &Error{Status: http.StatusRequestTimeout, Message: "the body comes too slowly", cause: err}
		}
		return invalid("", "the body: %w", err)
	}
	return decodeJSON(data, dst)
}

// union is a field that has one of several JSON types. It is given the first
// token of its value and reads the rest.
type union interface {
	decode(d *decoder, tok json.Token, path string) error
}

// decoder reads JSON into Go values and keeps the path to where it is.
type decoder struct {
	*json.Decoder
	data  []byte
	depth int
	start int64 // where the token that was read last begins
}

func decodeJSON(data []byte, dst any) error {
	if !utf8.Valid(data) {
		return invalid("", "the body is not valid UTF-8")
	}
	d := &decoder{Decoder: json.NewDecoder(bytes.NewReader(data)), data: data}
	d.UseNumber()
	tok, err := d.next()
	if err != nil {
		return err
	}
	if tok != json.Delim('{') {
		return invalid("", "the body is %s, want an object", typeName(tok))
	}
	if err := d.value(tok, "", reflect.ValueOf(dst).Elem()); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "the body goes on after its JSON object")
	}
	return nil
}

// decodeAt reads a value that was kept as text into dst; path is where it stood.
func decodeAt(raw json.RawMessage, path string, dst any) error {
	d := &decoder{Decoder: json.NewDecoder(bytes.NewReader(raw)), data: raw}
	d.UseNumber()
	tok, err := d.next()
	if err != nil {
		return err
	}
	return d.value(tok, path, reflect.ValueOf(dst).Elem())
}

// next reads a token.
func (d *decoder) next() (json.Token, error) {
	d.start = d.InputOffset()
	tok, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, invalid("", "the body is not JSON: %w", err)
	}
	switch tok {
	case json.Delim('{'), json.Delim('['):
		if d.depth++; d.depth > maxDepth {
			return nil, invalid("", "the body is nested deeper than %d", maxDepth)
		}
	case json.Delim('}'), json.Delim(']'):
		d.depth--
	}
	return tok, nil
}

// raw returns the text of the value that begins with the token read last.
func (d *decoder) raw(tok json.Token) (json.RawMessage, error) {
	start := d.start
	if err := d.skip(tok); err != nil {
		return nil, err
	}
	return bytes.TrimLeft(d.data[start:d.InputOffset()], " \t\r\n:,"), nil
}

// skip passes over the value that begins with tok.
func (d *decoder) skip(tok json.Token) error {
	if tok != json.Delim('{') && tok != json.Delim('[') {
		return nil
	}
	for until := d.depth - 1; d.depth > until; {
		if _, err := d.next(); err != nil {
			return err
		}
	}
	return nil
}

var rawType = reflect.TypeFor[json.RawMessage]()

// value reads the value that begins with tok into v.
func (d *decoder) value(tok json.Token, path string, v reflect.Value) error {
	if tok == nil {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(union); ok {
		return u.decode(d, tok, path)
	}
	if v.Type() == rawType {
		raw, err := d.raw(tok)
		v.SetBytes(raw)
		return err
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(tok, path, func(key, path string, tok json.Token) error {
			if f, ok := fieldOf(v, key); ok {
				return d.value(tok, path, f)
			}
			return d.skip(tok)
		})
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		return d.object(tok, path, func(key, path string, tok json.Token) error {
			e := reflect.New(v.Type().Elem()).Elem()
			err := d.value(tok, path, e)
			v.SetMapIndex(reflect.ValueOf(key), e)
			return err
		})
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return d.array(tok, path, func(path string, tok json.Token) error {
			e := reflect.New(v.Type().Elem()).Elem()
			err := d.value(tok, path, e)
			v.Set(reflect.Append(v, e))
			return err
		})
	}
	return scalar(tok, path, v)
}

// object calls member with each member's name, path and first token.
func (d *decoder) object(tok json.Token, path string, member func(key, path string, tok json.Token) error) error {
	if tok != json.Delim('{') {
		return invalid(path, "is %s, want an object", typeName(tok))
	}
	for {
		tok, err := d.next()
		if err != nil {
			return err
		}
		key, ok := tok.(string)
		if !ok {
			return nil // the closing brace
		}
		if tok, err = d.next(); err != nil {
			return err
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		if err := member(key, at, tok); err != nil {
			return err
		}
	}
}

// array calls element with each element's path and first token.
func (d *decoder) array(tok json.Token, path string, element func(path string, tok json.Token) error) error {
	if tok != json.Delim('[') {
		return invalid(path, "is %s, want an array", typeName(tok))
	}
	for i := 0; ; i++ {
		tok, err := d.next()
		if err != nil {
			return err
		}
		if tok == json.Delim(']') {
			return nil
		}
		if err := element(fmt.Sprintf("%s[%d]", path, i), tok); err != nil {
			return err
		}
	}
}

// fieldOf finds the field with a json tag, in embedded structs too.
func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if in, ok := fieldOf(v.Field(i), key); ok {
				return in, true
			}
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func scalar(tok json.Token, path string, v reflect.Value) error {
	switch t := tok.(type) {
	case string:
		if v.Kind() == reflect.String {
			v.SetString(t)
			return nil
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(t)
			return nil
		}
	case json.Number:
		return number(t, path, v)
	}
	return invalid(path, "is %s, want %s", typeName(tok), wantName(v.Kind()))
}

// number stores a number. Whole numbers may be written with a fraction of zero,
// as some clients do.
func number(n json.Number, path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		f, err := n.Float64()
		if err != nil || v.OverflowFloat(f) {
			return invalid(path, "%s is out of range", n)
		}
		v.SetFloat(f)
		return nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil {
			f, ferr := n.Float64()
			if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
				return invalid(path, "is %s, want a whole number", n)
			}
			i = int64(f)
		}
		if v.OverflowInt(i) {
			return invalid(path, "%s is out of range", n)
		}
		v.SetInt(i)
		return nil
	}
	return invalid(path, "is a number, want %s", wantName(v.Kind()))
}

// typeName names the JSON type of a value by its first token.
func typeName(tok json.Token) string {
	switch tok := tok.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number, float64:
		return "a number"
	case json.Delim:
		if tok == '[' {
			return "an array"
		}
	}
	return "an object"
}

func wantName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	}
	return "a number"
}
