package models

import (
	"errors"
	"fmt"
	"math"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Keys reads the keys of a file that begin with a prefix and keeps the first
// error, so that a configuration can be read in one expression.
type Keys struct {
	f      *gguf.File
	prefix string
	err    error
}

// NewKeys reads keys of f. The prefix, such as "deepseek2.", is put before each.
func NewKeys(f *gguf.File, prefix string) *Keys { return &Keys{f: f, prefix: prefix} }

// Err is the first error.
func (k *Keys) Err() error { return k.err }

// Note records an error of a key that was read by other means.
func (k *Keys) Note(err error) {
	if k.err == nil {
		k.err = err
	}
}

// Failf records that a key has a value that makes no sense.
func (k *Keys) Failf(key, format string, args ...any) {
	k.Note(fmt.Errorf("%s: key %q: %s", k.f.Path(), k.prefix+key, fmt.Sprintf(format, args...)))
}

// Has reports whether the file has the key.
func (k *Keys) Has(key string) bool {
	_, ok := k.f.Value(k.prefix + key)
	return ok
}

// Int reads a number of at least least.
func (k *Keys) Int(key string, least int) int {
	v, err := k.f.Uint(k.prefix + key)
	k.Note(err)
	if err == nil && (v < uint64(max(least, 0)) || v > math.MaxInt32) {
		k.Failf(key, "%d, want at least %d", v, least)
	}
	return int(v)
}

// IntOr is Int, or def if there is no such key.
func (k *Keys) IntOr(key string, least, def int) int {
	if !k.Has(key) {
		return def
	}
	return k.Int(key, least)
}

// Positive reads a number above zero.
func (k *Keys) Positive(key string) float64 {
	v, err := k.f.Float(k.prefix + key)
	k.Note(err)
	if err == nil && !(v > 0 && v <= math.MaxFloat32) {
		k.Failf(key, "%g, want a number above 0", v)
	}
	return v
}

// PositiveOr is Positive, or def if there is no such key.
func (k *Keys) PositiveOr(key string, def float64) float64 {
	if !k.Has(key) {
		return def
	}
	return k.Positive(key)
}

// NotNegativeOr reads a number of at least zero, or gives def.
func (k *Keys) NotNegativeOr(key string, def float64) float64 {
	v, err := k.f.FloatOr(k.prefix+key, def)
	k.Note(err)
	if err == nil && !(v >= 0 && v <= math.MaxFloat32) {
		k.Failf(key, "%g, want a number of at least 0", v)
	}
	return v
}

// BoolOr reads a switch, or gives def.
func (k *Keys) BoolOr(key string, def bool) bool {
	v, err := k.f.BoolOr(k.prefix+key, def)
	k.Note(err)
	return v
}

// StrOr reads a string, or gives def.
func (k *Keys) StrOr(key, def string) string {
	v, err := k.f.StrOr(k.prefix+key, def)
	k.Note(err)
	return v
}

// RGB reads one number per colour channel, or gives def.
func (k *Keys) RGB(key string, def [3]float32) [3]float32 {
	v, err := k.f.Floats(k.prefix + key)
	switch {
	case errors.Is(err, gguf.ErrMissing):
		return def
	case err != nil:
		k.Note(err)
		return def
	case len(v) != 3:
		k.Failf(key, "%d values, want 3", len(v))
		return def
	}
	return [3]float32(v)
}
