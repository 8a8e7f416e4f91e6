package checkpointtest

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// The encoders below are written from the definitions of the formats, by searching
// over all codes, and not from the decoders that they test.

// values returns the numbers of a BF16 or F32 tensor.
func (x *Tensor) values(t testing.TB) []float64 {
	t.Helper()
	var v []float64
	switch x.DType {
	case safetensors.BF16:
		for i := 0; i < len(x.Data); i += 2 {
			v = append(v, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(x.Data[i:]))<<16)))
		}
	case safetensors.F32:
		for i := 0; i < len(x.Data); i += 4 {
			v = append(v, float64(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:]))))
		}
	default:
		t.Fatalf("%s is %s", x.Name, x.DType)
	}
	return v
}

// e4m3s are the values of the codes below 0x7f, from exponent and mantissa.
var e4m3s = func() (t [0x7f]float64) {
	for code := range t {
		exp, man := code>>3, float64(code&7)
		if t[code] = man * math.Pow(2, -9); exp > 0 {
			t[code] = (1 + man/8) * math.Pow(2, float64(exp-7))
		}
	}
	return t
}()

func e4m3(code int) float64 { return e4m3s[code] }

// toE4M3 finds the nearest code, by trying all.
func toE4M3(x float64) byte {
	best := 0
	for code := range 0x7f {
		if math.Abs(e4m3(code)-math.Abs(x)) < math.Abs(e4m3(best)-math.Abs(x)) {
			best = code
		}
	}
	if x < 0 {
		best |= 0x80
	}
	return byte(best)
}

// toE2M1 finds the nearest code, by trying all.
func toE2M1(x float64) byte {
	best := 0
	for code, v := range []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		if math.Abs(v-math.Abs(x)) < math.Abs([]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[best]-math.Abs(x)) {
			best = code
		}
	}
	if x < 0 {
		best |= 8
	}
	return byte(best)
}

func largest(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	return m
}

func f32s(v ...float64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

// toBF16 rounds to BF16 and returns the rounded value too.
func toBF16(x float64) (uint16, float64) {
	u := math.Float32bits(float32(x))
	h := uint16((u + 0x7fff + u>>16&1) >> 16)
	return h, float64(math.Float32frombits(uint32(h) << 16))
}

// replace puts tensors in the place of one.
func (c *Checkpoint) replace(x *Tensor, with ...*Tensor) {
	i := slices.Index(c.Tensors, x)
	c.Tensors = slices.Concat(c.Tensors[:i], with, c.Tensors[i+1:])
}

// NVFP4 quantises a tensor as NVIDIA's ModelOpt does, or with inverse as
// compressed-tensors does: E2M1 codes, low nibble first, an E4M3 scale for 16 weights,
// and a scale for each matrix of a stack.
func (c *Checkpoint) NVFP4(t testing.TB, name string, inverse bool) {
	t.Helper()
	x := c.Get(t, name)
	v := x.values(t)
	cols := int(x.Shape[len(x.Shape)-1])
	slabs := 1
	if len(x.Shape) == 3 {
		slabs = int(x.Shape[0])
	}
	var codes, scales, globals []byte
	for s := range slabs {
		slab := v[s*len(v)/slabs:][:len(v)/slabs]
		global := float64(float32(largest(slab) / (6 * 448)))
		if inverse {
			globals = append(globals, f32s(1/global)...)
		} else {
			globals = append(globals, f32s(global)...)
		}
		for ; len(slab) > 0; slab = slab[16:] {
			scale := toE4M3(largest(slab[:16]) / 6 / global)
			scales = append(scales, scale)
			d := max(e4m3(int(scale))*global, 1e-30)
			for i := 0; i < 16; i += 2 {
				codes = append(codes, toE2M1(slab[i]/d)|toE2M1(slab[i+1]/d)<<4)
			}
		}
	}
	shape := func(last int) []int64 { return append(slices.Clone(x.Shape[:len(x.Shape)-1]), int64(last)) }
	if inverse {
		base := strings.TrimSuffix(name, ".weight")
		c.replace(x,
			&Tensor{base + ".weight_packed", safetensors.U8, shape(cols / 2), codes},
			&Tensor{base + ".weight_scale", safetensors.F8_E4M3, shape(cols / 16), scales},
			&Tensor{base + ".weight_global_scale", safetensors.F32, []int64{int64(slabs)}, globals},
			&Tensor{base + ".input_global_scale", safetensors.F32, []int64{1}, f32s(1)})
		return
	}
	c.replace(x,
		&Tensor{name, safetensors.U8, shape(cols / 2), codes},
		&Tensor{name + ".scale", safetensors.F8_E4M3, shape(cols / 16), scales},
		&Tensor{name + ".scale2", safetensors.F32, []int64{int64(slabs)}, globals},
		&Tensor{name + ".input_amax", safetensors.F32, []int64{1}, f32s(1)})
}

// FP8 quantises a matrix or stack in square blocks of some size.
func (c *Checkpoint) FP8(t testing.TB, name string, block int) {
	t.Helper()
	x := c.Get(t, name)
	v := x.values(t)
	n := len(x.Shape)
	rows, cols := int(x.Shape[n-2]), int(x.Shape[n-1])
	slabs := len(v) / rows / cols
	down, across := (rows+block-1)/block, (cols+block-1)/block
	codes, scales := make([]byte, len(v)), make([]float64, slabs*down*across)
	at := func(i int) int { return i/rows/cols*down*across + i/cols%rows/block*across + i%cols/block }
	for i, w := range v {
		scales[at(i)] = max(scales[at(i)], math.Abs(w)/448)
	}
	for i, w := range v {
		codes[i] = toE4M3(w / max(scales[at(i)], 1e-30))
	}
	c.replace(x,
		&Tensor{name, safetensors.F8_E4M3, x.Shape, codes},
		&Tensor{name + "_scale_inv", safetensors.F32, append(slices.Clone(x.Shape[:n-2]), int64(down), int64(across)), f32s(scales...)})
}

// Affine quantises a tensor as MLX does: codes of 4 or 8 bits with a scale and a bias
// for each group. The module's path is the name without ".weight", which it gets.
func (c *Checkpoint) Affine(t testing.TB, name string, bits, group int) {
	t.Helper()
	x := c.Get(t, name)
	path := strings.TrimSuffix(name, ".weight")
	v := x.values(t)
	cols := int(x.Shape[len(x.Shape)-1])
	most := float64(int(1)<<bits - 1)
	var codes, scales, biases []byte
	var word uint32
	for i := 0; i < len(v); i += group {
		g := v[i:][:group]
		scale, d := toBF16((slices.Max(g) - slices.Min(g)) / most)
		bias, m := toBF16(slices.Min(g))
		scales = binary.LittleEndian.AppendUint16(scales, scale)
		biases = binary.LittleEndian.AppendUint16(biases, bias)
		for j, w := range g {
			q := uint32(min(max(math.Round((w-m)/max(d, 1e-30)), 0), most))
			word |= q << (j * bits % 32)
			if (j+1)*bits%32 == 0 {
				codes, word = binary.LittleEndian.AppendUint32(codes, word), 0
			}
		}
	}
	shape := func(last int) []int64 { return append(slices.Clone(x.Shape[:len(x.Shape)-1]), int64(last)) }
	c.replace(x,
		&Tensor{path + ".weight", safetensors.U32, shape(cols * bits / 32), codes},
		&Tensor{path + ".scales", safetensors.BF16, shape(cols / group), scales},
		&Tensor{path + ".biases", safetensors.BF16, shape(cols / group), biases})
}

// INT4 quantises a matrix as compressed-tensors' pack-quantized does, in groups of 32.
func (c *Checkpoint) INT4(t testing.TB, name string) {
	t.Helper()
	x := c.Get(t, name)
	base := strings.TrimSuffix(name, ".weight")
	v := x.values(t)
	rows, cols := x.Shape[0], x.Shape[1]
	var codes, scales []byte
	for ; len(v) > 0; v = v[32:] {
		scale, d := toBF16(largest(v[:32]) / 7)
		scales = binary.LittleEndian.AppendUint16(scales, scale)
		for i := 0; i < 32; i += 8 {
			var word uint32
			for j, w := range v[i:][:8] {
				q := min(max(math.Round(w/max(d, 1e-30)), -8), 7)
				word |= uint32(q+8) << (4 * j)
			}
			codes = binary.LittleEndian.AppendUint32(codes, word)
		}
	}
	var size []byte
	for _, n := range []int64{rows, cols} {
		size = binary.LittleEndian.AppendUint32(size, uint32(n))
	}
	c.replace(x,
		&Tensor{base + ".weight_packed", safetensors.I32, []int64{rows, cols / 8}, codes},
		&Tensor{base + ".weight_scale", safetensors.BF16, []int64{rows, cols / 32}, scales},
		&Tensor{base + ".weight_shape", safetensors.I32, []int64{2}, size})
}
