package binding_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
)

// experts are banks in host memory, and the inputs of some rows.
type experts struct {
	be                *binding.Backend
	mem               *binding.Memory
	gate, up, down    *binding.Tensor
	embd, ff, n, used int64
	rows              int64

	xs, ws []float32
	chosen []int32
}

func newExperts(tb testing.TB, threads int, gateType, downType binding.DType, embd, ff, n, used, rows int64) *experts {
	tb.Helper()
	be, err := binding.NewBackend(binding.CPU(), threads)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(be.Close)
	e := &experts{be: be, mem: be.NewWeights(3), embd: embd, ff: ff, n: n, used: used, rows: rows}
	tb.Cleanup(e.mem.Close)
	bank := func(name string, t binding.DType, ne0, ne1 int64) *binding.Tensor {
		b, err := e.mem.New(name, t, ne0, ne1, n)
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	e.gate, e.up, e.down = bank("gate", gateType, embd, ff), bank("up", gateType, embd, ff), bank("down", downType, ff, embd)
	if err := e.mem.Alloc(); err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, t := range []*binding.Tensor{e.gate, e.up, e.down} {
		const different = 8 // more experts are those of a benchmark
		for i := range min(n, different) {
			values := make([]float32, t.Dim(0)*t.Dim(1))
			for j := range values {
				values[j] = float32(rng.NormFloat64()) / 8
			}
			data := make([]byte, t.Stride(2))
			if err := encode(t.Type(), data, values, t.Dim(0)); err != nil {
				tb.Fatal(err)
			}
			for ; i < n; i += different {
				t.SetBytes(data, i*t.Stride(2))
			}
		}
	}
	for range embd * rows {
		e.xs = append(e.xs, float32(rng.NormFloat64()))
	}
	for range rows {
		for _, i := range rng.Perm(int(n))[:used] {
			e.chosen, e.ws = append(e.chosen, int32(i)), append(e.ws, rng.Float32())
		}
	}
	return e
}

// encode brings values to a type.
func encode(t binding.DType, to []byte, values []float32, cols int64) error {
	if t.Quantized() {
		return binding.Quantise(t, to, values, cols, nil)
	}
	return gguf.EncodeRows(gguf.Type(t), to, values)
}

// graph records the experts, and returns what computes them and reads the result.
func (e *experts) graph(tb testing.TB, layers int, record func(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor) func() []float32 {
	tb.Helper()
	g := e.be.NewGraph(64 * layers)
	tb.Cleanup(g.Close)
	x, weights := g.Input("x", binding.F32, e.embd, e.rows), g.Input("weights", binding.F32, e.used, e.rows)
	var out *binding.Tensor
	var ids []*binding.Tensor
	for range layers {
		ids = append(ids, g.Input("ids", binding.I32, e.used, e.rows))
		out = g.Output(record(g, x, ids[len(ids)-1], weights))
	}
	a := e.be.NewAllocator()
	tb.Cleanup(a.Close)
	if err := g.Alloc(a); err != nil {
		tb.Fatal(err)
	}
	x.SetFloats(e.xs)
	for i, t := range ids { // the last layer's are those that were drawn
		other := slices.Clone(e.chosen)
		for j := range other {
			other[j] = int32((int64(other[j]) + int64(layers-1-i)*e.used) % e.n)
		}
		t.SetInt32s(other)
	}
	weights.SetFloats(e.ws)
	return func() []float32 {
		if err := g.Compute(); err != nil {
			tb.Fatal(err)
		}
		y := make([]float32, e.embd*e.rows)
		out.Floats(y)
		return y
	}
}

// apart is the same of ggml's own nodes.
func (e *experts) apart(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor {
	x = g.Reshape(x, e.embd, 1, e.rows)
	h := g.SwiGLUSplit(g.MulMatID(e.gate, x, ids), g.MulMatID(e.up, x, ids))
	w := g.View(weights, [4]int64{1, e.used, e.rows, 1}, 4, 4*e.used, 4*e.used*e.rows, 0)
	return g.Reshape(g.OutProd(g.MulMatID(e.down, h, ids), w), e.embd, e.rows)
}

func (e *experts) together(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor {
	return g.Experts(e.gate, e.up, e.down, x, ids, weights)
}

// TestExperts: one node gives what single nodes give, time after time, whatever the
// number of threads and of rows, and where rows end.
func TestExperts(t *testing.T) {
	q4k, q6k := binding.DType(12), binding.DType(14) // ggml's numbers
	for _, tc := range []struct {
		gate, down binding.DType
		embd, ff   int64
	}{{binding.F32, binding.F32, 32, 20}, {binding.F16, binding.F32, 40, 12}, {binding.Q8_0, binding.Q8_0, 96, 64}, {q4k, q6k, 512, 256}} {
		for _, rows := range []int64{1, 2, 19} {
			for _, threads := range []int{1, 2, 3} {
				t.Run(fmt.Sprintf("%s %s, %d rows, %d threads", tc.gate, tc.down, rows, threads), func(t *testing.T) {
					e := newExperts(t, threads, tc.gate, tc.down, tc.embd, tc.ff, 8, 3, rows)
					want := e.graph(t, 1, e.apart)()
					compute := e.graph(t, 2, e.together)
					for range 3 {
						testutil.NMSE(t, "one node", compute(), want, 1e-10)
					}
				})
			}
		}
	}
}

// TestExpertsAll: without ids each row uses all experts, without weights these are 1.
func TestExpertsAll(t *testing.T) {
	e := newExperts(t, 2, binding.DType(12), binding.DType(12), 256, 256, 3, 3, 5)
	for i := range e.chosen {
		e.chosen[i], e.ws[i] = int32(i)%3, 1
	}
	want := e.graph(t, 1, e.apart)()
	got := e.graph(t, 1, func(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor {
		g.Expand(g.Scale(g.Cast(ids, binding.F32), 1)) // inputs of the harness
		g.Expand(g.Scale(weights, 1))
		return g.Experts(e.gate, e.up, e.down, x, nil, nil)
	})()
	testutil.NMSE(t, "all experts", got, want, 1e-10)
}

// TestExpertsRows: a row gives the same bits whatever rows are beside it.
func TestExpertsRows(t *testing.T) {
	e := newExperts(t, 2, binding.DType(12), binding.DType(14), 512, 256, 8, 3, 11)
	together := e.graph(t, 1, e.together)()
	xs, chosen, ws := e.xs, e.chosen, e.ws
	e.rows = 1
	for i := range int64(11) {
		e.xs, e.chosen, e.ws = xs[i*e.embd:][:e.embd], chosen[i*e.used:][:e.used], ws[i*e.used:][:e.used]
		if alone := e.graph(t, 1, e.together)(); !slices.Equal(alone, together[i*e.embd:][:e.embd]) {
			t.Errorf("row %d alone gives other bits", i)
		}
	}
}

// BenchmarkExperts is 8 layers that choose 6 of 96 experts each, all of them others.
func BenchmarkExperts(b *testing.B) {
	const layers = 8
	for threads := 1; threads <= runtime.NumCPU(); threads *= 2 {
		for _, name := range []string{"apart", "together"} {
			b.Run(fmt.Sprintf("%s, %d threads", name, threads), func(b *testing.B) {
				e := newExperts(b, threads, 12, 14, 4096, 1536, 96, 6, 1)
				record := e.apart
				if name == "together" {
					record = e.together
				}
				compute := e.graph(b, layers, func(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor {
					return record(g, x, ids, weights)
				})
				b.SetBytes(layers * e.used * (e.gate.Stride(2) + e.up.Stride(2) + e.down.Stride(2)))
				best := math.Inf(1)
				for b.Loop() {
					start := time.Now()
					compute()
					best = min(best, time.Since(start).Seconds())
				}
				b.ReportMetric(best*1e3, "best-ms")
			})
		}
	}
}
