//go:build cgo

package binding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ggml's numbers of types that have kernels of this project.
var ownTypes = []DType{12, 13, 14, Q8_0}

// vectors are the instructions that there are kernels for and that this CPU has.
func vectors(tb testing.TB) []uint32 {
	tb.Helper()
	be, err := NewBackend(CPU(), 1)
	if err != nil {
		tb.Fatal(err)
	}
	defer be.Close()
	var all []uint32
	for v := uint32(1); v <= be.vectors(); v++ {
		all = append(all, v)
	}
	if all == nil {
		tb.Skip("this CPU has no kernels of this project")
	}
	return all
}

// product is weights and rows on the CPU.
type product struct {
	be   *Backend
	w    *Tensor
	m, n int64
	xs   []float32
}

func newProduct(tb testing.TB, vectors uint32, threads int, t DType, k, m, n, batches int64) *product {
	tb.Helper()
	be, err := NewBackend(CPU(), threads)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(be.Close)
	be.useVectors(vectors)
	mem := be.NewWeights(1)
	tb.Cleanup(mem.Close)
	w, err := mem.New("w", t, k, m, batches)
	if err != nil {
		tb.Fatal(err)
	}
	if err := mem.Alloc(); err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(k)))
	values, data := make([]float32, k*m*batches), make([]byte, w.Bytes())
	for i := range values {
		values[i] = float32(rng.NormFloat64()) / 8
	}
	if err := Quantise(t, data, values, k, nil); err != nil {
		tb.Fatal(err)
	}
	w.SetBytes(data, 0)
	p := &product{be: be, w: w, m: m, n: n}
	for range k * n * batches {
		p.xs = append(p.xs, float32(rng.NormFloat64()))
	}
	return p
}

// graph records a product of n rows, two of which lie apart, and returns what computes it.
func (p *product) graph(tb testing.TB, record func(g *Graph, w, x *Tensor) *Tensor) func() []float32 {
	tb.Helper()
	g := p.be.NewGraph(8)
	tb.Cleanup(g.Close)
	x := g.Input("x", F32, p.w.Dim(0), p.n, p.w.Dim(2))
	y := g.Output(record(g, p.w, x))
	a := p.be.NewAllocator()
	tb.Cleanup(a.Close)
	if err := g.Alloc(a); err != nil {
		tb.Fatal(err)
	}
	x.SetFloats(p.xs)
	return func() []float32 {
		if err := g.Compute(); err != nil {
			tb.Fatal(err)
		}
		out := make([]float32, y.Elems())
		y.Floats(out)
		return out
	}
}

func own(g *Graph, w, x *Tensor) *Tensor { return g.MulMat(w, x) }

// plain is ggml's own product.
func plain(g *Graph, w, x *Tensor) *Tensor { return g.plainMulMat(w, x) }

// nmse is the mean square of the differences over that of want.
func nmse(got, want []float32) float64 {
	var diff, all float64
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		diff, all = diff+d*d, all+float64(want[i])*float64(want[i])
	}
	return diff / all
}

// seconds is how long f takes.
func seconds(f func() []float32) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

// eachKernel runs a test for every type and set of instructions.
func eachKernel(t *testing.T, test func(t *testing.T, vectors uint32, typ DType)) {
	for _, v := range vectors(t) {
		for _, typ := range ownTypes {
			t.Run(fmt.Sprintf("%s, vectors %d", typ, v), func(t *testing.T) { test(t, v, typ) })
		}
	}
}

// TestProduct compares products with ggml's, whose kernels round operands to the same numbers.
func TestProduct(t *testing.T) {
	eachKernel(t, func(t *testing.T, v uint32, typ DType) {
		for _, k := range []int64{256, 1024} {
			for _, n := range []int64{1, 2, 3, 4, 9} {
				for _, m := range []int64{1, 19} {
					p := newProduct(t, v, 1+int(n)%3, typ, k, m, n, 1+m%3)
					want := p.graph(t, plain)()
					compute := p.graph(t, own)
					for range 2 {
						if e := nmse(compute(), want); !(e < 1e-11) {
							t.Errorf("%dx%d, %d rows: NMSE %g", k, m, n, e)
						}
					}
				}
			}
		}
	})
}

// TestProductRows: a row gives the same bits whatever rows are beside it.
func TestProductRows(t *testing.T) {
	eachKernel(t, func(t *testing.T, v uint32, typ DType) {
		const k, m, n = 512, 48, 7
		p := newProduct(t, v, 2, typ, k, m, n, 1)
		together := p.graph(t, own)()
		for i := range n {
			one := &product{be: p.be, w: p.w, m: m, n: 1, xs: p.xs[i*k:][:k]}
			alone := one.graph(t, own)()
			if p.be.owns(p.w) && !slices.Equal(alone, together[i*m:][:m]) {
				t.Errorf("row %d alone gives other bits", i)
			}
		}
	})
}

// TestProductOperands: rows with gaps, of zeros, with one value, and with infinities.
func TestProductOperands(t *testing.T) {
	eachKernel(t, func(t *testing.T, v uint32, typ DType) {
		const k, m, n = 256, 16, 3
		p := newProduct(t, v, 1, typ, k, m, n, 1)
		gaps := func(multiply func(g *Graph, w, x *Tensor) *Tensor) func(g *Graph, w, x *Tensor) *Tensor {
			return func(g *Graph, w, x *Tensor) *Tensor { // rows 0 and 2
				return multiply(g, w, g.View(x, [4]int64{k, 2, 1, 1}, 2*x.Stride(1), x.Stride(2), x.Stride(3), 0))
			}
		}
		for i := range p.xs[:k] {
			p.xs[i] = 0
		}
		p.xs[2*k+5] = 1e-30
		got := p.graph(t, gaps(own))()
		for i, y := range got[:m] {
			if y != 0 {
				t.Errorf("a row of zeros gives %g at %d", y, i)
			}
		}
		if e := nmse(got, p.graph(t, gaps(plain))()); !(e < 1e-11) {
			t.Errorf("NMSE %g", e)
		}
		if !p.be.owns(p.w) {
			return
		}
		for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			for _, at := range []int{0, 5, 31, 255} {
				was := p.xs[2*k+at]
				p.xs[2*k+at] = float32(bad)
				for i, y := range p.graph(t, gaps(own))()[m:] {
					if !math.IsNaN(float64(y)) && !math.IsInf(float64(y), 0) {
						t.Fatalf("a row with %g at %d gives %g at %d", bad, at, y, i)
					}
				}
				p.xs[2*k+at] = was
			}
		}
	})
}

// owns reports whether there are kernels for rows of w.
func (b *Backend) owns(w *Tensor) bool {
	g := b.NewGraph(2)
	defer g.Close()
	return g.OwnExperts(w)
}

// BenchmarkProduct compares both, with weights that no cache holds.
func BenchmarkProduct(b *testing.B) {
	const k, m, copies = 4096, 4096, 4
	for _, typ := range ownTypes {
		for _, n := range []int64{1, 2, 4, 128} {
			for _, v := range vectors(b) {
				b.Run(fmt.Sprintf("%s/%d rows/vectors %d", typ, n, v), func(b *testing.B) {
					p := newProduct(b, v, 1, typ, k, m, n, copies)
					ours, ggmls := p.graph(b, own), p.graph(b, plain)
					best := [2]float64{math.Inf(1), math.Inf(1)}
					for b.Loop() {
						for i, f := range []func() []float32{ours, ggmls} {
							best[i] = min(best[i], seconds(f))
						}
					}
					b.ReportMetric(best[0]/best[1], "ours/ggml's")
					b.ReportMetric(float64(p.w.Bytes())/best[0]/1e9, "GB/s")
					b.ReportMetric(float64(k*m*n*copies)/best[0]/1e9, "GMAC/s")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// TestMeasureExperts: banks with kernels of this project and without have a speed.
func TestMeasureExperts(t *testing.T) {
	for _, typ := range []DType{12, F32} {
		be, err := NewBackend(CPU(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer be.Close()
		mem := be.NewWeights(1)
		defer mem.Close()
		bank, err := mem.New("bank", typ, 256, 8, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := mem.Alloc(); err != nil {
			t.Fatal(err)
		}
		if speed, err := be.measureExperts(bank, 2); err != nil || !(speed > 0) {
			t.Errorf("%s: %g bytes a second, %v", typ, speed, err)
		}
		if _, err := be.measureExperts(bank, 6); err == nil {
			t.Errorf("%s: 6 of 5 experts are used", typ)
		}
	}
}

// TestMultiplied: types that only operands are converted to are no weights.
func TestMultiplied(t *testing.T) {
	for typ, want := range map[DType]bool{F32: true, F16: true, BF16: true, Q8_0: true, 12: true, 9: false, 15: false} { // Q4_K, Q8_1, Q8_K
		if got := typ.Multiplied(); got != want {
			t.Errorf("%s: %v, want %v", typ, got, want)
		}
	}
}
