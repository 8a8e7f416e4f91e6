package bench

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// attentionShape is a layer's attention over a prompt: inkling-mid's heads.
type attentionShape struct {
	nHeadKV, extent int64
	rows, keys      int64
	window          int64 // 0: none
}

const midHeads, midHeadDim, midRel = 16, 64, 16

// attentionGraph builds the attention of a step's rows over F16 keys and values, the
// last of which are the rows' own; plain is that of ggml's operations without bias.
func attentionGraph(b *testing.B, be *binding.Backend, s attentionShape, plain bool) *binding.Graph {
	b.Helper()
	mem, g, a := be.NewMemory(8), be.NewGraph(2048), be.NewAllocator()
	b.Cleanup(func() { g.Close(); a.Close(); mem.Close() })
	declare := func(t binding.DType, ne ...int64) *binding.Tensor {
		x, err := mem.New("operand", t, ne...)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	q, r := declare(binding.F32, midHeadDim, midHeads, s.rows, 1), declare(binding.F32, midRel, midHeads, s.rows, 1)
	k, vt := declare(binding.F16, midHeadDim, s.keys, s.nHeadKV), declare(binding.F16, s.keys, midHeadDim, s.nHeadKV)
	band, spans, mask := declare(binding.F32, s.extent, midRel), declare(binding.I32, 3, 2, s.rows, 1), declare(binding.F32, s.keys, s.rows)
	if err := mem.Alloc(); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, t := range []*binding.Tensor{q, r, band} {
		x := make([]float32, t.Elems())
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		t.SetFloats(x)
	}
	seen, hidden := make([]int32, 6*s.rows), make([]float32, s.keys*s.rows)
	for i := range s.rows {
		end, first := s.keys-s.rows+i+1, int64(0)
		if s.window > 0 {
			first = end - s.window
		}
		seen[6*i], seen[6*i+1], seen[6*i+2] = int32(first), int32(end-first), int32(end-first-1)
		for c := range s.keys {
			if c < first || c >= end {
				hidden[i*s.keys+c] = float32(math.Inf(-1))
			}
		}
	}
	spans.SetInt32s(seen)
	mask.SetFloats(hidden)
	if plain {
		heads := g.View(k, [4]int64{midHeadDim, s.keys, s.nHeadKV, 1}, k.Stride(1), k.Stride(2), k.Stride(3), 0)
		scores := g.MulMatF32(heads, g.Cont(g.Permute(q, 0, 2, 1, 3)))
		o := g.MulMatF32(vt, g.SoftMaxExtInplace(scores, mask, 1.0/midHeadDim))
		g.Output(g.Cont(g.Permute(o, 0, 2, 1, 3)))
	} else {
		g.Output(op.BandSpans(g, &op.Attention{Q: q, R: r, K: k, VT: vt, Scale: 1.0 / midHeadDim, Spans: spans, Band: band}))
	}
	if err := g.Alloc(a); err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkBias compares attention with bias, as layers compute it, with the same
// attention without by ggml's operations, on one thread: its processor time, best of
// rounds in which they take turns.
func BenchmarkBias(b *testing.B) {
	for name, s := range map[string]attentionShape{
		"full":    {nHeadKV: 4, extent: 1024, rows: 512, keys: 8192},
		"sliding": {nHeadKV: 8, extent: 512, rows: 512, keys: 1023, window: 512},
	} {
		b.Run(name, func(b *testing.B) {
			be, err := binding.NewBackend(binding.CPU(), 1)
			if err != nil {
				b.Fatal(err)
			}
			defer be.Close()
			runtime.LockOSThread() // whose time is taken
			defer runtime.UnlockOSThread()
			subject := &Subject{threads: 1}
			best := map[bool]float64{true: math.Inf(1), false: math.Inf(1)}
			graphs := map[bool]*binding.Graph{true: attentionGraph(b, be, s, true), false: attentionGraph(b, be, s, false)}
			for b.Loop() {
				for plain, g := range graphs {
					took, err := subject.compute(b.Context(), g)
					if err != nil {
						b.Fatal(err)
					}
					best[plain] = min(best[plain], took)
				}
			}
			b.ReportMetric(1e3*best[false], "ms/biased")
			b.ReportMetric(1e3*best[true], "ms/plain")
			b.ReportMetric(best[false]/best[true], "biased/plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}
