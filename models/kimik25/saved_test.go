package kimik25

import (
	"errors"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// TestSaveLoad: a sequence that was saved, and loaded elsewhere, goes on bit by
// bit as the original, and so does it from an adopted checkpoint.
func TestSaveLoad(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	for _, kv := range []binding.DType{binding.F32, binding.F16} {
		t.Run(kv.String(), func(t *testing.T) {
			c := newTestCache(t, m, 2, 64, kv)
			forward(t, m, c, ids[:20], false)
			point := c.Checkpoint(0)
			forward(t, m, c, ids[20:40], false)
			size := c.SaveBytes(0)
			saved := c.Save(0)
			want := forward(t, m, c, ids[40:60], true)
			forward(t, m, c, ids[60:], false)
			if err := c.Load(0, saved); err != nil {
				t.Fatal(err)
			}
			if got := forward(t, m, c, ids[40:60], true); !slices.Equal(got, want) {
				t.Error("the loaded sequence goes on differently")
			}
			if saved.Pos() != 40 || saved.Bytes() != size || size == 0 || c.Reach(0) != 0 {
				t.Errorf("saved %d rows in %d bytes, reach %d", saved.Pos(), saved.Bytes(), c.Reach(0))
			}
			own, err := c.Adopt(0, point)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Restore(0, own); err != nil || c.Pos(0) != 20 {
				t.Errorf("restored to %d: %v", c.Pos(0), err)
			}
			if _, err := c.Adopt(1, point); !errors.Is(err, models.ErrOutOfReach) {
				t.Errorf("adopting for an empty sequence: error %v", err)
			}
			if err := newTestCache(t, m, 1, 64, kv).Load(0, saved); !errors.Is(err, models.ErrForeignCache) {
				t.Errorf("loading into another cache: error %v", err)
			}
		})
	}
}
