package inkling

import (
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/media"
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

// BenchmarkAudioTower makes rows of 4096 values of a minute of sound, without finding its
// frequencies.
func BenchmarkAudioTower(b *testing.B) {
	path := filepath.Join(b.TempDir(), "mmproj.gguf")
	writeAudioTower(b, path, 4096, media.DMelLevels)
	p, err := models.OpenProjector(openGGUF(b, path), models.Params{Backend: newBackend(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	levels := make([]int32, 1200*media.MelBins)
	for i := range levels {
		levels[i] = int32(i * 7 % media.DMelLevels)
	}
	rows := make([]float32, 1200*4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.(*Projector).encodeFrames(rows, levels); err != nil {
			b.Fatal(err)
		}
	}
}
