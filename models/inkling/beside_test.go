//go:build cgo && !ggml_dir

package inkling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/devicetest"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// TestBeside: experts in host memory, the rest on a device with memory of its own, give
// what the device gives alone. In a decode step it is read once for each layer with
// experts and once for the logits; what it computes while the CPU does is a part of its own.
func TestBeside(t *testing.T) {
	be, err := binding.NewBackends([]binding.Device{devicetest.Device(), binding.CPU()}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	n := loadRandom(t).cfg.blockCount
	run := func(hostExperts int) (logits []float32, experts int, step devicetest.Counts) {
		place := models.Placement{Layers: make([]int, n), HostExperts: hostExperts}
		opened, err := models.Open(openGGUF(t, randomFiles(t).Model), models.Params{Backend: be, Place: place})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(opened.Close)
		m := opened.(*Model)
		for _, l := range m.w.Layers {
			if l.MoE != nil {
				experts++
			}
		}
		ids := make([]int32, 40)
		for i := range ids {
			ids[i] = int32(7 * i % 100)
		}
		c := newTestCache(t, m, 128, binding.F16)
		logits = append(forward(t, m, c, ids, true), forward(t, m, c, ids[:5], true)...)
		for _, id := range []int32{5, 6} {
			devicetest.Take()
			logits = append(logits, forward(t, m, c, []int32{id}, false)...)
			step = devicetest.Take()
		}
		return logits, experts, step
	}
	want, _, _ := run(0)
	got, experts, step := run(n)
	testutil.NMSE(t, "logits", got, want, 1e-5)
	step.Writes = 0 // as many as there are inputs
	if diff := cmp.Diff(devicetest.Counts{Graphs: 2*experts + 1, Reads: experts + 1}, step); diff != "" {
		t.Errorf("%d layers with experts, a step (-want +got):\n%s", experts, diff)
	}
}
