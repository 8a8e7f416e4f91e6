package kimik25

import (
	"regexp"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// TestPlacement: layers by turns on two devices, experts and single tensors
// elsewhere, give bit by bit what one device gives. Both devices are the CPU here;
// test/gpu/ids.sh does it with GPUs.
func TestPlacement(t *testing.T) {
	plain := loadRandom(t)
	if !plain.be.Device().IsCPU() {
		t.Skip("compares devices that are the CPU both")
	}
	var turns []int
	for i := range plain.cfg.blockCount {
		turns = append(turns, i%2)
	}
	be, err := binding.NewBackends([]binding.Device{binding.CPU(), binding.CPU()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	for name, place := range map[string]models.Placement{
		"turns":     {Layers: turns, Embedding: 1},
		"output":    {Layers: turns, Output: 1},
		"experts":   {Layers: make([]int, len(turns)), HostExperts: 3},
		"overrides": {Layers: turns, Overrides: []models.Override{{Pattern: regexp.MustCompile(`ffn_|attn_q|token_embd`), Device: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := models.Open(openGGUF(t, randomFiles(t).Model), models.Params{Backend: be, Place: place})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(opened.Close)
			run := func(m *Model, kv binding.DType) []float32 {
				c := newTestCache(t, m, 1, 128, kv)
				ids := make([]int32, 40)
				for i := range ids {
					ids[i] = int32(7 * i % 100)
				}
				logits := forward(t, m, c, ids, true)
				for _, id := range []int32{5, 6} {
					logits = append(logits, forward(t, m, c, []int32{id}, false)...)
				}
				return logits
			}
			for _, kv := range []binding.DType{binding.F32, binding.F16, binding.BF16} {
				if got, want := run(opened.(*Model), kv), run(plain, kv); !slices.Equal(got, want) {
					t.Errorf("%s cache: other logits than on one device", kv)
				}
			}
		})
	}
	if _, err := models.Open(openGGUF(t, randomFiles(t).Model), models.Params{Backend: be, Place: models.Placement{Output: 2}}); err == nil {
		t.Error("a device that the backend does not have: no error")
	}
}
