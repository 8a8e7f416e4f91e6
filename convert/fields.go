package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
)

// maxJSON bounds the JSON files of a checkpoint other than the tokenizer.
const maxJSON = 16 << 20

// Fields reads the members of a JSON object, such as config.json or one of its
// sub-configs. A getter takes all the names under which a setting is found in the
// wild; members that are null count as absent, and names that are present must
// agree. The first error sticks, so that a config is read in one go:
//
//	f := src.Config.Object("text_config")
//	layers := f.Int("num_hidden_layers")
//	kernel := f.Int("sconv_kernel_size", "conv_kernel_size")
//	if err := f.Err(); err != nil { ... }
//
// After an error getters return zero values.
type Fields struct {
	file string // path of the JSON file
	path string // of this object in it, with a trailing dot; empty at the top
	obj  map[string]json.RawMessage
	err  *error // shared by all objects of a file
}

// ReadFields reads the JSON object in the file at path. A missing file wraps
// fs.ErrNotExist, anything but an object is a [FormatError].
func ReadFields(path string) (*Fields, error) {
	data, err := readBounded(path, maxJSON)
	if err != nil {
		return nil, err
	}
	return ParseFields(path, data)
}

// ParseFields is [ReadFields] of data that came from the file at path.
func ParseFields(path string, data []byte) (*Fields, error) {
	f := &Fields{file: path, err: new(error)}
	err := json.Unmarshal(data, &f.obj)
	if err == nil && f.obj == nil {
		err = errors.New("null, want an object")
	}
	if err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return nil, &FormatError{path, syntax.Offset, err.Error()}
		case errors.As(err, &kind):
			return nil, &FormatError{path, kind.Offset, kind.Value + ", want an object"}
		}
		return nil, &FormatError{path, -1, err.Error()}
	}
	return f, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, &FormatError{path, -1, "not a regular file"}
	}
	if st.Size() > limit {
		return nil, &FormatError{path, -1, fmt.Sprintf("%d bytes, want at most %d", st.Size(), limit)}
	}
	return os.ReadFile(path)
}

// Err returns the first error of any getter on this file.
func (f *Fields) Err() error { return *f.err }

// File returns the path of the JSON file.
func (f *Fields) File() string { return f.file }

// Agree makes it an error if this object and sub both have one of the members and the
// values differ: a setting of a sub-config that is given again above it.
func (f *Fields) Agree(sub *Fields, names ...string) {
	for _, name := range names {
		if !f.Has(name) || !sub.Has(name) {
			continue
		}
		a, _ := decodeAs[any](f.obj[name])
		b, _ := decodeAs[any](sub.obj[name])
		if !reflect.DeepEqual(a, b) {
			f.Failf("%s is %s but %s is %s", f.Name(name), brief(f.obj[name]), sub.Name(name), brief(sub.obj[name]))
		}
	}
}

// Failf makes the message the error of the file, unless there is one already.
func (f *Fields) Failf(format string, args ...any) {
	f.fail(&FormatError{f.file, -1, fmt.Sprintf(format, args...)})
}

// Unsupportedf is [Fields.Failf] with an [UnsupportedError].
func (f *Fields) Unsupportedf(format string, args ...any) {
	f.fail(&UnsupportedError{f.file, fmt.Sprintf(format, args...)})
}

func (f *Fields) fail(err error) {
	if *f.err == nil {
		*f.err = err
	}
}

// Has reports whether a member is present and not null.
func (f *Fields) Has(name string) bool {
	raw, ok := f.obj[name]
	return ok && string(raw) != "null"
}

// IsNull reports whether a member is present as null.
func (f *Fields) IsNull(name string) bool { return string(f.obj[name]) == "null" }

// IsList reports whether a member is a list.
func (f *Fields) IsList(name string) bool { return bytes.HasPrefix(f.obj[name], []byte("[")) }

// IsObject reports whether a member is an object.
func (f *Fields) IsObject(name string) bool { return bytes.HasPrefix(f.obj[name], []byte("{")) }

// Members returns the names of all members, sorted.
func (f *Fields) Members() []string { return slices.Sorted(maps.Keys(f.obj)) }

// Object returns a member that is an object; nil if it is absent.
func (f *Fields) Object(name string) *Fields {
	if !f.Has(name) {
		return nil
	}
	sub := &Fields{file: f.file, path: f.path + name + ".", err: f.err}
	if json.Unmarshal(f.obj[name], &sub.obj) != nil {
		f.wrong(name, "an object")
		return nil
	}
	return sub
}

// Objects returns a member that is a list of objects; nil if it is anything else.
func (f *Fields) Objects(name string) []*Fields {
	list, ok := decodeAs[[]map[string]json.RawMessage](f.obj[name])
	if !ok {
		return nil
	}
	subs := make([]*Fields, len(list))
	for i, obj := range list {
		subs[i] = &Fields{file: f.file, path: fmt.Sprintf("%s%s[%d].", f.path, name, i), obj: obj, err: f.err}
	}
	return subs
}

// Name returns the full name of a member, for messages.
func (f *Fields) Name(name string) string { return f.path + name }

// wrong records that a member is not what is wanted.
func (f *Fields) wrong(name, want string) {
	f.Failf("%s is %s, want %s", f.Name(name), brief(f.obj[name]), want)
}

// brief returns a JSON value in one short line.
func brief(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "invalid"
	}
	if s := b.String(); len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(b.String()[:60], "") + "…"
}

// get decodes the first of names that is present. want says what decode accepts.
// Absent members leave ok false.
func get[T any](f *Fields, names []string, want string, decode func(json.RawMessage) (T, bool), equal func(a, b T) bool) (v T, ok bool) {
	var zero T
	var from string
	for _, name := range names {
		if !f.Has(name) {
			continue
		}
		x, good := decode(f.obj[name])
		switch {
		case !good:
			f.wrong(name, want)
			return zero, false
		case !ok:
			v, from, ok = x, name, true
		case !equal(v, x):
			f.Failf("%s is %s but %s is %s", f.Name(from), brief(f.obj[from]), f.Name(name), brief(f.obj[name]))
			return zero, false
		}
	}
	return v, ok
}

// missing records that none of the names of a setting is present.
func (f *Fields) missing(names []string) {
	f.Failf("%s is missing", f.path+strings.Join(names, " or "))
}

// wantInt says what Int accepts.
const wantInt = "a whole number from 0 to 2147483647"

// Int returns a count or size; GGUF stores them in 32 bits. Absent is an error.
func (f *Fields) Int(names ...string) int64 {
	v, ok := get(f, names, wantInt, decodeInt, same[int64])
	if !ok {
		f.missing(names)
	}
	return v
}

// IntOr is [Fields.Int] with a value for an absent member.
func (f *Fields) IntOr(def int64, names ...string) int64 {
	if v, ok := get(f, names, wantInt, decodeInt, same[int64]); ok {
		return v
	}
	return def
}

// Float returns a number. Absent is an error.
func (f *Fields) Float(names ...string) float64 {
	v, ok := get(f, names, "a number", decodeFloat, same[float64])
	if !ok {
		f.missing(names)
	}
	return v
}

// FloatOr is [Fields.Float] with a value for an absent member.
func (f *Fields) FloatOr(def float64, names ...string) float64 {
	if v, ok := get(f, names, "a number", decodeFloat, same[float64]); ok {
		return v
	}
	return def
}

// BoolOr returns true or false, def if the member is absent.
func (f *Fields) BoolOr(def bool, names ...string) bool {
	if v, ok := get(f, names, "true or false", decodeAs[bool], same[bool]); ok {
		return v
	}
	return def
}

// StrOr returns a string, def if the member is absent.
func (f *Fields) StrOr(def string, names ...string) string {
	if v, ok := get(f, names, "a string", decodeAs[string], same[string]); ok {
		return v
	}
	return def
}

// Ints returns a list of counts; nil if the member is absent.
func (f *Fields) Ints(name string) []int64 {
	v, _ := get(f, []string{name}, "a list of whole numbers from 0 to 2147483647", decodeInts, nil)
	return v
}

// Floats returns a list of numbers; nil if the member is absent.
func (f *Fields) Floats(name string) []float64 {
	v, _ := get(f, []string{name}, "a list of numbers", decodeAs[[]float64], nil)
	return v
}

// Strs returns a list of strings; nil if the member is absent.
func (f *Fields) Strs(name string) []string {
	v, _ := get(f, []string{name}, "a list of strings", decodeAs[[]string], nil)
	return v
}

func same[T comparable](a, b T) bool { return a == b }

func decodeAs[T any](raw json.RawMessage) (T, bool) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err == nil
}

// decodeFloat accepts what float64 and float32 hold.
func decodeFloat(raw json.RawMessage) (float64, bool) {
	v, ok := decodeAs[float64](raw)
	return v, ok && math.Abs(v) <= math.MaxFloat32
}

// decodeInt accepts 4.0 as well: some writers put every number out as a float.
func decodeInt(raw json.RawMessage) (int64, bool) {
	v, ok := decodeFloat(raw)
	return int64(v), ok && v >= 0 && v <= math.MaxInt32 && v == math.Trunc(v)
}

func decodeInts(raw json.RawMessage) ([]int64, bool) {
	list, ok := decodeAs[[]json.RawMessage](raw)
	v := make([]int64, len(list))
	for i, e := range list {
		var good bool
		v[i], good = decodeInt(e)
		ok = ok && good
	}
	return v, ok
}
