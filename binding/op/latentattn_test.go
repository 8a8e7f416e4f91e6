package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refLatent attends in float64 with q [head][query][rope+latent] over cells
// [key][rope+latent]; query i sees the first seen+i keys.
func refLatent(q, cells []float32, latent, width, nQ, nHead, seen int, scale float64) []float64 {
	var out []float64
	for h := range nHead {
		for i := range nQ {
			row := q[(h*nQ+i)*width:][:width]
			p, sum := make([]float64, seen+i), 0.0
			for j := range p {
				dot := 0.0
				for d, v := range row {
					dot += float64(v) * float64(cells[j*width+d])
				}
				p[j] = math.Exp(dot * scale)
				sum += p[j]
			}
			for d := range latent {
				o := 0.0
				for j := range p {
					o += p[j] / sum * float64(cells[j*width+width-latent+d])
				}
				out = append(out, o)
			}
		}
	}
	return out
}

func TestLatentAttention(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			latent, rope, nHead, nQ, nKV, seen, seqs int
			block                                    int64
			flash                                    bool
			kv                                       binding.DType
			tol                                      float64
		}{
			{64, 16, 4, 1, 32, 20, 1, 0, false, binding.F32, 2e-6},
			{64, 16, 4, 7, 32, 20, 1, 0, false, binding.F32, 2e-6},
			{64, 16, 4, 21, 64, 1, 1, 0, false, binding.F32, 2e-6},
			{64, 16, 4, 21, 64, 1, 1, 8, false, binding.F32, 2e-6}, // in blocks, the last one shorter
			{512, 64, 8, 5, 256, 200, 1, 0, false, binding.F32, 2e-6},
			{512, 64, 8, 5, 256, 200, 1, 2, false, binding.F16, 1e-3},
			{512, 64, 8, 1, 256, 200, 1, 0, true, binding.F16, 2e-3},
			{512, 64, 8, 5, 256, 200, 1, 0, true, binding.F16, 2e-3},
			{64, 16, 4, 1, 32, 20, 3, 0, false, binding.F32, 2e-6},
			{64, 16, 4, 5, 32, 20, 3, 2, false, binding.F32, 2e-6},
			{512, 64, 8, 1, 256, 200, 3, 0, true, binding.F16, 2e-3},
			{512, 64, 8, 5, 256, 200, 3, 0, true, binding.F16, 2e-3},
			{64, 16, 4, 3, 32, 20, 1, 0, true, binding.F32, 1e-5},
		} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				b := newBench(t, be)
				width, seqs := int64(c.latent+c.rope), int64(c.seqs)
				q := b.floats(1, width, int64(c.nQ), int64(c.nHead), seqs)
				cells := b.floats(1, width, int64(c.nKV), seqs)
				for i, v := range cells { // exact in F16
					cells[i] = float32(math.Round(float64(v)*512) / 512)
				}
				m := make([]float32, c.nKV*c.nQ*c.seqs)
				for i := range m { // sequence s sees s keys less
					row := i / c.nKV
					if i%c.nKV >= c.seen-row/c.nQ+row%c.nQ {
						m[i] = float32(math.Inf(-1))
					}
				}
				mask := b.input(m, int64(c.nKV), int64(c.nQ), 1, seqs)
				if c.flash {
					mask = b.g.Cast(mask, binding.F16)
				}
				const scale = 0.05
				a := &LatentAttention{
					Q: b.input(q, width, int64(c.nQ), int64(c.nHead), seqs), Cells: b.persistent(c.kv, cells, width, int64(c.nKV), 1, seqs),
					Latent: int64(c.latent), Scale: scale, Flash: c.flash, Block: c.block,
				}
				o := a.Build(b.g, mask)
				if want := [4]int64{int64(c.latent), int64(c.nQ), int64(c.nHead), seqs}; o.Shape() != want {
					t.Fatalf("shape %v, want %v", o.Shape(), want)
				}
				b.g.Expand(o)
				if c.flash && len(b.g.Unsupported()) > 0 {
					t.Skip("no fused kernel for these sizes on this device")
				}
				var want []float64
				for s := range c.seqs {
					nq, nc := len(q)/c.seqs, len(cells)/c.seqs
					want = append(want, refLatent(q[s*nq:], cells[s*nc:], c.latent, int(width), c.nQ, c.nHead, c.seen-s, scale)...)
				}
				closeTo(t, "attention", b.run(o)[0], want, c.tol)
			})
		}
	})
}
