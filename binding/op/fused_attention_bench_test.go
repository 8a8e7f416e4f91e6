package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// BenchmarkFusedAttention compares fused attention with bias, flash attention over the
// same keys with a mask for all heads that hides none, and of many rows the composition. A graph has several of
// them, each with keys of its own; us/op is what one takes.
func BenchmarkFusedAttention(b *testing.B) {
	few := []bandCase{}
	for _, n := range []int{1, 4, 8} {
		few = append(few,
			bandCase{128, 32, 8, 16, 512, 512, 4000, n},
			bandCase{128, 32, 8, 16, 1024, 0, 512 - n, n},
			bandCase{128, 32, 8, 16, 1024, 0, 4096 - n, n},
			bandCase{128, 32, 8, 16, 1024, 0, 32768 - n, n})
	}
	many := []bandCase{
		{128, 32, 8, 16, 512, 512, 4096, 512},
		{128, 32, 8, 16, 1024, 0, 8192 - 512, 512},
		{128, 32, 8, 16, 1024, 0, 32768 - 256, 256},
	}
	binding.LoadModules()
	for _, d := range binding.Devices() {
		if !d.Fuses() {
			continue
		}
		be, err := binding.NewBackend(d, 1)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range few {
			benchForm(b, be, c, "fused", func(b *bench, d *bandData) *binding.Tensor {
				a, cells := joined{d}.place(b, binding.F16)
				proj := b.persistent(binding.F32, d.proj, int64(d.dRel), int64(d.E))
				o, _ := FusedAttention(b.g, a, proj, b.inputI32([]int32{int32(d.pos)}, 1), b.tickets(int64(2*d.nHead)), cells)
				return o
			})
			benchForm(b, be, c, "plain", buildPlain)
		}
		for _, c := range many {
			benchForm(b, be, c, "fused", func(b *bench, d *bandData) *binding.Tensor {
				a, fresh, cells := d.placePrefill(b, binding.F16)
				proj := b.g.Cast(b.persistent(binding.F32, d.proj, int64(d.dRel), int64(d.E)), binding.F16)
				o, _ := FusedPrefill(b.g, a, proj, d.pos, fresh, cells)
				return o
			})
			benchForm(b, be, c, "composed", func(b *bench, d *bandData) *binding.Tensor { return d.buildWindow(b, binding.F16, 0) })
			benchForm(b, be, c, "plain", buildPlain)
		}
		be.Close()
	}
}

// buildPlain is flash attention over the keys that any query sees, all of them seen by each.
func buildPlain(b *bench, d *bandData) *binding.Tensor {
	n := d.pos + d.nQ
	if d.window > 0 {
		n = d.window - 1 + d.nQ
	}
	n = (n + 255) / 256 * 256
	dh, hkv := int64(d.dh), int64(d.nHeadKV)
	cells := func() *binding.Tensor {
		return b.persistent(binding.F16, make([]float32, d.dh*n*d.nHeadKV), dh, int64(n), hkv)
	}
	q := b.input(d.q, dh, int64(d.nQ), int64(d.nHead)) // in whatever order
	rows := (d.nQ + 63) / 64 * 64                      // CUDA reads whole tiles of rows
	mask := b.persistent(binding.F16, make([]float32, n*rows), int64(n), int64(rows))
	return b.g.FlashAttnExt(q, cells(), cells(), mask, 1/float32(d.dh))
}

func benchForm(b *testing.B, be *binding.Backend, c bandCase, name string, build func(*bench, *bandData) *binding.Tensor) {
	b.Run(fmt.Sprintf("%s/%s", c, name), func(b *testing.B) {
		x := newBench(b, be)
		copies := max(1, min(8, 65536/(c.pos+c.nQ)))
		var outs []*binding.Tensor
		d := newBandData(x, c)
		for range copies {
			outs = append(outs, build(x, d))
		}
		step, done := x.ready(outs...)
		defer done()
		for range 4 { // until the step is replayed
			step()
		}
		for b.Loop() {
			step()
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*copies), "us/op")
	})
}
