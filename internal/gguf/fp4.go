package gguf

import (
	"fmt"
	"math"
)

// Blocks of four-bit floats. MXFP4: the scale as a power of two, then the codes of
// 32 elements. NVFP4: four scales of 16 elements each, then the codes of the 64.
const (
	mxfp4Elems, mxfp4Bytes = 32, 17
	nvfp4Elems, nvfp4Bytes = 64, 36
	nvfp4Group             = 16 // elements of a scale
)

// e2m1 has the values of the 16 codes of a four-bit float: a sign, two bits of
// exponent, one of mantissa.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}

// E2M1 returns the value of a four-bit float; only the low half of code counts.
func E2M1(code byte) float32 { return e2m1[code&15] }

// E4M3 returns the value of an eight-bit float: a sign, four bits of exponent with
// bias 7, three of mantissa. 0x7f and 0xff are NaN; there is no infinity.
//
// Source: OCP 8-bit floating point specification, type E4M3.
func E4M3(b byte) float32 { return e4m3[b] }

// e4m3 has the values of all E4M3 codes.
var e4m3 = func() (t [256]float32) {
	for b := range t {
		exp, man := b>>3&15, float64(b&7)
		v := math.Ldexp(1+man/8, exp-7)
		switch {
		case exp == 0:
			v = math.Ldexp(man, -9)
		case b&0x7f == 0x7f:
			v = math.NaN()
		}
		if b&0x80 != 0 {
			v = -v
		}
		t[b] = float32(v)
	}
	return t
}()

// maxE4M3 is the largest finite E4M3 number.
const maxE4M3 = 448

// ToE4M3 rounds x, which must not be negative or NaN, to the nearest E4M3 number,
// ties to the even code. More than 448 becomes 448.
func ToE4M3(x float32) byte {
	lo, hi := 0, 0x7e // the codes order as their values do
	for lo < hi {
		if mid := (lo + hi + 1) / 2; e4m3[mid] <= x {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo == 0x7e {
		return 0x7e
	}
	below, above := x-e4m3[lo], e4m3[lo+1]-x
	if above < below || above == below && lo&1 == 1 {
		lo++
	}
	return byte(lo)
}

// toE2M1 returns the code nearest to x, ties to the even code.
func toE2M1(x float32) byte {
	sign := byte(0)
	if x < 0 {
		x, sign = -x, 8
	}
	switch {
	case x <= 0.25:
		return sign
	case x < 0.75:
		return sign | 1
	case x <= 1.25:
		return sign | 2
	case x < 1.75:
		return sign | 3
	case x <= 2.5:
		return sign | 4
	case x < 3.5:
		return sign | 5
	case x <= 5:
		return sign | 6
	}
	return sign | 7
}

// encodeNVFP4 writes blocks of NVFP4. A scale is the largest magnitude of its 16
// elements divided by 6, the largest E2M1 number, as E4M3.
func encodeNVFP4(dst []byte, src []float32) error {
	for b := 0; len(src) > 0; b++ {
		for g := range nvfp4Elems / nvfp4Group {
			x := src[g*nvfp4Group:][:nvfp4Group]
			var most float32
			for _, v := range x {
				most = max(most, float32(math.Abs(float64(v))))
			}
			if !(most <= 6*maxE4M3) {
				return fmt.Errorf("nvfp4 block %d: largest magnitude is %g, want at most %d", b, most, 6*maxE4M3)
			}
			code := ToE4M3(most / 6)
			scale := float32(0)
			if code != 0 {
				scale = 1 / e4m3[code]
			}
			dst[g] = code
			q := dst[4+g*nvfp4Group/2:][:nvfp4Group/2]
			for i := range q {
				q[i] = toE2M1(x[i]*scale) | toE2M1(x[i+nvfp4Group/2]*scale)<<4
			}
		}
		src, dst = src[nvfp4Elems:], dst[nvfp4Bytes:]
	}
	return nil
}

// DecodeRows64 is [DecodeRows] in float64 for the four-bit float types, NVFP4 and
// MXFP4, and through float32 for the others. All numbers of these types are exact
// in float64.
func DecodeRows64(t Type, dst []float64, src []byte) error {
	if err := checkRows(t, len(dst), len(src)); err != nil {
		return err
	}
	switch t {
	case NVFP4:
		decodeNVFP4(dst, src)
	case MXFP4:
		decodeMXFP4(dst, src)
	default:
		x := make([]float32, len(dst))
		if err := DecodeRows(t, x, src); err != nil {
			return err
		}
		for i, v := range x {
			dst[i] = float64(v)
		}
	}
	return nil
}

// decodeNVFP4 reads blocks of NVFP4: byte j of a group has element j in its low half
// and element j+8 in the high one.
func decodeNVFP4[T float32 | float64](dst []T, src []byte) {
	for ; len(dst) > 0; dst, src = dst[nvfp4Elems:], src[nvfp4Bytes:] {
		for g := range nvfp4Elems / nvfp4Group {
			d := T(e4m3[src[g]&0x7f])
			x, q := dst[g*nvfp4Group:], src[4+g*nvfp4Group/2:][:nvfp4Group/2]
			for i, b := range q {
				x[i] = T(e2m1[b&15]) * d
				x[i+nvfp4Group/2] = T(e2m1[b>>4]) * d
			}
		}
	}
}

// decodeMXFP4 reads blocks of MXFP4: byte j has element j in its low half and element
// j+16 in the high one; the scale is 2^(e-127).
func decodeMXFP4[T float32 | float64](dst []T, src []byte) {
	for ; len(dst) > 0; dst, src = dst[mxfp4Elems:], src[mxfp4Bytes:] {
		d := T(math.Ldexp(1, int(src[0])-127))
		for i, b := range src[1:mxfp4Bytes] {
			dst[i] = T(e2m1[b&15]) * d
			dst[i+mxfp4Elems/2] = T(e2m1[b>>4]) * d
		}
	}
}
