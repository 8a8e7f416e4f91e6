package kimik25

import (
	"errors"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// same is the tolerance between two ways of computing the same in F32: sums are
// taken in another order.
var same = testutil.Tol{Abs: 1e-4}

// prompt is the 64 tokens of the reference's prefill.
func prompt(t testing.TB) []int32 {
	return goldenIDs(testutil.OpenGolden(t, random, "text_prefill"), "input_ids")
}

// TestChunkedPrefill: how a prompt is cut into steps does not matter, for any
// type of cache.
func TestChunkedPrefill(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	want := testutil.OpenGolden(t, random, "text_prefill").Floats("logits")[63*m.cfg.vocab:]
	for _, c := range []struct {
		kv  binding.DType
		tol testutil.Tol
	}{{binding.F32, logitTol}, {binding.F16, testutil.Tol{Abs: 0.1}}, {binding.BF16, testutil.Tol{Abs: 0.5}}} {
		t.Run(c.kv.String(), func(t *testing.T) {
			cache := newTestCache(t, m, 1, 64, c.kv)
			for _, cuts := range [][]int{{64}, {17, 60, 64}, {1, 2, 40, 56, 64}, {63, 64}} {
				cache.Reset(0)
				var got []float32
				first := 0
				for _, end := range cuts {
					got = forward(t, m, cache, ids[first:end], false)
					first = end
				}
				testutil.Close(t, "logits", got, want, c.tol)
			}
			if _, err := m.NewCache(1, 64, binding.Q8_0); err == nil || !strings.Contains(err.Error(), "whole blocks") {
				t.Errorf("q8_0 with rows of 80: error %v", err)
			}
		})
	}
}

// TestSequences: sequences of different length share a step, with an idle one
// between them, and give what each gives alone.
func TestSequences(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	vocab := m.Config().Vocab
	for _, kv := range []binding.DType{binding.F32, binding.F16} {
		t.Run(kv.String(), func(t *testing.T) {
			alone, together := newTestCache(t, m, 1, 64, kv), newTestCache(t, m, 4, 64, kv)
			starts := map[int]int{0: 30, 1: 7, 3: 19} // 2 stays empty
			logits := make([]float32, 3*2*vocab)
			var bs, steps []models.Batch
			var want []float32
			for _, seq := range []int{3, 0, 1} {
				n := starts[seq]
				bs = append(bs, batch(seq, ids[:n], false))
				steps = append(steps, batch(seq, ids[n:n+2], true))
				alone.Reset(0)
				forward(t, m, alone, ids[:n], false)
				forward(t, m, alone, ids[n:n+2], false)
				want = append(want, forward(t, m, alone, ids[n+2:n+4], true)...)
			}
			if err := m.Forward(together, bs, models.Outputs{Logits: make([]float32, 3*vocab)}); err != nil { // of different length: one by one
				t.Fatal(err)
			}
			if err := m.Forward(together, steps, models.Outputs{Logits: logits}); err != nil { // alike: in one graph
				t.Fatal(err)
			}
			for i, seq := range []int{3, 0, 1} {
				n := starts[seq]
				steps[i] = batch(seq, ids[n+2:n+4], true)
			}
			if err := m.Forward(together, steps, models.Outputs{Logits: logits}); err != nil {
				t.Fatal(err)
			}
			tol := same
			if kv == binding.F16 && !m.be.Device().IsCPU() { // kernels round to F16 in between, and differ by the number of rows
				tol = testutil.Tol{Abs: 0.1}
			}
			testutil.Close(t, "logits", logits, want, tol)
			if together.Pos(2) != 0 || together.Pos(3) != 23 {
				t.Errorf("positions %d and %d, want 0 and 23", together.Pos(2), together.Pos(3))
			}
		})
	}
}

// TestTruncateRestoreCopy: rows can be forgotten, restored and copied, and what
// follows is as if nothing had happened.
func TestTruncateRestoreCopy(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	c := newTestCache(t, m, 2, 64, binding.F32)
	forward(t, m, c, ids[:30], false)
	saved := c.Checkpoint(0)
	want := forward(t, m, c, ids[30:40], false)

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Truncate(0, 35))
	testutil.Close(t, "after truncation", forward(t, m, c, ids[35:40], false), want, same)
	must(c.Restore(0, saved))
	if saved.Pos() != 30 || c.Pos(0) != 30 {
		t.Errorf("restored to %d, checkpoint of %d, want 30", c.Pos(0), saved.Pos())
	}
	testutil.Close(t, "after restoring", forward(t, m, c, ids[30:40], false), want, same)
	must(c.Truncate(0, 30))
	must(c.Copy(1, 0))
	b := batch(1, ids[30:40], false)
	got := make([]float32, m.Config().Vocab)
	must(m.Forward(c, []models.Batch{b}, models.Outputs{Logits: got}))
	testutil.Close(t, "the copy", got, want, same)

	must(c.Restore(0, saved)) // cut back to it, not below
	must(c.Truncate(0, 29))
	forward(t, m, c, ids[29:40], false)
	if err := c.Restore(0, saved); !errors.Is(err, models.ErrOutOfReach) {
		t.Errorf("restoring what was truncated: %v, want ErrOutOfReach", err)
	}
	zero := newTestCache(t, m, 1, 64, binding.F32)
	first := zero.Checkpoint(0)
	forward(t, m, zero, ids[:3], false)
	must(zero.Restore(0, first))
	zero.Reset(0)
	for name, c := range map[string]models.Checkpoint{"before a reset": first, "of another cache": saved} {
		if err := zero.Restore(0, c); !errors.Is(err, models.ErrOutOfReach) {
			t.Errorf("restoring a checkpoint %s: %v, want ErrOutOfReach", name, err)
		}
	}
	if err := zero.Truncate(0, 1); err == nil {
		t.Error("truncating beyond the end: no error")
	}
}

func TestForwardErrors(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	c := newTestCache(t, m, 2, 8, binding.F32)
	vocab := m.Config().Vocab
	for _, tc := range []struct {
		name   string
		bs     []models.Batch
		logits int
		want   string
	}{
		{"nothing", nil, 0, "without rows"},
		{"no tokens", []models.Batch{{Outputs: []int32{0}}}, vocab, "needs a row"},
		{"no outputs", []models.Batch{{Tokens: ids[:2]}}, 0, "needs a row"},
		{"full", []models.Batch{batch(0, ids[:9], false)}, vocab, "context is full"},
		{"room", []models.Batch{batch(0, ids[:2], false)}, 3, "room for 3 logits"},
		{"sequence", []models.Batch{batch(2, ids[:2], false)}, vocab, "sequence 2"},
		{"twice", []models.Batch{batch(1, ids[:2], false), batch(1, ids[:2], false)}, 2 * vocab, "twice"},
		{"token", []models.Batch{{Tokens: []int32{int32(vocab)}, Outputs: []int32{0}}}, vocab, "token 1056 is outside"},
		{"media", []models.Batch{{Tokens: ids[:2], MediaRows: []int32{0}, Outputs: []int32{0}}}, vocab, "0 media values for 1 rows"},
		{"media row", []models.Batch{{Tokens: ids[:2], MediaRows: []int32{2}, Media: make([]float32, 128), Outputs: []int32{0}}}, vocab, "media row 2"},
		{"output", []models.Batch{{Tokens: ids[:2], Outputs: []int32{-1}}}, vocab, "output row -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := m.Forward(c, tc.bs, models.Outputs{Logits: make([]float32, tc.logits)}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		seqs, size int
		kv         binding.DType
		want       string
	}{
		{1, 64, binding.I32, "want f32, f16, bf16 or q8_0"},
		{1, 0, binding.F32, "context of 0 tokens"},
		{1, 262145, binding.F32, "want 1 to 262144"},
		{0, 64, binding.F32, "0 sequences"},
	} {
		if _, err := m.NewCache(tc.seqs, tc.size, tc.kv); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("NewCache(%d, %d, %s): error %v, want %q", tc.seqs, tc.size, tc.kv, err, tc.want)
		}
	}
}

// TestComputeBytes: the measured size is what a step really takes, and long
// prefills are cut so that scores do not outgrow their bound.
func TestComputeBytes(t *testing.T) {
	m, ids := loadRandom(t), prompt(t)
	c := newTestCache(t, m, 1, 64, binding.F32)
	want, err := m.ComputeBytes(c, 64)
	if err != nil {
		t.Fatal(err)
	}
	forward(t, m, c, ids, false)
	if got := m.exec.Bytes() + m.be.WorkBytes(); got != want {
		t.Errorf("a step takes %d bytes, measured were %d", got, want)
	}
	long := newTestCache(t, m, 1, 100_000, binding.F32)
	n, err := m.ComputeBytes(long, 2048)
	if err != nil {
		t.Fatal(err)
	}
	scores := int64(4 * 4 * 2048 * 100_000) // of all queries at once: 3.3 GB
	if n > scores {
		t.Errorf("2048 rows of 100000 take %d bytes, more than the scores of all queries at once (%d)", n, scores)
	}
}

// TestFarPositions: at the end of a context far beyond that of the original rotations,
// rows one by one give what they give together, with either way of attention.
func TestFarPositions(t *testing.T) {
	m := loadRandom(t)
	const end, n = 1 << 16, 4
	m.cfg.contextLength = end
	ids := prompt(t)[:n]
	run := func(fused bool, size int) (out []float32) {
		c := newTestCache(t, m, 1, end, binding.F16).(*cache)
		c.seqs[0] = sequence{pos: end - n, high: end - n}
		for il := range c.flash {
			c.flash[il] = c.flash[il] && fused
		}
		for i := 0; i < n; i += size {
			out = append(out, forward(t, m, c, ids[i:i+size], true)...)
		}
		if c.Pos(0) != end {
			t.Fatalf("%d rows, want %d", c.Pos(0), end)
		}
		return out
	}
	want := run(false, n)
	testutil.AgreeArgmax(t, "rows one by one", run(false, 1), want, m.cfg.vocab, 1)
	testutil.AgreeArgmax(t, "fused attention", run(true, n), want, m.cfg.vocab, 1)
}
