package gguf

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Limits of ggml itself; its reader refuses, or its C code aborts on, anything beyond.
const (
	maxDims = 4  // GGML_MAX_DIMS
	maxName = 64 // GGML_MAX_NAME, with the closing zero byte
)

// TensorInfo describes one tensor of a file.
type TensorInfo struct {
	Name   string
	Type   Type
	Dims   []int64 // ggml order, ne0 (the row) first; at most 4, each at least 1
	Part   int     // index of the file of a split model, 0 when there is one file
	Offset int64   // of the first byte, from the start of its part's file
	Size   int64   // bytes, without padding
}

// Elems returns the number of elements, which is 1 for a tensor without dimensions.
func (t TensorInfo) Elems() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// tensorBytes returns the size of a tensor's data, or what is wrong with its shape.
func tensorBytes(t Type, dims []int64) (int64, error) {
	if len(dims) > maxDims {
		return 0, fmt.Errorf("%d dimensions, want at most %d", len(dims), maxDims)
	}
	elems := int64(1)
	for i, d := range dims {
		if d <= 0 {
			return 0, fmt.Errorf("dimension %d is %d, want at least 1", i, d)
		}
		if d > math.MaxInt64/elems {
			return 0, fmt.Errorf("shape %v overflows", dims)
		}
		elems *= d
	}
	ne0 := int64(1)
	if len(dims) > 0 {
		ne0 = dims[0]
	}
	row, err := t.RowBytes(ne0)
	if err != nil {
		return 0, err
	}
	rows := elems / ne0
	if rows > math.MaxInt64/row {
		return 0, fmt.Errorf("shape %v of %v overflows", dims, t)
	}
	return rows * row, nil
}

// checkName returns what is wrong with a tensor's name.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("empty tensor name")
	case len(name) >= maxName:
		return fmt.Errorf("tensor name of %d bytes, want less than %d", len(name), maxName)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("tensor name %q has a zero byte", name) // would end the C string
	}
	return nil
}
