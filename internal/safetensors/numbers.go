package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Floats returns the elements of an F32, F16, BF16 or F64 tensor in file order, as
// a copy; F64 is rounded. Other types are an [UnsupportedError]. It is meant for
// small tensors: weights stream through [Checkpoint.Bytes].
func (c *Checkpoint) Floats(t Tensor) ([]float32, error) {
	b, err := c.data(t)
	if err != nil {
		return nil, err
	}
	out := make([]float32, t.Elems())
	switch t.DType {
	case F64:
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
	case F32:
		err = gguf.DecodeRows(gguf.F32, out, b)
	case F16:
		err = gguf.DecodeRows(gguf.F16, out, b)
	case BF16:
		err = gguf.DecodeRows(gguf.BF16, out, b)
	default:
		err = unsupportedf("%s as floats", t.DType)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.Shard, t.Name, err)
	}
	return out, nil
}

// Ints returns the elements of a tensor of one of the integer types or BOOL in
// file order, as a copy. Other types, and a U64 beyond int64, are an
// [UnsupportedError].
func (c *Checkpoint) Ints(t Tensor) ([]int64, error) {
	b, err := c.data(t)
	if err != nil {
		return nil, err
	}
	read := intReader(t.DType)
	if read == nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.Shard, t.Name, unsupportedf("%s as integers", t.DType))
	}
	out := make([]int64, t.Elems())
	size := t.DType.Bits() / 8
	for i := range out {
		out[i] = read(b[i*size:])
		if t.DType == U64 && out[i] < 0 {
			return nil, fmt.Errorf("%s: tensor %q: %w", t.Shard, t.Name,
				unsupportedf("element %d is %d, more than int64 holds", i, uint64(out[i])))
		}
	}
	return out, nil
}

// intReader returns the function that reads one element, nil if d is no integer type.
func intReader(d DType) func([]byte) int64 {
	le := binary.LittleEndian
	switch d {
	case I64, U64:
		return func(b []byte) int64 { return int64(le.Uint64(b)) }
	case I32:
		return func(b []byte) int64 { return int64(int32(le.Uint32(b))) }
	case U32:
		return func(b []byte) int64 { return int64(le.Uint32(b)) }
	case I16:
		return func(b []byte) int64 { return int64(int16(le.Uint16(b))) }
	case U16:
		return func(b []byte) int64 { return int64(le.Uint16(b)) }
	case I8:
		return func(b []byte) int64 { return int64(int8(b[0])) }
	case U8, Bool:
		return func(b []byte) int64 { return int64(b[0]) }
	}
	return nil
}

// data returns the bytes of t and checks that t is a tensor of this checkpoint, so
// that its shape fits them.
func (c *Checkpoint) data(t Tensor) ([]byte, error) {
	b := c.Bytes(t)
	if size, err := dataBytes(t.DType, t.Shape); b == nil || err != nil || size != t.Size {
		return nil, fmt.Errorf("%s: tensor %q is not of this checkpoint, or it is closed", t.Shard, t.Name)
	}
	return b, nil
}
