package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Blocks of both types: the scale as F16, then the quants of 32 elements.
const (
	qk        = 32 // QK8_0 and QK4_0 in ggml-common.h
	q8_0Bytes = 2 + qk
	q4_0Bytes = 2 + qk/2
)

const maxF16 = 65504 // the largest finite F16

// encodeQ8_0 writes blocks of d = max|x|/127 and round(x/d), halves away from zero.
//
// Source: quantize_row_q8_0_ref in ggml-quants.c; its quotient is a product with
// 1/d, and the quants use d before it is rounded to F16.
func encodeQ8_0(dst []byte, src []float32) error {
	for b := 0; len(src) > 0; b++ {
		x, y := src[:qk], dst[:q8_0Bytes]
		src, dst = src[qk:], dst[q8_0Bytes:]
		var most uint32 // bits of the largest magnitude: they order as the floats do, NaN above all
		for _, v := range x {
			most = max(most, math.Float32bits(v)&^f32Sign)
		}
		d := math.Float32frombits(most) / 127
		if !(d <= maxF16) {
			return fmt.Errorf("q8_0 block %d: largest magnitude is %g, want at most %d", b,
				math.Float32frombits(most), 127*maxF16)
		}
		var id float32
		if d > 0x1p-128 { // below, 1/d is infinite, and d is 0 as F16 anyway
			id = 1 / d
		}
		binary.LittleEndian.PutUint16(y, toF16(d))
		y = y[2:]
		for i, v := range x {
			y[i] = uint8(round(v * id))
		}
	}
	return nil
}

// round returns the integer nearest to x, halves away from zero, as C's roundf.
// The sum is exact in float64; in float32 it would round 0.49999997 up.
func round(x float32) int32 {
	return int32(float64(x) + math.Copysign(0.5, float64(x)))
}

// decodeQ8_0 is dequantize_row_q8_0 in ggml-quants.c.
func decodeQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[qk:], src[q8_0Bytes:] {
		d := fromF16(binary.LittleEndian.Uint16(src))
		x, q := dst[:qk], src[2:q8_0Bytes]
		for i := range x {
			x[i] = float32(int8(q[i])) * d
		}
	}
}

// decodeQ4_0 is dequantize_row_q4_0 in ggml-quants.c: the low halves of the bytes
// are the first 16 elements, the high halves the last 16.
func decodeQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[qk:], src[q4_0Bytes:] {
		d := fromF16(binary.LittleEndian.Uint16(src))
		x, q := dst[:qk], src[2:q4_0Bytes]
		for i, b := range q {
			x[i] = float32(int(b&15)-8) * d
			x[i+qk/2] = float32(int(b>>4)-8) * d
		}
	}
}
