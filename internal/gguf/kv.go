package gguf

import (
	"math"
)

// valueType is the type number of a key's value (enum gguf_type in gguf.h).
type valueType uint32

const (
	vUint8   valueType = 0
	vInt8    valueType = 1
	vUint16  valueType = 2
	vInt16   valueType = 3
	vUint32  valueType = 4
	vInt32   valueType = 5
	vFloat32 valueType = 6
	vBool    valueType = 7
	vString  valueType = 8
	vArray   valueType = 9
	vUint64  valueType = 10
	vInt64   valueType = 11
	vFloat64 valueType = 12
)

// maxKey is the longest key that the format allows, in bytes.
const maxKey = 65535

// value is what a key holds: one of the Go types that [Writer.Set] takes.
type value struct {
	v   any
	off int64 // of the value in the file, for errors
}

// minPair and minTensor are the bytes that the smallest pair and tensor take in
// the header: they bound the counts that a file of a given size can have.
const (
	minPair   = 8 + 1 + 4 + 1     // key length, key, type, a one-byte value
	minTensor = 8 + 1 + 4 + 4 + 8 // name length, name, no dimensions, type, offset
)

// pair reads one key and its value.
func (r *reader) pair() (key string, val value) {
	at := int64(r.pos)
	key = r.str(maxKey, "key")
	if r.err == nil && key == "" {
		r.fail(formatErrorf(at, "empty key"))
	}
	t := valueType(r.u32("type of a value"))
	val.off = int64(r.pos)
	if t == vArray {
		val.v = r.array(key)
	} else {
		val.v = r.scalar(key, t)
	}
	return key, val
}

// scalar reads a value that is no array.
func (r *reader) scalar(key string, t valueType) any {
	what := "value of " + key
	switch t {
	case vUint8:
		return r.u8(what)
	case vInt8:
		return int8(r.u8(what))
	case vUint16:
		return r.u16(what)
	case vInt16:
		return int16(r.u16(what))
	case vUint32:
		return r.u32(what)
	case vInt32:
		return int32(r.u32(what))
	case vUint64:
		return r.u64(what)
	case vInt64:
		return int64(r.u64(what))
	case vFloat32:
		return math.Float32frombits(r.u32(what))
	case vFloat64:
		return math.Float64frombits(r.u64(what))
	case vBool:
		return r.bool(what)
	case vString:
		return r.str(anyLength, what)
	}
	r.fail(formatErrorf(int64(r.pos)-4, "key %q has value type %d, which does not exist", key, uint32(t)))
	return nil
}

// array reads an array's element type, length and elements.
func (r *reader) array(key string) any {
	what := "array of " + key
	at := int64(r.pos)
	t := valueType(r.u32(what))
	if t == vArray {
		// Allowed by the format, refused by ggml, written by nobody.
		r.fail(unsupportedf("key %q is an array of arrays", key))
	}
	switch t {
	case vUint8:
		return elements(r, 1, what, r.u8)
	case vInt8:
		return elements(r, 1, what, func(what string) int8 { return int8(r.u8(what)) })
	case vUint16:
		return elements(r, 2, what, r.u16)
	case vInt16:
		return elements(r, 2, what, func(what string) int16 { return int16(r.u16(what)) })
	case vUint32:
		return elements(r, 4, what, r.u32)
	case vInt32:
		return elements(r, 4, what, func(what string) int32 { return int32(r.u32(what)) })
	case vUint64:
		return elements(r, 8, what, r.u64)
	case vInt64:
		return elements(r, 8, what, func(what string) int64 { return int64(r.u64(what)) })
	case vFloat32:
		return elements(r, 4, what, func(what string) float32 { return math.Float32frombits(r.u32(what)) })
	case vFloat64:
		return elements(r, 8, what, func(what string) float64 { return math.Float64frombits(r.u64(what)) })
	case vBool:
		return elements(r, 1, what, r.bool)
	case vString:
		return r.strs(r.count(8, what), what)
	}
	r.fail(formatErrorf(at, "key %q is an array of value type %d, which does not exist", key, uint32(t)))
	return nil
}

// elements reads an array's length and its elements of size bytes each.
func elements[T any](r *reader, size uint64, what string, read func(string) T) []T {
	out := make([]T, r.count(size, what))
	for i := range out {
		out[i] = read(what)
	}
	return out
}

func (r *reader) bool(what string) bool {
	at := int64(r.pos)
	b := r.u8(what)
	if b > 1 {
		r.fail(formatErrorf(at, "%s: bool is %d, want 0 or 1", what, b))
	}
	return b == 1
}
