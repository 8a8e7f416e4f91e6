package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// fusedTypes are the types of weights that FusedProducts must have, by name: those of
// the recipes.
var fusedTypes = map[string]binding.DType{
	"f32": binding.F32, "f16": binding.F16, "bf16": binding.BF16, "q8_0": binding.Q8_0,
	"q4_0": 2, "q3_K": 11, "q4_K": 12, "q5_K": 13, "q6_K": 14, "iq3_xxs": 18, "iq4_xs": 23, "mxfp4": 39,
}

// matrices declares weights of a type and returns what their bytes stand for. Quantised
// ones are blocks of a small matrix in any order: some types take long to quantise.
func (b *bench) matrices(t binding.DType, ne ...int64) (*binding.Tensor, []float32) {
	b.t.Helper()
	values := make([]float32, product(ne))
	raw := make([]byte, int64(len(values))/t.BlockSize()*t.Size())
	if t.Quantized() {
		const some = 64
		blocks := make([]byte, some*t.Size())
		if err := binding.Quantise(t, blocks, b.floats(1, some*t.BlockSize()), t.BlockSize(), nil); err != nil {
			b.t.Fatal(err)
		}
		for at := int64(0); at < int64(len(raw)); at += t.Size() {
			i := b.rng.Int64N(some)
			copy(raw[at:], blocks[i*t.Size():(i+1)*t.Size()])
		}
		if err := binding.Dequantise(t, values, raw); err != nil {
			b.t.Fatal(err)
		}
	}
	for i := range values {
		switch t {
		case binding.F32:
			values[i] = b.rng.Float32()*2 - 1
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(values[i]))
		case binding.F16:
			values[i] = float32(b.rng.IntN(2048)-1024) / 1024
			binary.LittleEndian.PutUint16(raw[2*i:], f16(values[i]))
		case binding.BF16:
			values[i] = math.Float32frombits(math.Float32bits(b.rng.Float32()*2-1) &^ 0xFFFF)
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(math.Float32bits(values[i])>>16))
		}
	}
	p, err := b.mem.New(fmt.Sprint("w", len(b.set)), t, ne...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.set = append(b.set, func() { p.SetBytes(raw, 0) })
	return p, values
}

// times is w·x in float64 for one row of x; spread is the norm of each sum's products.
func times(w []float32, x []float64) (y, spread []float64) {
	for r := 0; r < len(w); r += len(x) {
		sum, square := 0.0, 0.0
		for i, v := range x {
			p := float64(w[r+i]) * v
			sum += p
			square += p * p
		}
		y, spread = append(y, sum), append(spread, math.Sqrt(square))
	}
	return y, spread
}

// fusedRounding bounds what rounding x to 8 bits makes of a sum, by the norm of its
// products. Values of x are spread evenly over ±1 and the largest of 32 is nearly 1:
// steps of 1/127, errors of 1/127/√12 against values of 1/√3, 0.4 %, and 5 sigma of that.
const fusedRounding = 2e-2

func TestFusedProducts(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			k, n  int64
			types []string
			rows  []int64
		}{
			{4096, 1, []string{"q4_K", "q4_K", "q5_K", "q4_K"}, []int64{4096, 1024, 1024, 512}},
			{4096, 2, []string{"q5_K", "q6_K"}, []int64{300, 7}},
			{4096, 5, []string{"q4_K", "q4_K", "q5_K", "q4_K"}, []int64{64, 16, 16, 8}},
			{2048, 8, []string{"iq3_xxs", "q5_K"}, []int64{77, 12}},
			{16384, 1, []string{"iq3_xxs"}, []int64{501}},
			{16384, 3, []string{"q4_K"}, []int64{133}},
			{6144, 1, []string{"q6_K"}, []int64{3000}},
			{6144, 4, []string{"q6_K"}, []int64{300}},
			{7168, 1, []string{"q4_K", "q5_K"}, []int64{576, 1536}},
			{5120, 1, []string{"q4_K"}, []int64{41}},
			{6144, 1, []string{"q3_K"}, []int64{40}},
			{512, 1, []string{"q4_K"}, []int64{96}},
			{4096, 1, []string{"f32"}, []int64{258}},
			{4096, 8, []string{"f32"}, []int64{258}},
			{4096, 1, []string{"bf16", "bf16", "f16"}, []int64{2048, 2050, 5}},
			{192, 3, []string{"f32", "bf16"}, []int64{7, 9}},
		} {
			t.Run(fmt.Sprintf("%v of %v, %d rows of %d", c.types, c.rows, c.n, c.k), func(t *testing.T) {
				testFusedProducts(t, be, c.k, c.n, c.types, c.rows)
			})
		}
		for name := range fusedTypes {
			for _, n := range []int64{1, 3} {
				t.Run(fmt.Sprintf("%s, %d rows", name, n), func(t *testing.T) {
					testFusedProducts(t, be, 2048, n, []string{name}, []int64{130})
				})
			}
		}
	})
}

// TestFusedProductsRefused: rows that are not whole copies of 16 bytes, and more rows than
// the kernels take, are left to the composition.
func TestFusedProductsRefused(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			name string
			k, n int64
		}{{"q6_K", 256, 1}, {"iq3_xxs", 7168, 1}, {"q4_K", 256, 9}, {"f32", 250, 1}} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, be)
				w, _ := b.matrices(fusedTypes[c.name], c.k, 4)
				if _, ok := FusedProducts(b.g, b.input(b.floats(1, c.k, c.n), c.k, c.n), w); ok {
					t.Error("supported")
				}
			})
		}
	})
}

func testFusedProducts(t *testing.T, be *binding.Backend, k, n int64, types []string, rows []int64) {
	b := newBench(t, be)
	x := b.floats(1, k, n)
	var w []*binding.Tensor
	var values [][]float32
	exact := true
	for i, name := range types {
		p, v := b.matrices(fusedTypes[name], k, rows[i])
		w, values = append(w, p), append(values, v)
		exact = exact && !fusedTypes[name].Quantized()
	}
	y, ok := FusedProducts(b.g, b.input(x, k, n), w...)
	if !ok {
		t.Fatal("not supported")
	}
	got := b.run(y)[0]
	var off, bound []float64
	at := 0
	for c := range n {
		row := wide(x[c*k : (c+1)*k])
		for _, v := range values {
			want, spread := times(v, row)
			for i := range want {
				off = append(off, (float64(got[at])-want[i])/spread[i])
				at++
			}
		}
	}
	bound = make([]float64, len(off))
	limit := fusedRounding
	if exact {
		limit = 1e-5 // sums of f32
	}
	closeTo(t, "difference by the norm of the products", narrow(off), bound, limit)
}

// multipliesTiles reports whether the device has the kernel for experts of many rows whose
// type takes the least shared memory.
func multipliesTiles(t *testing.T, be *binding.Backend) bool {
	b := newBench(t, be)
	bank := func() *binding.Tensor { w, _ := b.matrices(fusedTypes["q4_K"], 256, 256, 2); return w }
	const n = maxFusedChoices + 1
	_, ok := FusedExperts(b.g, b.input(b.floats(1, 256, n), 256, n), b.inputI32(make([]int32, n), 1, n), b.input(b.floats(1, 1, n), 1, n), bank(), bank(), bank(), nil, nil, nil)
	return ok
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// TestFusedExperts: h is compared by way of the sum, whose rounding is that of both
// products: of x, and of h.
func TestFusedExperts(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []fusedExpertsCase{
			{k: 4096, ff: 2048, experts: 9, used: 6, shared: 2, n: 1, gate: "iq3_xxs", down: "iq3_xxs", sh: "q5_K"},
			{k: 2048, ff: 2048, experts: 16, used: 6, shared: 2, n: 8, gate: "iq3_xxs", down: "q4_K", sh: "q5_K"},
			{k: 2048, ff: 2048, experts: 12, used: 8, shared: 1, n: 3, gate: "q4_K", down: "q6_K", sh: "q6_K"},
			{k: 512, ff: 512, experts: 64, used: 6, shared: 2, n: 21, gate: "q4_K", down: "q5_K", sh: "q5_K"},
			{k: 512, ff: 256, experts: 4, used: 2, shared: 0, n: 2, gate: "q8_0", down: "q8_0"},
			{k: 6144, ff: 1024, experts: 7, used: 6, shared: 2, n: 2, gate: "q3_K", down: "q5_K", sh: "q5_K"},
			{k: 512, ff: 1024, experts: 4, used: 2, shared: 2, n: 5, gate: "mxfp4", down: "mxfp4", sh: "q8_0"},
			{k: 512, ff: 256, experts: 4, used: 2, n: 33, gate: "iq3_xxs", down: "iq3_xxs"},
			{k: 256, ff: 512, experts: 32, used: 6, shared: 1, n: 200, gate: "q4_K", down: "q6_K", sh: "q6_K"},
			{k: 1024, ff: 256, experts: 5, used: 1, shared: 2, n: 130, gate: "q3_K", down: "q8_0", sh: "iq4_xs"},
			{k: 512, ff: 512, experts: 3, used: 2, n: 64, gate: "q4_0", down: "iq4_xs"},
			{k: 256, ff: 768, experts: 7, used: 3, n: 65, gate: "q5_K", down: "q3_K"},
			{k: 512, ff: 256, experts: 300, used: 6, n: 40, gate: "q8_0", down: "iq3_xxs"},
			{k: 512, ff: 256, experts: 9, used: 2, n: 70, gate: "q6_K", down: "q4_K"},
		} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) { testFusedExperts(t, be, c) })
		}
	})
}

type fusedExpertsCase struct {
	k, ff, experts, used, shared, n int64
	gate, down, sh                  string
}

func testFusedExperts(t *testing.T, be *binding.Backend, c fusedExpertsCase) {
	b := newBench(t, be)
	in := expertsInput{x: b.floats(1, c.k, c.n), ids: make([]int32, c.used*c.n), weights: b.floats(1, c.used+c.shared, c.n)}
	for r := range c.n {
		for i := range c.used {
			in.ids[r*c.used+i] = int32((3*r + i*(c.experts-1)) % c.experts) // without repetition: experts-1 and experts have no common factor
		}
	}
	l := b.expertLayer(c)
	y, ok := l.fuse(b.g, b.input(in.x, c.k, c.n), b.inputI32(in.ids, c.used, c.n), b.input(in.weights, c.used+c.shared, c.n))
	if !ok {
		if c.n > maxFusedChoices && !multipliesTiles(t, be) {
			t.Skip("too little shared memory for tiles of experts")
		}
		t.Fatal("not supported")
	}
	l.check(t, b.run(y)[0], in, fusedExpertsLimit(c.n))
}
