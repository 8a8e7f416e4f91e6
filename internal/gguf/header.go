package gguf

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
)

const (
	magic            = "GGUF"
	version          = 3 // written; read are minVersion to version
	minVersion       = 2 // version 1 had 32-bit lengths
	defaultAlignment = 32
	keyAlignment     = "general.alignment"

	// maxHeader bounds what precedes the data, and with it the memory that Open
	// takes: a few times this. The largest vocabularies make headers of 30 MB.
	maxHeader = 1 << 30
)

// header is what precedes the data of one file.
type header struct {
	keys    []string
	values  map[string]value
	tensors []TensorInfo // Part is 0
}

// parseHeader reads the header of the file data and checks that every tensor
// lies inside it, where ggml expects it.
func parseHeader(data []byte) (*header, error) {
	r := &reader{data: data[:min(len(data), maxHeader)]}
	nTensors, nPairs := r.preamble()
	h := &header{values: make(map[string]value)}
	for i := 0; i < nPairs && r.err == nil; i++ {
		at := int64(r.pos)
		key, val := r.pair()
		if r.err != nil {
			break
		}
		if _, dup := h.values[key]; dup {
			r.fail(formatErrorf(at, "key %q appears twice", key))
			break
		}
		h.keys = append(h.keys, key)
		h.values[key] = val
	}
	if r.err != nil {
		return nil, r.err
	}
	align, err := h.alignment()
	if err != nil {
		return nil, err
	}
	return h, h.readTensors(r, nTensors, int64(len(data)), align)
}

// preamble reads the fixed fields at the start.
func (r *reader) preamble() (nTensors, nPairs int) {
	if m := r.take(uint64(len(magic)), "magic"); r.err == nil && string(m) != magic {
		if bytes.HasPrefix(r.data, []byte("version https://git-lfs")) {
			r.fail(formatErrorf(0, "a git-lfs pointer, not the file it points to"))
		}
		r.fail(formatErrorf(0, "magic is %q, want %q", m, magic))
	}
	v := r.u32("version")
	if r.err == nil && (v < minVersion || v > version) {
		if swapped := bits.ReverseBytes32(v); swapped >= 1 && swapped <= version {
			r.fail(unsupportedf("big-endian file"))
		}
		r.fail(unsupportedf("version %d, want %d or %d", v, minVersion, version))
	}
	nTensors = r.count(minTensor, "number of tensors")
	nPairs = r.count(minPair, "number of keys")
	return nTensors, nPairs
}

// alignment returns general.alignment, or its default.
func (h *header) alignment() (int64, error) {
	val, ok := h.values[keyAlignment]
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := val.v.(uint32) // ggml aborts on any other type
	if !ok {
		return 0, formatErrorf(val.off, "key %q is %s, want uint32", keyAlignment, typeName(val.v))
	}
	if n < 8 || n&(n-1) != 0 {
		return 0, formatErrorf(val.off, "key %q is %d, want a power of two that is a multiple of 8", keyAlignment, n)
	}
	return int64(n), nil
}

// readTensors reads the n tensor records and places them in the file of size bytes.
func (h *header) readTensors(r *reader, n int, size, align int64) error {
	var at []int64 // where each record's offset field is, for errors
	names := make(map[string]bool)
	for range n {
		start := int64(r.pos)
		t := r.tensor()
		if r.err != nil {
			return r.err
		}
		if names[t.Name] {
			return formatErrorf(start, "tensor %q appears twice", t.Name)
		}
		names[t.Name] = true
		h.tensors = append(h.tensors, t)
		at = append(at, int64(r.pos)-8)
	}
	return place(h.tensors, at, int64(r.pos), size, align)
}

// place checks that each tensor's offset is where the one before it ends, rounded
// up to align, as ggml's reader demands, and turns offsets within the data into
// offsets from the start of the file.
func place(tensors []TensorInfo, at []int64, headerEnd, size, align int64) error {
	dataStart := roundUp(headerEnd, align)
	next := int64(0)
	for i := range tensors {
		t := &tensors[i]
		if t.Offset != next {
			return formatErrorf(at[i], "tensor %q has offset %d, want %d", t.Name, t.Offset, next)
		}
		if end := dataStart + next; end > size || t.Size > size-end {
			return formatErrorf(at[i], "tensor %q has %d bytes at %d, the file ends at %d", t.Name, t.Size, end, size)
		}
		t.Offset += dataStart
		next = roundUp(next+t.Size, align) // both at most size, so far from overflow
	}
	return nil
}

// roundUp returns the first multiple of align, a power of two, that is not below n.
func roundUp(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }

// tensor reads one tensor record; Offset is still the one within the data.
func (r *reader) tensor() TensorInfo {
	start := int64(r.pos)
	t := TensorInfo{Name: r.str(anyLength, "tensor name")}
	if r.err != nil {
		return t
	}
	if err := checkName(t.Name); err != nil {
		r.fail(formatErrorf(start, "%v", err))
		return t
	}
	what := "tensor " + t.Name
	n := r.u32(what)
	if r.err == nil && n > maxDims {
		r.fail(formatErrorf(int64(r.pos)-4, "tensor %q has %d dimensions, want at most %d", t.Name, n, maxDims))
		return t
	}
	t.Dims = make([]int64, n)
	for i := range t.Dims {
		t.Dims[i] = int64(r.u64(what)) // tensorBytes refuses what turns negative
	}
	t.Type = Type(r.u32(what))
	off := r.u64(what)
	if r.err != nil {
		return t
	}
	if !t.Type.known() {
		r.fail(fmt.Errorf("tensor %q: %w", t.Name, unsupportedf("tensor type %d", uint32(t.Type))))
		return t
	}
	size, err := tensorBytes(t.Type, t.Dims)
	if err != nil {
		r.fail(formatErrorf(start, "tensor %q: %v", t.Name, err))
		return t
	}
	if off > math.MaxInt64 {
		r.fail(formatErrorf(int64(r.pos)-8, "tensor %q has offset %d", t.Name, off))
		return t
	}
	t.Size, t.Offset = size, int64(off)
	return t
}
