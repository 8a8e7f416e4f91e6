package engine

import (
	"testing"

	"github.com/inkling-go/inkling/internal/devices"
)

// TestChunkRows: a prompt goes by the largest steps unless another sequence has had its
// prompt and waits for its next token.
func TestChunkRows(t *testing.T) {
	of := func(fed, prompt int) *slot {
		s := &slot{}
		s.fed.ids = make([]int32, fed)
		s.t = &task{slot: s, n: prompt}
		return s
	}
	e := &Engine{rows: 2048, rowsBusy: 512}
	for _, c := range []struct {
		name  string
		slots []*slot
		want  int
	}{
		{"alone", []*slot{of(0, 5000), {}}, 2048},
		{"beside another prompt", []*slot{of(2048, 5000), of(0, 3000)}, 2048},
		{"beside an answer", []*slot{of(0, 5000), of(20, 20)}, 512},
		{"beside what an answer left", []*slot{of(0, 5000), {content: of(20, 20).content}}, 2048},
	} {
		s := &scheduler{e: e, prefixes: &prefixes{slots: c.slots}}
		if got := s.chunkRows(); got != c.want {
			t.Errorf("%s: %d rows, want %d", c.name, got, c.want)
		}
	}
}

// TestPromptRows: what is said counts, up to the bound; where nothing is, it is 512 on the CPU.
func TestPromptRows(t *testing.T) {
	for _, c := range []struct{ batch, ubatch, want int }{{0, 0, 512}, {0, 64, 64}, {100, 0, 100}, {100, 300, 100}, {4096, 3000, 3000}} {
		e := openWith(t, Options{Batch: c.batch, UBatch: c.ubatch, Devices: devices.Options{Device: "cpu"}})
		if e.rows != c.want || e.rowsBusy != c.want {
			t.Errorf("batch-size %d, ubatch-size %d: %d rows, %d beside others, want %d", c.batch, c.ubatch, e.rows, e.rowsBusy, c.want)
		}
	}
}
