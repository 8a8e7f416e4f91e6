package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestBandGroups: every head has its own bias, whatever the number of heads
// that share keys, in each form. As a control, the result is far from the one
// in which each head has its neighbour's bias, and from the one in which the
// heads of a group share that of their first.
func TestBandGroups(t *testing.T) {
	forms := []struct {
		name   string
		window int
		nQ     int
		build  func(d *bandData, b *bench) *binding.Tensor
	}{
		{"scatter", 0, 1, func(d *bandData, b *bench) *binding.Tensor { return joined{d}.buildScatter(b, binding.F32, false) }},
		{"scatter of rows", 0, 5, func(d *bandData, b *bench) *binding.Tensor { return joined{d}.buildScatter(b, binding.F32, false) }},
		{"cells", 48, 1, func(d *bandData, b *bench) *binding.Tensor { return joined{d}.buildCells(b, binding.F32, false) }},
		{"cells of rows", 48, 5, func(d *bandData, b *bench) *binding.Tensor { return joined{d}.buildCells(b, binding.F32, false) }},
		{"window", 0, 40, func(d *bandData, b *bench) *binding.Tensor { return d.buildWindow(b, binding.F32, 0) }},
		{"window, sliding", 48, 40, func(d *bandData, b *bench) *binding.Tensor { return d.buildWindow(b, binding.F32, 0) }},
	}
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, heads := range [][2]int{{64, 8}, {64, 16}, {32, 8}, {8, 2}, {8, 4}} {
			for _, f := range forms {
				t.Run(fmt.Sprintf("%d/%d/%s", heads[0], heads[1], f.name), func(t *testing.T) {
					b := newBench(t, be)
					d := newBandData(b, bandCase{32, heads[0], heads[1], 8, 48, f.window, 100, f.nQ})
					got := b.run(f.build(d, b))[0]
					closeTo(t, fmt.Sprintf("%d heads on %d", heads[0], heads[1]), got, d.ref(true), bandTolerance(binding.F32, false))
					perGroup := heads[0] / heads[1]
					for name, from := range map[string]func(h int) int{
						"its neighbour's":     func(h int) int { return (h + 1) % heads[0] },
						"its group's first's": func(h int) int { return h / perGroup * perGroup },
					} {
						if farthest(got, d.withBiasOf(from).ref(true)) < 0.05 {
							t.Errorf("a head with %s bias would not be seen", name)
						}
					}
				})
			}
		}
	})
}

// withBiasOf is d with the bias of head from(h) in head h.
func (d *bandData) withBiasOf(from func(h int) int) *bandData {
	other := *d
	other.r = nil
	for i := range d.nQ {
		for h := range d.nHead {
			other.r = append(other.r, d.r[(i*d.nHead+from(h))*d.dRel:][:d.dRel]...)
		}
	}
	return &other
}
