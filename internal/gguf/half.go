package gguf

import (
	"encoding/binary"
	"math"
)

// Bits of float32 numbers that matter to the conversions below.
const (
	f32Sign = 1 << 31
	f32Inf  = 0xff << 23

	f16Overflow  = (127 + 16) << 23 // 2^16: every float32 from here on is beyond F16
	f16MinNormal = (127 - 14) << 23 // 2^-14
	f16Denorm    = (127 - 1) << 23  // 0.5: its last bit is worth 2^-24, the smallest F16
	f16Rebias    = (127 - 15) << 23
)

// Conversion between float32 and F16 has a common case, the normal numbers of
// F16, that the compiler inlines into the loops at the end of this file, and the
// rest, which it does not.
//
// Source: F. Giesen, float_to_half_fast3_rtne and half_to_float_fast5 (public domain).

// toF16 rounds to nearest, ties to even. A NaN keeps its sign and the top of its
// payload and becomes quiet, as the F16C instructions do it.
func toF16(x float32) uint16 {
	u := math.Float32bits(x)
	if isRare32(u) {
		return toF16Rare(u)
	}
	return toF16Normal(u)
}

// isRare32 reports whether the float32 with bits u is outside of [2^-14, 2^16).
func isRare32(u uint32) bool {
	return u&^f32Sign-f16MinNormal >= f16Overflow-f16MinNormal
}

// toF16Normal rounds by adding just below a half, plus one if the result would be
// odd. A carry out of the mantissa raises the exponent, up to infinity.
func toF16Normal(u uint32) uint16 {
	v := u &^ f32Sign
	return uint16(u>>16&0x8000 | (v+v>>13&1+0xfff-f16Rebias)>>13)
}

func toF16Rare(u uint32) uint16 {
	sign := uint16(u >> 16 & 0x8000)
	u &^= f32Sign
	switch {
	case u < f16MinNormal:
		// Subnormal or zero: an addition to 0.5 shifts and rounds the mantissa.
		f := math.Float32frombits(u) + math.Float32frombits(f16Denorm)
		return sign | uint16(math.Float32bits(f)-f16Denorm)
	case u > f32Inf:
		return sign | 0x7e00 | uint16(u>>13&0x1ff)
	}
	return sign | 0x7c00
}

// fromF16 is exact. A NaN keeps its payload and becomes quiet.
func fromF16(h uint16) float32 {
	if isRare16(h) {
		return fromF16Rare(h)
	}
	return fromF16Normal(h)
}

// isRare16 reports whether h is zero, subnormal, infinite or NaN.
func isRare16(h uint16) bool { return h&0x7c00-0x400 >= 0x7800 }

func fromF16Normal(h uint16) float32 {
	return math.Float32frombits(uint32(h&0x8000)<<16 | uint32(h&0x7fff)<<13 + f16Rebias)
}

func fromF16Rare(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	u := uint32(h&0x7fff) << 13
	switch {
	case h&0x7c00 == 0:
		// Give the mantissa the leading one of 2^-14 and take it off as a float.
		f := math.Float32frombits(u+f16MinNormal) - math.Float32frombits(f16MinNormal)
		u = math.Float32bits(f)
	case h&0x3ff == 0:
		u = f32Inf
	default:
		u |= f32Inf | 1<<22
	}
	return math.Float32frombits(sign | u)
}

// toBF16 rounds to nearest, ties to even. A NaN keeps its sign and the top of its
// payload and becomes quiet.
func toBF16(x float32) uint16 {
	u := math.Float32bits(x)
	if u&^f32Sign > f32Inf {
		return uint16(u>>16) | 1<<6 // rounding could carry it into infinity
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// fromBF16 is exact, payloads of NaNs included.
func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// The loops below take two bytes an element; checkRows has compared the lengths.

func encodeF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, x := range src {
		u := math.Float32bits(x)
		h := toF16Normal(u)
		if isRare32(u) {
			h = toF16Rare(u)
		}
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], h)
	}
}

func decodeF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		h := binary.LittleEndian.Uint16(src[2*i : 2*i+2])
		x := fromF16Normal(h)
		if isRare16(h) {
			x = fromF16Rare(h)
		}
		dst[i] = x
	}
}

func encodeBF16(dst []byte, src []float32) {
	dst = dst[:2*len(src)]
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], toBF16(x))
	}
}

func decodeBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = fromBF16(binary.LittleEndian.Uint16(src[2*i : 2*i+2]))
	}
}
