package inkling

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// Geometry: the random fixture has a window of 16 and a ring of 63 positions,
// a relative extent of 32 in full layers, and log scaling from position 24, so
// that a few hundred tokens cross every edge several times.

// tokens draws n ids of the fixture's plain vocabulary.
func tokens(n int, seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(1000))
	}
	return ids
}

func seqBatch(seq int, ids []int32) models.Batch {
	b := models.Batch{Seq: seq, Tokens: ids}
	for i := range ids {
		b.Outputs = append(b.Outputs, int32(i))
	}
	return b
}

// steps runs batches and returns the logits of every row, for each batch.
func steps(t testing.TB, m *Model, c models.Cache, bs ...models.Batch) [][]float32 {
	t.Helper()
	n := 0
	for _, b := range bs {
		n += len(b.Outputs)
	}
	logits := make([]float32, n*m.Config().Vocab)
	if err := m.Forward(c, bs, models.Outputs{Logits: logits}); err != nil {
		t.Fatal(err)
	}
	var out [][]float32
	for _, b := range bs {
		k := len(b.Outputs) * m.Config().Vocab
		out = append(out, logits[:k])
		logits = logits[k:]
	}
	return out
}

// chunked runs ids in chunks of size rows and returns the logits of every row.
func chunked(t testing.TB, m *Model, c models.Cache, seq int, ids []int32, size int) []float32 {
	t.Helper()
	var out []float32
	for i := 0; i < len(ids); i += size {
		out = append(out, steps(t, m, c, seqBatch(seq, ids[i:min(i+size, len(ids))]))[0]...)
	}
	return out
}

// wrapTol: the same sums in another order.
var wrapTol = testutil.Tol{Abs: 1e-3}

// TestChunkSizes: however a prompt is cut, also while the ring wraps five
// times, every row has the logits of the uncut prompt, which never reads a ring.
func TestChunkSizes(t *testing.T) {
	m := loadRandom(t)
	ids := tokens(320, 1)
	want := chunked(t, m, newTestCache(t, m, 512, binding.F32), 0, ids, len(ids))
	for _, size := range []int{1, 2, 3, 4, 7, 15, 16, 17, 33, 64, 100, 256, 260} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			got := chunked(t, m, newTestCache(t, m, 512, binding.F32), 0, ids, size)
			testutil.Close(t, "logits", got, want, wrapTol)
		})
	}
}

// TestPromptLengths: the last row of prompts around the edges of tiles and
// buckets, in chunks of 512 and of 64.
func TestPromptLengths(t *testing.T) {
	m := loadRandom(t)
	ids := tokens(1300, 2)
	c := newTestCache(t, m, 2048, binding.F32)
	last := func(n, size int) []float32 {
		c.Reset(0)
		out := chunked(t, m, c, 0, ids[:n], size)
		return out[len(out)-m.Config().Vocab:]
	}
	whole := chunked(t, m, newTestCache(t, m, 2048, binding.F32), 0, ids, len(ids))
	for _, n := range []int{255, 256, 257, 260, 261, 511, 512, 513, 1023, 1024, 1025, 1279} {
		want := whole[(n-1)*m.Config().Vocab : n*m.Config().Vocab]
		for _, size := range []int{512, 64} {
			if size == 64 && n > 300 { // TestChunkSizes has more of these
				continue
			}
			testutil.Close(t, fmt.Sprintf("prompt of %d in chunks of %d", n, size), last(n, size), want, wrapTol)
		}
	}
}

// TestManySequences: sequences of different lengths, some idle, decode in one
// step and have the logits that each has alone. Chunks of several rows too.
func TestManySequences(t *testing.T) {
	m := loadRandom(t)
	lengths := []int{70, 3, 129, 18, 1}
	const extra = 12
	var want [][]float32 // the rows behind each prompt
	for s, n := range lengths {
		c := newTestCache(t, m, 256, binding.F32)
		ids := tokens(n+extra, uint64(s))
		chunked(t, m, c, 0, ids[:n], n)
		want = append(want, chunked(t, m, c, 0, ids[n:], extra))
	}
	for _, rows := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(rows, " rows a step"), func(t *testing.T) {
			c, err := m.NewCache(len(lengths)+1, 256, binding.F32)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got := make([][]float32, len(lengths))
			var ids [][]int32
			for s, n := range lengths {
				ids = append(ids, tokens(n+extra, uint64(s)))
				chunked(t, m, c, s, ids[s][:n], 50)
			}
			for i := 0; i < extra; i += rows {
				for _, group := range [][]int{{3, 0}, {1, 2, 4}} { // out of order, with idle ones between
					var bs []models.Batch
					for _, s := range group {
						at := lengths[s] + i
						bs = append(bs, seqBatch(s, ids[s][at:at+rows]))
					}
					for k, logits := range steps(t, m, c, bs...) {
						got[group[k]] = append(got[group[k]], logits...)
					}
				}
			}
			for s := range lengths {
				testutil.Close(t, fmt.Sprint("sequence ", s), got[s], want[s], wrapTol)
			}
		})
	}
}

// TestUnequalBatches: a step of prompts of different lengths.
func TestUnequalBatches(t *testing.T) {
	m := loadRandom(t)
	c, err := m.NewCache(2, 256, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, b := tokens(40, 1), tokens(7, 2)
	got := steps(t, m, c, seqBatch(1, a), seqBatch(0, b))
	for i, ids := range [][]int32{a, b} {
		testutil.Close(t, fmt.Sprint("sequence ", i), got[i], chunked(t, m, newTestCache(t, m, 256, binding.F32), 0, ids, len(ids)), wrapTol)
	}
}

// TestTruncate: forgetting 1 to 16 rows and going on equals a fresh prefill.
func TestTruncate(t *testing.T) {
	m := loadRandom(t)
	ids, wrong := tokens(200, 3), tokens(200, 4)
	want := chunked(t, m, newTestCache(t, m, 256, binding.F32), 0, ids, len(ids))
	vocab := m.Config().Vocab
	for _, n := range []int{20, 63, 64, 130} { // rows that stay
		for _, k := range []int{1, 2, 3, 4, 5, 16} {
			c := newTestCache(t, m, 256, binding.F32)
			chunked(t, m, c, 0, ids[:n], n)
			chunked(t, m, c, 0, wrong[:k], 5)
			if err := c.Truncate(0, n); err != nil {
				t.Fatal(err)
			}
			got := chunked(t, m, c, 0, ids[n:n+40], 3)
			testutil.Close(t, fmt.Sprintf("%d rows forgotten behind %d", k, n), got, want[n*vocab:(n+40)*vocab], wrapTol)
		}
	}
}

func TestTruncateOutOfReach(t *testing.T) {
	m := loadRandom(t)
	c := newTestCache(t, m, 256, binding.F32)
	chunked(t, m, c, 0, tokens(100, 1), 100)
	for _, pos := range []int{83, 10, 1} {
		if err := c.Truncate(0, pos); !errors.Is(err, models.ErrOutOfReach) {
			t.Errorf("to %d of 100: error %v", pos, err)
		}
	}
	if err := c.Truncate(0, 90); err != nil {
		t.Fatal(err)
	}
	if err := c.Truncate(0, 83); !errors.Is(err, models.ErrOutOfReach) { // the rows up to 100 were written
		t.Errorf("to 83 after 90: error %v", err)
	}
	if err := c.Truncate(0, 101); err == nil {
		t.Error("truncating forward: no error")
	}
	if err := c.Truncate(0, 0); err != nil || c.Pos(0) != 0 {
		t.Errorf("to 0: %v, %d rows left", err, c.Pos(0))
	}
}

// TestWrongDrafts: fifty rounds of drafts that are all wrong, each rolled back,
// leave the greedy text as it is.
func TestWrongDrafts(t *testing.T) {
	g := testutil.OpenGolden(t, random, "greedy")
	m := loadRandom(t)
	c := newTestCache(t, m, 256, binding.F32)
	prompt, want := goldenIDs(g, "prompt4.ids"), goldenIDs(g, "prompt4.generated")
	next := int32(testutil.Argmax(forward(t, m, c, prompt, false)))
	var got []int32
	for round := range 50 {
		got = append(got, next)
		drafts := []int32{next}
		for d := range 1 + round%8 {
			drafts = append(drafts, (want[round+1]+int32(d)+1)%1000) // never right
		}
		pos := c.Pos(0)
		logits := steps(t, m, c, seqBatch(0, drafts))[0]
		if err := c.Truncate(0, pos+1); err != nil {
			t.Fatal(err)
		}
		next = int32(testutil.Argmax(logits[:m.Config().Vocab]))
	}
	if !slices.Equal(got, want[:50]) {
		t.Errorf("generated %v, want %v", got, want[:50])
	}
}

// TestLongThenShort: a request longer than two windows and a chunk, then a
// short one, equals a fresh process.
func TestLongThenShort(t *testing.T) {
	m := loadRandom(t)
	short := tokens(9, 8)
	want := chunked(t, m, newTestCache(t, m, 1024, binding.F32), 0, short, 9)
	c := newTestCache(t, m, 1024, binding.F32)
	chunked(t, m, c, 0, tokens(900, 7), 300)
	c.Reset(0)
	testutil.Close(t, "short request", chunked(t, m, c, 0, short, 9), want, testutil.Tol{})
}

// TestPoisonedState: NaN that a broken step left in the state is gone after Reset.
func TestPoisonedState(t *testing.T) {
	m := loadRandom(t)
	short := tokens(20, 8)
	want := chunked(t, m, newTestCache(t, m, 128, binding.F32), 0, short, 20)
	c := newTestCache(t, m, 128, binding.F32)
	b := seqBatch(0, tokens(60, 7))
	b.MediaRows, b.Media = []int32{5}, make([]float32, m.Config().Embd)
	for i := range b.Media {
		b.Media[i] = float32(math.NaN())
	}
	if logits := steps(t, m, c, b)[0]; !math.IsNaN(float64(logits[len(logits)-1])) {
		t.Fatal("the test poisons nothing")
	}
	c.Reset(0)
	for _, size := range []int{20, 1} {
		testutil.Close(t, "after the reset", chunked(t, m, c, 0, short, size), want, wrapTol)
		c.Reset(0)
	}
}

// TestCheckpoint: going back to a saved state, far beyond what truncation can do.
func TestCheckpoint(t *testing.T) {
	m := loadRandom(t)
	ids := tokens(220, 3)
	vocab := m.Config().Vocab
	want := chunked(t, m, newTestCache(t, m, 256, binding.F32), 0, ids, len(ids))
	c, err := m.NewCache(2, 256, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const seq = 1
	chunked(t, m, c, seq, ids[:40], 40)
	early := c.Checkpoint(seq)
	chunked(t, m, c, seq, ids[40:90], 50)
	late := c.Checkpoint(seq)
	chunked(t, m, c, seq, tokens(100, 9), 100)
	if early.Pos() != 40 || late.Pos() != 90 || early.Bytes() != late.Bytes() || early.Bytes() == 0 {
		t.Errorf("checkpoints at %d and %d of %d and %d bytes", early.Pos(), late.Pos(), early.Bytes(), late.Bytes())
	}
	for _, p := range []models.Checkpoint{late, early} {
		if err := c.Restore(seq, p); err != nil {
			t.Fatal(err)
		}
		n := p.Pos()
		testutil.Close(t, fmt.Sprint("behind the checkpoint at ", n), chunked(t, m, c, seq, ids[n:n+60], 7), want[n*vocab:(n+60)*vocab], wrapTol)
	}
	if err := c.Restore(seq, late); !errors.Is(err, models.ErrOutOfReach) {
		t.Errorf("restoring a checkpoint beyond an earlier one: error %v", err)
	}
	c.Reset(seq)
	if err := c.Restore(seq, early); !errors.Is(err, models.ErrOutOfReach) {
		t.Errorf("restoring after a reset: error %v", err)
	}
	if err := c.Restore(0, c.Checkpoint(seq)); !errors.Is(err, models.ErrOutOfReach) {
		t.Errorf("restoring another sequence's: error %v", err)
	}
}

// TestCopy: a copied sequence goes on as the original does, and apart from it.
func TestCopy(t *testing.T) {
	m := loadRandom(t)
	ids := tokens(150, 3)
	vocab := m.Config().Vocab
	want := chunked(t, m, newTestCache(t, m, 256, binding.F32), 0, ids, len(ids))
	c, err := m.NewCache(3, 256, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chunked(t, m, c, 2, ids[:100], 100)
	chunked(t, m, c, 0, tokens(30, 6), 30)
	if err := c.Copy(0, 2); err != nil {
		t.Fatal(err)
	}
	chunked(t, m, c, 2, tokens(40, 5), 40)
	testutil.Close(t, "the copy", chunked(t, m, c, 0, ids[100:], 6), want[100*vocab:], wrapTol)
}

// TestFarPositions: at the end of a context of 2^20 tokens, rows one by one and
// two at once agree; what lies before is an empty state.
func TestFarPositions(t *testing.T) {
	m := loadRandom(t)
	m.cfg.contextLength = 1 << 20
	const end, n = 1 << 20, 2
	ids := tokens(n, 5)
	run := func(size int) []float32 {
		c := newTestCache(t, m, end, binding.F16)
		c.(*cache).seqs[0] = sequence{pos: end - n, high: end - n}
		out := chunked(t, m, c, 0, ids, size)
		if c.Pos(0) != 1048576 {
			t.Fatalf("%d rows", c.Pos(0))
		}
		return out
	}
	testutil.AgreeArgmax(t, "rows one by one", run(1), run(n), m.Config().Vocab, 1)
	if got := m.cfg.tau(end - 1); math.Abs(float64(got)-(1+0.1*math.Log(end/24.))) > 1e-6 {
		t.Errorf("log scaling at the last position is %g", got)
	}
}

// TestDeterminism: the same step twice, and one sequence beside three others,
// give the same greedy ids.
func TestDeterminism(t *testing.T) {
	m := loadRandom(t)
	prompt := tokens(30, 11)
	greedy := func(seqs int) []int32 {
		c, err := m.NewCache(seqs, 128, binding.F16)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		next := make([]int32, seqs)
		for s := range seqs {
			p := prompt
			if s > 0 {
				p = tokens(20+s, uint64(s))
			}
			logits := chunked(t, m, c, s, p, len(p))
			next[s] = int32(testutil.Argmax(logits[len(logits)-m.Config().Vocab:]))
		}
		var ids []int32
		for range 40 {
			ids = append(ids, next[0])
			var bs []models.Batch
			for s := range seqs {
				bs = append(bs, seqBatch(s, next[s:s+1]))
			}
			for s, logits := range steps(t, m, c, bs...) {
				next[s] = int32(testutil.Argmax(logits))
			}
		}
		return ids
	}
	want := greedy(1)
	for _, seqs := range []int{1, 4} {
		if got := greedy(seqs); !slices.Equal(got, want) {
			t.Errorf("%d sequences: %v, want %v", seqs, got, want)
		}
	}
}

func TestForwardArguments(t *testing.T) {
	m := loadRandom(t)
	c := newTestCache(t, m, 16, binding.F32)
	vocab := m.Config().Vocab
	for name, bs := range map[string][]models.Batch{
		"nothing":               {},
		"no rows":               {{Outputs: []int32{0}}},
		"no outputs":            {{Tokens: []int32{1}}},
		"token below":           {{Tokens: []int32{-1}, Outputs: []int32{0}}},
		"token above":           {{Tokens: []int32{1088}, Outputs: []int32{0}}},
		"output above":          {{Tokens: []int32{1}, Outputs: []int32{1}}},
		"sequence above":        {{Seq: 1, Tokens: []int32{1}, Outputs: []int32{0}}},
		"twice":                 {{Tokens: []int32{1}, Outputs: []int32{0}}, {Tokens: []int32{1}, Outputs: []int32{0}}},
		"media without values":  {{Tokens: []int32{1}, Outputs: []int32{0}, MediaRows: []int32{0}}},
		"longer than the cache": {seqBatch(0, tokens(17, 1))},
	} {
		n := 0
		for _, b := range bs {
			n += len(b.Outputs)
		}
		if err := m.Forward(c, bs, models.Outputs{Logits: make([]float32, n*vocab)}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if c.Pos(0) != 0 {
			t.Fatalf("%s: left %d rows", name, c.Pos(0))
		}
	}
}
