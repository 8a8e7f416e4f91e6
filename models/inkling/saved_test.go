package inkling

import (
	"errors"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// TestSaveLoad: a sequence that was saved, and loaded elsewhere or copied, goes
// on bit by bit as the original, and so does it from an adopted checkpoint.
func TestSaveLoad(t *testing.T) {
	m := loadRandom(t)
	ids := tokens(220, 3)
	for _, kv := range []binding.DType{binding.F32, binding.F16, binding.BF16} {
		t.Run(kv.String(), func(t *testing.T) {
			c, err := m.NewCache(4, 256, kv)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			chunked(t, m, c, 0, ids[:90], 45)
			point := c.Checkpoint(0)
			if point.Bytes() != c.CheckpointBytes(0) || point.Bytes() == 0 {
				t.Errorf("a checkpoint of %d bytes, %d were expected", point.Bytes(), c.CheckpointBytes(0))
			}
			chunked(t, m, c, 0, ids[90:150], 60)
			size := c.SaveBytes(0)
			saved := c.Save(0)
			if err := c.Copy(1, 0); err != nil {
				t.Fatal(err)
			}
			chunked(t, m, c, 2, tokens(70, 9), 70)
			if err := c.Load(2, saved); err != nil {
				t.Fatal(err)
			}
			want := chunked(t, m, c, 0, ids[150:], 7)
			c.Reset(0)
			for _, seq := range []int{1, 2} {
				if got := chunked(t, m, c, seq, ids[150:], 7); !slices.Equal(got, want) {
					t.Errorf("sequence %d goes on differently", seq)
				}
			}
			if saved.Pos() != 150 || saved.Bytes() != size || size == 0 || c.Reach(1) != 220-reach {
				t.Errorf("saved %d rows in %d bytes, reach %d", saved.Pos(), saved.Bytes(), c.Reach(1))
			}

			if err := c.Load(0, saved); err != nil {
				t.Fatal(err)
			}
			own, err := c.Adopt(0, point)
			if err != nil {
				t.Fatal(err)
			}
			other, err := c.Adopt(1, point)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Restore(0, own), c.Restore(1, other)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(chunked(t, m, c, 0, ids[90:], 65), chunked(t, m, c, 1, ids[90:], 65)) {
				t.Error("from the adopted checkpoints they go on differently")
			}
			if _, err := c.Adopt(3, point); !errors.Is(err, models.ErrOutOfReach) {
				t.Errorf("adopting for an empty sequence: error %v", err)
			}
			if err := newTestCache(t, m, 256, kv).Load(0, saved); !errors.Is(err, models.ErrForeignCache) {
				t.Errorf("loading into another cache: error %v", err)
			}
		})
	}
}
