package inkling

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// TestFusedTaps: every named result of steps of few rows is the CPU's, in the order in
// which they are computed, so that the first one that is not says which operation.
func TestFusedTaps(t *testing.T) {
	be := newBackend(t)
	if !be.Device().Fuses() {
		t.Skipf("%s has no fused operations", be.Device().Name())
	}
	cpu, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cpu.Close)
	file := openGGUF(t, randomFiles(t).Model)
	for _, kv := range []binding.DType{binding.F32, binding.F16} {
		t.Run(fmt.Sprint(kv), func(t *testing.T) {
			type tap struct {
				name   string
				values []float32
			}
			var taps [2][]tap
			for i, b := range []*binding.Backend{be, cpu} {
				opened, err := models.Open(file, models.Params{Backend: b})
				if err != nil {
					t.Fatal(err)
				}
				m := opened.(*Model)
				t.Cleanup(m.Close)
				c := newTestCache(t, m, 128, kv)
				step := 0
				m.OnTap = func(name string, layer int, _ [4]int64, values []float32) {
					switch name {
					case "router_indices", "router_weights", "experts": // in no fixed order, or of one device only
						return
					}
					taps[i] = append(taps[i], tap{fmt.Sprintf("step %d layer %d %s", step, layer, name), values})
				}
				for _, ids := range [][]int32{{5}, {7, 8, 9}, {1, 2, 3, 4, 5}, {17}} {
					forward(t, m, c, ids, false)
					step++
				}
			}
			tol := testutil.Tol{Abs: 2e-3, Rel: 2e-3}
			if kv == binding.F16 {
				tol = testutil.Tol{Abs: 2e-2, Rel: 2e-2}
			}
			want := map[string][]float32{}
			for _, x := range taps[1] {
				want[x.name] = x.values
			}
			compared := 0
			for _, x := range taps[0] {
				w, ok := want[x.name]
				if !ok {
					continue
				}
				compared++
				testutil.Close(t, x.name, x.values, w, tol)
				if t.Failed() {
					return
				}
			}
			if compared < 100 { // a dozen of each layer and step
				t.Errorf("%d results were compared", compared)
			}
		})
	}
}
