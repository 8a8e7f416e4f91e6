package binding_test

import (
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestHostFloats: tensors get what lies in such memory, on every device, as often as it changes.
func TestHostFloats(t *testing.T) {
	eachBackend(t, func(t *testing.T, be *binding.Backend) {
		for _, n := range []int{0, 1, 1_000_003} {
			h := be.NewHostFloats(n)
			if len(h.Values) != n {
				t.Fatalf("room for %d values, want %d", len(h.Values), n)
			}
			if n == 0 {
				h.Close()
				continue
			}
			m := be.NewMemory(1)
			x, err := m.New("x", binding.F32, int64(n))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Alloc(); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, n)
			for round := range 2 {
				for i := range h.Values {
					h.Values[i] = float32(i + round)
				}
				x.SetFloats(h.Values)
				x.Floats(got)
				if !slices.Equal(got, h.Values) {
					t.Errorf("%d values are not those written, the %d. time", n, round+1)
				}
			}
			m.Close()
			h.Close()
			h.Close() // once more is nothing
		}
	})
}
