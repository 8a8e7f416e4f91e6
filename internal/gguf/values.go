package gguf

import (
	"fmt"
	"math"
	"strings"
)

// Keys returns the keys in file order. In a split model they are those of the
// first part, which holds all metadata.
func (f *File) Keys() []string { return f.keys }

// Value returns the value of key as it is stored: a Go number, bool or string of
// the stored width, or a slice of one. Slices belong to the file: do not modify them.
func (f *File) Value(key string) (any, bool) {
	val, ok := f.values[key]
	return val.v, ok
}

// Uint returns the integer at key, which may be stored in any width. It is a
// [FormatError] if the value is no integer or is negative; ErrMissing is wrapped
// if there is no such key. The same holds for the getters below.
func (f *File) Uint(key string) (uint64, error) {
	return get(f, key, "an unsigned integer", toUint)
}

// Int returns the integer at key, stored in any width.
func (f *File) Int(key string) (int64, error) { return get(f, key, "an integer", toInt) }

// Float returns the float32 or float64 at key.
func (f *File) Float(key string) (float64, error) { return get(f, key, "a float", toFloat) }

// Bool returns the bool at key.
func (f *File) Bool(key string) (bool, error) { return get(f, key, "a bool", as[bool]) }

// Str returns the string at key.
func (f *File) Str(key string) (string, error) { return get(f, key, "a string", as[string]) }

// Ints returns the array of integers at key, stored in any width.
func (f *File) Ints(key string) ([]int64, error) {
	return get(f, key, "an array of integers", toInts)
}

// Floats returns the array of floats at key; float64 is narrowed. The slice may
// belong to the file: do not modify it.
func (f *File) Floats(key string) ([]float32, error) {
	return get(f, key, "an array of floats", toFloats)
}

// Bools returns the array of bools at key. It belongs to the file: do not modify it.
func (f *File) Bools(key string) ([]bool, error) {
	return get(f, key, "an array of bools", as[[]bool])
}

// Strs returns the array of strings at key. It belongs to the file: do not modify it.
func (f *File) Strs(key string) ([]string, error) {
	return get(f, key, "an array of strings", as[[]string])
}

// UintOr is [File.Uint] with a default for an absent key; a value of another type
// is still an error. The same holds for the getters below.
func (f *File) UintOr(key string, def uint64) (uint64, error) { return getOr(f, key, def, f.Uint) }

// FloatOr is [File.Float] with a default for an absent key.
func (f *File) FloatOr(key string, def float64) (float64, error) {
	return getOr(f, key, def, f.Float)
}

// BoolOr is [File.Bool] with a default for an absent key.
func (f *File) BoolOr(key string, def bool) (bool, error) { return getOr(f, key, def, f.Bool) }

// StrOr is [File.Str] with a default for an absent key.
func (f *File) StrOr(key, def string) (string, error) { return getOr(f, key, def, f.Str) }

// get looks key up and converts its value; convert says whether it could.
func get[T any](f *File, key, want string, convert func(any) (T, bool)) (T, error) {
	var zero T
	val, ok := f.values[key]
	if !ok {
		return zero, fmt.Errorf("%s: key %q: %w", f.path, key, ErrMissing)
	}
	v, ok := convert(val.v)
	if !ok {
		err := formatErrorf(val.off, "is %s, want %s", describe(val.v), want)
		return zero, fmt.Errorf("%s: key %q: %w", f.path, key, err)
	}
	return v, nil
}

func getOr[T any](f *File, key string, def T, get func(string) (T, error)) (T, error) {
	if _, ok := f.values[key]; !ok {
		return def, nil
	}
	return get(key)
}

// typeName names the stored type of a value: "uint32", "array of string".
func typeName(v any) string {
	name := fmt.Sprintf("%T", v)
	if elem, ok := strings.CutPrefix(name, "[]"); ok {
		return "array of " + elem
	}
	return name
}

// describe is typeName with the value of an integer, which may be of the right
// type and out of range.
func describe(v any) string {
	_, signed := toInt(v)
	_, unsigned := toUint(v)
	if signed || unsigned {
		return fmt.Sprintf("%s %d", typeName(v), v)
	}
	return typeName(v)
}

func as[T any](v any) (T, bool) {
	t, ok := v.(T)
	return t, ok
}

func toInt(v any) (int64, bool) {
	switch n := v.(type) {
	case uint8:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint64:
		return int64(n), n <= math.MaxInt64
	case int64:
		return n, true
	}
	return 0, false
}

func toUint(v any) (uint64, bool) {
	if n, ok := v.(uint64); ok {
		return n, true
	}
	n, ok := toInt(v)
	return uint64(n), ok && n >= 0
}

func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func toInts(v any) ([]int64, bool) {
	switch s := v.(type) {
	case []uint8:
		return widen(s), true
	case []int8:
		return widen(s), true
	case []uint16:
		return widen(s), true
	case []int16:
		return widen(s), true
	case []uint32:
		return widen(s), true
	case []int32:
		return widen(s), true
	case []uint64:
		for _, n := range s {
			if n > math.MaxInt64 {
				return nil, false
			}
		}
		return widen(s), true
	case []int64:
		return widen(s), true
	}
	return nil, false
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](s []T) []int64 {
	out := make([]int64, len(s))
	for i, n := range s {
		out[i] = int64(n)
	}
	return out
}

func toFloats(v any) ([]float32, bool) {
	switch s := v.(type) {
	case []float32:
		return s, true
	case []float64:
		out := make([]float32, len(s))
		for i, x := range s {
			out[i] = float32(x)
		}
		return out, true
	}
	return nil, false
}
