package binding_test

import (
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// eachBackend runs f on every device.
func eachBackend(t *testing.T, f func(t *testing.T, be *binding.Backend)) {
	t.Helper()
	binding.LoadModules()
	for _, d := range binding.Devices() {
		t.Run(d.Name(), func(t *testing.T) {
			be, err := binding.NewBackend(d, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer be.Close()
			f(t, be)
		})
	}
}

// TestRead: results of all sizes about those of the pinned memory, on every device.
func TestRead(t *testing.T) {
	eachBackend(t, func(t *testing.T, be *binding.Backend) {
		for _, n := range []int{1, 1 << 16, 1 << 17, 1<<17 + 1, 1 << 18, 1<<18 + 1, 200_064, 1_000_003, 1 << 20} {
			g := be.NewGraph(8)
			x := g.Input("x", binding.F32, int64(n))
			y := g.Output(g.Scale(x, 2))
			al := be.NewAllocator()
			if err := g.Alloc(al); err != nil {
				t.Fatal(err)
			}
			values, want := make([]float32, n), make([]float32, n)
			for i := range values {
				values[i], want[i] = float32(i), float32(2*i)
			}
			x.SetFloats(values)
			if err := g.Compute(); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, n)
			be.Read(y, got)
			if !slices.Equal(got, want) {
				t.Errorf("%d values are not those computed", n)
			}
			clear(got)
			be.Read(y, got[:n/2])
			if !slices.Equal(got[:n/2], want[:n/2]) || slices.ContainsFunc(got[n/2:], func(v float32) bool { return v != 0 }) {
				t.Errorf("half of %d values", n)
			}
			g.Close()
			al.Close()
		}
	})
}
