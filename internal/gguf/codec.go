package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// EncodeRows converts float32 values to type t, one of F32, F16, BF16, Q8_0 and NVFP4.
// src holds whole rows, that is a multiple of t's block; dst has exactly the bytes
// they take. F16 and BF16 round to nearest, ties to even; Q8_0 is ggml's
// quantize_row_q8_0_ref, except that a value which is not finite or does not fit
// the scale is an error, as it is for NVFP4.
func EncodeRows(t Type, dst []byte, src []float32) error {
	if err := checkRows(t, len(src), len(dst)); err != nil {
		return err
	}
	switch t {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case F16:
		encodeF16(dst, src)
	case BF16:
		encodeBF16(dst, src)
	case Q8_0:
		return encodeQ8_0(dst, src)
	case NVFP4:
		return encodeNVFP4(dst, src)
	default:
		return unsupportedf("encoding %v", t)
	}
	return nil
}

// DecodeRows converts values of type t, one of F32, F16, BF16, Q8_0, Q4_0, NVFP4 and
// MXFP4, to float32. dst holds whole rows; src has exactly the bytes they take.
func DecodeRows(t Type, dst []float32, src []byte) error {
	if err := checkRows(t, len(dst), len(src)); err != nil {
		return err
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F16:
		decodeF16(dst, src)
	case BF16:
		decodeBF16(dst, src)
	case Q8_0:
		decodeQ8_0(dst, src)
	case Q4_0:
		decodeQ4_0(dst, src)
	case NVFP4:
		decodeNVFP4(dst, src)
	case MXFP4:
		decodeMXFP4(dst, src)
	default:
		return unsupportedf("decoding %v", t)
	}
	return nil
}

// checkRows checks that n elements of t take size bytes.
func checkRows(t Type, n, size int) error {
	elems, bytes := t.Block()
	switch {
	case elems == 0:
		return unsupportedf("tensor type %d", uint32(t))
	case int64(n)%elems != 0:
		return fmt.Errorf("%d elements are not a multiple of %v's block of %d", n, t, elems)
	case int64(n)/elems*bytes != int64(size):
		return fmt.Errorf("%d elements of %v with %d bytes, want %d", n, t, size, int64(n)/elems*bytes)
	}
	return nil
}
