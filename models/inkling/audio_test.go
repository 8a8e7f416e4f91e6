package inkling

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
)

// TestSumBands adds up whole numbers, which are exact in any order.
func TestSumBands(t *testing.T) {
	const embd, frames = 3, 2
	for _, bands := range []int64{1, 2, 5, 8, 12, 80} {
		t.Run(fmt.Sprint(bands), func(t *testing.T) {
			be := newBackend(t)
			g := be.NewGraph(3 * 80)
			defer g.Close()
			rows := g.Input("rows", binding.F32, embd, bands*frames)
			out := g.Output(sumBands(g, rows, frames))
			al := be.NewAllocator()
			defer al.Close()
			if err := g.Alloc(al); err != nil {
				t.Fatal(err)
			}
			values, want := make([]float32, embd*bands*frames), make([]float32, embd*frames)
			for i := range values {
				values[i] = float32(i * i % 101)
				want[i%len(want)] += values[i] // the frames of a band lie side by side
			}
			rows.SetFloats(values)
			if err := g.Compute(); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, out.Elems())
			out.Floats(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("sums (-want +got):\n%s", d)
			}
		})
	}
}
