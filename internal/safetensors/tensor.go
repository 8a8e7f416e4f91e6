package safetensors

import (
	"fmt"
	"math"
)

// DType is the type of a tensor's elements, spelled as in the header.
type DType string

// The types of the format that checkpoints use. F8_E8M0 holds powers of two
// (block scales), F4 two E2M1 numbers a byte.
const (
	F64     DType = "F64"
	F32     DType = "F32"
	F16     DType = "F16"
	BF16    DType = "BF16"
	F8_E4M3 DType = "F8_E4M3"
	F8_E5M2 DType = "F8_E5M2"
	F8_E8M0 DType = "F8_E8M0"
	F4      DType = "F4"
	I64     DType = "I64"
	I32     DType = "I32"
	I16     DType = "I16"
	I8      DType = "I8"
	U64     DType = "U64"
	U32     DType = "U32"
	U16     DType = "U16"
	U8      DType = "U8"
	Bool    DType = "BOOL"
)

// Bits returns the size of one element in bits, 0 for a type that is not in the list above.
func (d DType) Bits() int {
	switch d {
	case F64, I64, U64:
		return 64
	case F32, I32, U32:
		return 32
	case F16, BF16, I16, U16:
		return 16
	case F8_E4M3, F8_E5M2, F8_E8M0, I8, U8, Bool:
		return 8
	case F4:
		return 4
	}
	return 0
}

// Tensor describes one tensor of a checkpoint.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int64 // row-major, as in the file: the last dimension is the fastest; empty for a scalar
	Shard  string  // name of the file that holds it, without folder
	Offset int64   // of the first byte, from the start of that file
	Size   int64   // bytes
}

// Elems returns the number of elements, which is 1 for a scalar and may be 0.
func (t Tensor) Elems() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// dataBytes returns the size of a tensor's data, or what is wrong with its shape.
func dataBytes(d DType, shape []int64) (int64, error) {
	bits := int64(1)
	for _, n := range append([]int64{int64(d.Bits())}, shape...) {
		if n != 0 && bits > math.MaxInt64/n {
			return 0, fmt.Errorf("shape %v overflows", shape)
		}
		bits *= n
	}
	if bits%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s does not fill whole bytes", shape, d)
	}
	return bits / 8, nil
}
