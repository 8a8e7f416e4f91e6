package inkling

import (
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// BenchmarkDecode is one token of the random fixture: almost all of it is the
// host's work per step and the launching of small nodes.
func BenchmarkDecode(b *testing.B) {
	m := loadRandom(b)
	c := newTestCache(b, m, 4096, binding.F16)
	batch := []models.Batch{{Tokens: []int32{1}, Outputs: []int32{0}}}
	logits := make([]float32, m.Config().Vocab)
	b.ReportAllocs()
	for b.Loop() {
		if c.Pos(0) == c.Size() {
			c.Reset(0)
		}
		if err := m.Forward(c, batch, models.Outputs{Logits: logits}); err != nil {
			b.Fatal(err)
		}
	}
}
