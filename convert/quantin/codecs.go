package quantin

import (
	"encoding/binary"
	"math"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// Weights that share a scale.
const (
	nvfp4Group = 16
	int4Group  = 32
)

// maxSlabs bounds what is read into memory when a checkpoint is opened: the scales of
// the matrices of a stack.
const maxSlabs = 1 << 16

const (
	maxFinite = math.MaxFloat32
	maxF16    = 65504
)

// nvfp4 is E2M1 codes, two a byte, the lower half first.
type nvfp4 struct {
	codes, scales []byte
	factors       []float32 // of slabs
	cols, slab    int64     // of a row; rows of a slab
}

func (c *nvfp4) decode(dst []float32, row int64) {
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	scales := c.scales[row*c.cols/nvfp4Group:]
	factor := c.factors[row/c.slab]
	for g := range int(c.cols / nvfp4Group) {
		d := gguf.E4M3(scales[g]) * factor
		x, q := dst[g*nvfp4Group:][:nvfp4Group], codes[g*nvfp4Group/2:][:nvfp4Group/2]
		for i, b := range q {
			x[2*i] = gguf.E2M1(b) * d
			x[2*i+1] = gguf.E2M1(b>>4) * d
		}
	}
}

// packs: the factors of the slabs are no part of that type, see [Weights.Factors].
func (c *nvfp4) packs() gguf.Type { return gguf.NVFP4 }

// repack moves the codes to ggml's order: within a group, element j and j+8 share a
// byte. Scales are E4M3 on both sides; ggml's have no sign.
func (c *nvfp4) repack(dst []byte, row int64) bool {
	const perBlock = 64 / nvfp4Group
	if c.cols%64 != 0 {
		return false
	}
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	scales := c.scales[row*c.cols/nvfp4Group:][:c.cols/nvfp4Group]
	for g, scale := range scales {
		if scale >= 0x7f { // negative or NaN
			return false
		}
		block := dst[g/perBlock*36:][:36]
		block[g%perBlock] = scale
		in, out := codes[g*8:][:8], block[perBlock+g%perBlock*8:][:8]
		for j := range 8 {
			lo, hi := in[j/2], in[j/2+4]
			out[j] = lo>>(j%2*4)&15 | hi>>(j%2*4)<<4
		}
	}
	return true
}

// Factors returns the factors that NVFP4 weights have beside the scales of their
// groups: one, or one for each matrix of a stack. Nil for other formats.
func (w *Weights) Factors() []float32 {
	if c, ok := w.codec.(*nvfp4); ok {
		return c.factors
	}
	return nil
}

// fp8 is E4M3 numbers with a factor for each block of a matrix.
type fp8 struct {
	codes, scales []byte // scales [slabs, down, across]
	read          func([]byte) float32
	size          int64 // of a scale, bytes
	rows, cols    int64 // of a slab
	block         [2]int64
	down, across  int64 // blocks of a slab
}

func (c *fp8) decode(dst []float32, row int64) {
	codes := c.codes[row*c.cols:][:c.cols]
	slab, r := row/c.rows, row%c.rows
	scales := c.scales[(slab*c.down+r/c.block[0])*c.across*c.size:]
	for b := range c.across {
		d := c.read(scales[b*c.size:])
		from := b * c.block[1]
		to := min(from+c.block[1], c.cols)
		x, q := dst[from:to], codes[from:to]
		for i, code := range q {
			x[i] = gguf.E4M3(code) * d
		}
	}
}

// affine is MLX's codes in 32-bit words, the lowest bits first, which is little-endian
// order for codes of 4 and 8 bits.
type affine struct {
	codes, scales, biases []byte
	read                  func([]byte) float32
	size                  int64 // of a scale, bytes
	cols, group           int64
}

// of returns the scale and the bias of a group of a row.
func (c *affine) of(row, group int64) (scale, bias float32) {
	at := (row*c.cols/c.group + group) * c.size
	return c.read(c.scales[at:]), c.read(c.biases[at:])
}

// affine4 is affine with codes of 4 bits.
type affine4 struct{ affine }

func (c *affine4) decode(dst []float32, row int64) {
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	for g := range c.cols / c.group {
		d, m := c.of(row, g)
		x, q := dst[g*c.group:][:c.group], codes[g*c.group/2:][:c.group/2]
		for i, b := range q {
			x[2*i] = float32(b&15)*d + m
			x[2*i+1] = float32(b>>4)*d + m
		}
	}
}

// packs: Q4_1 has the same form, in blocks of 32 with F16 scales.
func (c *affine4) packs() gguf.Type { return gguf.Q4_1 }

func (c *affine4) repack(dst []byte, row int64) bool {
	const block, bytes = 32, 20
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	for b := range c.cols / block {
		d, m := c.of(row, b*block/c.group)
		out := dst[b*bytes:][:bytes]
		if !putF16(out, d) || !putF16(out[2:], m) {
			return false
		}
		halves(out[4:], codes[b*block/2:][:block/2])
	}
	return true
}

// affine8 is affine with codes of 8 bits.
type affine8 struct{ affine }

func (c *affine8) decode(dst []float32, row int64) {
	codes := c.codes[row*c.cols:][:c.cols]
	for g := range c.cols / c.group {
		d, m := c.of(row, g)
		x, q := dst[g*c.group:][:c.group], codes[g*c.group:][:c.group]
		for i, b := range q {
			x[i] = float32(b)*d + m
		}
	}
}

// int4 is codes of 4 bits in 32-bit words, the lowest first; 8 stands for 0.
type int4 struct {
	codes, scales []byte
	read          func([]byte) float32
	size          int64 // of a scale, bytes
	cols          int64
}

func (c *int4) decode(dst []float32, row int64) {
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	for g := range c.cols / int4Group {
		d := c.read(c.scales[(row*c.cols/int4Group+g)*c.size:])
		x, q := dst[g*int4Group:][:int4Group], codes[g*int4Group/2:][:int4Group/2]
		for i, b := range q {
			x[2*i] = float32(int(b&15)-8) * d
			x[2*i+1] = float32(int(b>>4)-8) * d
		}
	}
}

// packs: Q4_0 has the same codes and blocks, with F16 scales.
func (c *int4) packs() gguf.Type { return gguf.Q4_0 }

func (c *int4) repack(dst []byte, row int64) bool {
	const bytes = 18
	codes := c.codes[row*c.cols/2:][:c.cols/2]
	for g := range c.cols / int4Group {
		out := dst[g*bytes:][:bytes]
		if !putF16(out, c.read(c.scales[(row*c.cols/int4Group+g)*c.size:])) {
			return false
		}
		halves(out[2:], codes[g*int4Group/2:][:int4Group/2])
	}
	return true
}

// halves moves 32 codes of 4 bits from pairs of neighbours to ggml's order, in which
// element j and j+16 share a byte.
func halves(dst, src []byte) {
	for j := range 16 {
		lo, hi := src[j/2], src[j/2+8]
		dst[j] = lo>>(j%2*4)&15 | hi>>(j%2*4)<<4
	}
}

// putF16 stores x if it is an F16 number.
func putF16(dst []byte, x float32) bool {
	if gguf.EncodeRows(gguf.F16, dst[:2], []float32{x}) != nil {
		return false
	}
	var back [1]float32
	return gguf.DecodeRows(gguf.F16, back[:], dst[:2]) == nil && back[0] == x && x >= -maxF16 && x <= maxF16
}

// scalars returns what reads one number of a type, nil if it is none that scales have.
func scalars(d safetensors.DType) func([]byte) float32 {
	le := binary.LittleEndian
	switch d {
	case safetensors.F32:
		return func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }
	case safetensors.BF16:
		return func(b []byte) float32 { return math.Float32frombits(uint32(le.Uint16(b)) << 16) }
	case safetensors.F16:
		return func(b []byte) float32 {
			var x [1]float32
			_ = gguf.DecodeRows(gguf.F16, x[:], b[:2]) // fails on lengths only
			return x[0]
		}
	}
	return nil
}
