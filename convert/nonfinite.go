package convert

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// lanes holds, for the elements of a float type side by side in a 64-bit word,
// the bits of their exponents, the lowest bit of each exponent, and their signs.
type lanes struct {
	exp, low, sign uint64
}

// floatLanes has the layouts of the float types (IEEE 754, and bfloat16).
var floatLanes = map[safetensors.DType]lanes{
	safetensors.F64:  {0x7ff0_0000_0000_0000, 0x0010_0000_0000_0000, 0x8000_0000_0000_0000},
	safetensors.F32:  {0x7f80_0000_7f80_0000, 0x0080_0000_0080_0000, 0x8000_0000_8000_0000},
	safetensors.BF16: {0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000},
	safetensors.F16:  {0x7c00_7c00_7c00_7c00, 0x0400_0400_0400_0400, 0x8000_8000_8000_8000},
}

// countNonFinite counts the elements that are NaN or infinite: those with all
// bits of the exponent set. Every byte of a checkpoint goes through here, so it
// works on words: adding the lowest bit to an exponent of ones, and to no other,
// carries into the place of the sign.
func countNonFinite(d safetensors.DType, b []byte) int64 {
	l := floatLanes[d]
	le := binary.LittleEndian
	n := 0
	for ; len(b) >= 32; b = b[32:] { // four words at once: nearly always none is bad
		w0, w1 := le.Uint64(b)&l.exp+l.low, le.Uint64(b[8:])&l.exp+l.low
		w2, w3 := le.Uint64(b[16:])&l.exp+l.low, le.Uint64(b[24:])&l.exp+l.low
		if (w0|w1|w2|w3)&l.sign != 0 {
			n += bits.OnesCount64(w0&l.sign) + bits.OnesCount64(w1&l.sign)
			n += bits.OnesCount64(w2&l.sign) + bits.OnesCount64(w3&l.sign)
		}
	}
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64((le.Uint64(b)&l.exp + l.low) & l.sign)
	}
	var tail [8]byte // zeros are finite
	copy(tail[:], b)
	n += bits.OnesCount64((le.Uint64(tail[:])&l.exp + l.low) & l.sign)
	return int64(n)
}

// storedAs returns the GGUF type with the same layout as a checkpoint type.
func storedAs(d safetensors.DType) (gguf.Type, bool) {
	switch d {
	case safetensors.F32:
		return gguf.F32, true
	case safetensors.F16:
		return gguf.F16, true
	case safetensors.BF16:
		return gguf.BF16, true
	}
	return 0, false
}

// countNonFiniteOut is countNonFinite of encoded weights; 0 for block types.
func countNonFiniteOut(t gguf.Type, b []byte) int64 {
	for d := range floatLanes {
		if same, ok := storedAs(d); ok && same == t {
			return countNonFinite(d, b)
		}
	}
	return 0
}

// largest returns the largest magnitude that a block type takes. ggml's scales are
// F16 numbers.
func largest(t gguf.Type) float64 {
	switch t {
	case gguf.Q8_0:
		return 127 * 65504
	case gguf.NVFP4:
		return 6 * 448
	}
	return 65504
}

// countBeyond counts the finite weights that are too large for a block type.
func countBeyond(o *target, x []float32, row int64) int64 {
	var n int64
	for i, v := range x {
		limit := largest(o.to)
		if o.factors != nil {
			m, _ := o.matrix(row + int64(i)/o.ne0)
			limit *= float64(o.factors[m%len(o.factors)])
		}
		if a := math.Abs(float64(v)); a > limit && a <= math.MaxFloat32 {
			n++
		}
	}
	return n
}

// nonFinite counts the weights that are NaN or infinite.
func nonFinite(x []float32) int64 {
	var n int64
	for _, v := range x {
		if v-v != 0 {
			n++
		}
	}
	return n
}
