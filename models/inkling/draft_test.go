package inkling

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// guess asks for n tokens behind ids in sequence seq.
func guess(t testing.TB, m *Model, c models.Cache, seq int, ids []int32, n int) []int32 {
	t.Helper()
	ds := []models.Draft{{Seq: seq, IDs: ids}}
	if err := m.Draft(c, ds, n); err != nil {
		t.Fatal(err)
	}
	return ds[0].Guess
}

// wantGuess compares a draft behind token k of the answer with the reference's,
// whose deeper depths were given the right tokens.
func (it *evalItem) wantGuess(t testing.TB, k int, got []int32) {
	t.Helper()
	for d := range got {
		if k >= len(it.Drafts[d]) {
			return
		}
		if got[d] != it.Drafts[d][k] {
			t.Errorf("item %s, token %d: depth %d guesses %d, want %d", it.ID, k, d, got[d], it.Drafts[d][k])
		}
		if got[d] != it.Reference.Tokens[k+1+d] {
			return
		}
	}
}

// TestDraftReference: whatever was fed and cut off again, however the prompt was
// cut, and with or without Follow, a draft is what depths guess that have computed
// every row with the tokens that stand there now.
func TestDraftReference(t *testing.T) {
	items := readEval(t)
	m := loadTiny(t, 2)
	c := newTestCache(t, m, 1024, binding.F32)
	for i := 0; i < len(items); i += 5 {
		it := &items[i]
		rng := rand.New(rand.NewPCG(uint64(i), 5))
		c.Reset(0)
		p, ids := len(it.Prompt), it.tokens()
		for at, chunk := 0, 7+rng.IntN(400); at < p; at += chunk {
			feed(t, m, c, it.batch(at, min(at+chunk, p)))
			if i%2 == 0 {
				if err := m.Follow(c, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		for k := 0; k < len(it.Reference.Tokens); {
			if rng.IntN(4) > 0 {
				it.wantGuess(t, k, guess(t, m, c, 0, ids[:p+k+1], 1+rng.IntN(2)))
			}
			right := min(1+rng.IntN(3), len(it.Reference.Tokens)-k)
			b := models.Batch{Tokens: slices.Clone(ids[p+k : p+k+right]), Outputs: []int32{0}}
			for range rng.IntN(4) {
				b.Tokens = append(b.Tokens, int32(rng.IntN(1000)))
			}
			feed(t, m, c, b)
			k += right
			if err := c.Truncate(0, p+k); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDraftTogether: sequences of different length, of different kinds of prompts
// and with idle ones between them get the drafts that each gets alone.
func TestDraftTogether(t *testing.T) {
	items := readEval(t)
	m := loadTiny(t, 2)
	c, err := m.NewCache(5, 1024, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	seqs := map[int]*evalItem{0: &items[3], 1: &items[60], 4: &items[101]}
	for seq, it := range seqs {
		b := it.batch(0, len(it.Prompt))
		b.Seq = seq
		feed(t, m, c, b)
	}
	feed(t, m, c, seqBatch(3, []int32{1})) // knows too little for a window of the others' size
	for k := range 6 {
		ds := []models.Draft{{Seq: 3, IDs: []int32{1, 2}}}
		var bs []models.Batch
		for _, seq := range []int{4, 0, 1} {
			it := seqs[seq]
			ds = append(ds, models.Draft{Seq: seq, IDs: it.tokens()[:len(it.Prompt)+k+1]})
			bs = append(bs, models.Batch{Seq: seq, Tokens: it.Reference.Tokens[k : k+1], Outputs: []int32{0}})
		}
		if err := m.Draft(c, ds, 2); err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if len(d.Guess) != 2 {
				t.Fatalf("sequence %d: draft %v, want two tokens", d.Seq, d.Guess)
			}
			if it := seqs[d.Seq]; it != nil {
				it.wantGuess(t, k, d.Guess)
			}
		}
		feed(t, m, c, bs...)
	}
}

// waysBack are the ways for a sequence to be as sequence 0 was before, and which it is.
var waysBack = []struct {
	name string
	seq  int
}{{"truncate", 0}, {"restore", 0}, {"copy", 1}, {"load", 1}, {"adopt", 1}}

// bringBack goes one of waysBack, but a copy, which was made in time. tokens are those of
// the state, and one more.
func bringBack(t *testing.T, m *Model, c models.Cache, way string, tokens []int32, point, saved models.Checkpoint) {
	t.Helper()
	var err error
	switch way {
	case "truncate":
		err = c.Truncate(0, len(tokens)-1)
	case "restore":
		err = c.Restore(0, point)
	case "load":
		err = c.Load(1, saved)
	case "adopt":
		if err = c.Load(1, saved); err == nil {
			point, err = c.Adopt(1, point)
		}
		if err == nil {
			guess(t, m, c, 1, tokens, 2)
			err = c.Restore(1, point)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDraftSaved: a sequence that was restored, copied, loaded or that adopted a
// checkpoint guesses what it guessed before.
func TestDraftSaved(t *testing.T) {
	items := readEval(t)
	it := &items[102] // longer than the window and the relative extent
	m := loadTiny(t, 2)
	p, ids := len(it.Prompt), it.tokens()
	for _, tc := range waysBack {
		t.Run(tc.name, func(t *testing.T) {
			c, err := m.NewCache(2, 1024, binding.F32)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			feed(t, m, c, it.batch(0, p))
			if err := m.Follow(c, 0); err != nil {
				t.Fatal(err)
			}
			point, saved := c.Checkpoint(0), c.Save(0)
			if tc.name == "copy" {
				if err := c.Copy(1, 0); err != nil {
					t.Fatal(err)
				}
			}
			for k := range 8 {
				guess(t, m, c, 0, ids[:p+k+1], 2)
				feed(t, m, c, models.Batch{Tokens: ids[p+k : p+k+1], Outputs: []int32{0}})
			}
			bringBack(t, m, c, tc.name, ids[:p+1], point, saved)
			for d, b := range c.(*mtpCache).tails[tc.seq].depths {
				if b.origin != 0 {
					t.Errorf("depth %d began anew at row %d", d, b.origin)
				}
			}
			for k := range 8 {
				it.wantGuess(t, k, guess(t, m, c, tc.seq, ids[:p+k+1], 2))
				feed(t, m, c, models.Batch{Seq: tc.seq, Tokens: ids[p+k : p+k+1], Outputs: []int32{0}})
			}
		})
	}
}

// TestDraftForgets: what was never drafted for is forgotten when it becomes long,
// and drafts begin anew there.
func TestDraftForgets(t *testing.T) {
	m := loadTiny(t, 2)
	c := newTestCache(t, m, 4096, binding.F32)
	ids := tokens(2600, 4)
	for at := 0; at < 2500; at += 100 {
		feed(t, m, c, models.Batch{Tokens: ids[at : at+100], Outputs: []int32{0}})
	}
	tail := &c.(*mtpCache).tails[0]
	if n := len(tail.ids); n > 2*maxBehind+100 {
		t.Errorf("%d rows wait, want at most %d", n, 2*maxBehind+100)
	}
	if got := guess(t, m, c, 0, ids[:2501], 2); len(got) != 2 || tail.depths[0].origin == 0 || tail.depths[1].origin == 0 {
		t.Errorf("draft %v from rows %d and %d on, want two tokens and later beginnings", got, tail.depths[0].origin, tail.depths[1].origin)
	}
	if n := len(tail.ids); n > 2*keepRows {
		t.Errorf("%d rows are kept behind a draft, want at most %d", n, 2*keepRows)
	}
	// Cut back to where nothing waits any more: nothing is known of the row before.
	tail.depths[0].drop(2500, 256)
	if got := guess(t, m, c, 0, ids[:2501], 2); len(got) != 0 {
		t.Errorf("draft %v of nothing", got)
	}
	feed(t, m, c, models.Batch{Tokens: ids[2500:2501], Outputs: []int32{0}})
	if got := guess(t, m, c, 0, ids[:2502], 2); len(got) != 2 {
		t.Errorf("draft %v of one row, want two tokens", got)
	}
}

// TestDraftKeepsResults: a model with depths computes what it computes without.
func TestDraftKeepsResults(t *testing.T) {
	with, without := loadTiny(t, 1), loadTiny(t, 0)
	ids := tokens(60, 8)
	c := newTestCache(t, with, 256, binding.F16)
	got := chunked(t, with, c, 0, ids[:40], 13)
	if g := guess(t, with, c, 0, ids[:41], 1); len(g) != 1 {
		t.Errorf("draft %v, want one token", g)
	}
	got = append(got, chunked(t, with, c, 0, ids[40:], 5)...)
	plain := newTestCache(t, without, 256, binding.F16)
	want := append(chunked(t, without, plain, 0, ids[:40], 13), chunked(t, without, plain, 0, ids[40:], 5)...)
	if !slices.Equal(got, want) {
		t.Error("logits differ")
	}
	if with.MaxDraft() != 1 || without.MaxDraft() != 0 {
		t.Errorf("drafts of up to %d and %d, want 1 and 0", with.MaxDraft(), without.MaxDraft())
	}
	if err := without.Draft(plain, nil, 1); !errors.Is(err, models.ErrForeignCache) {
		t.Errorf("a draft without depths: error %v", err)
	}
}

func TestDraftErrors(t *testing.T) {
	m := loadTiny(t, 2)
	c := newTestCache(t, m, 64, binding.F32)
	feed(t, m, c, seqBatch(0, []int32{1, 2, 3}))
	for _, tc := range []struct {
		name string
		d    models.Draft
		n    int
		want string
	}{
		{"too many", models.Draft{IDs: []int32{1, 2, 3, 4}}, 3, "want 1 to 2"},
		{"none", models.Draft{IDs: []int32{1, 2, 3, 4}}, 0, "want 1 to 2"},
		{"sequence", models.Draft{Seq: 1, IDs: []int32{1, 2}}, 1, "sequence 1 is outside"},
		{"nothing behind", models.Draft{IDs: []int32{1, 2, 3}}, 1, "want one more"},
		{"token", models.Draft{IDs: []int32{1, 2, 3, 1280}}, 1, "token 1280 is outside"},
	} {
		if err := m.Draft(c, []models.Draft{tc.d}, tc.n); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
	if err := m.Follow(c, 7); err == nil {
		t.Error("Follow of a sequence that is not there: no error")
	}
}

// TestMTPFiles: a file in the place of another says what it is.
func TestMTPFiles(t *testing.T) {
	loadTiny(t, 1)
	text, ahead := tinyFiles(t).Model, tinyFiles(t).MTP
	for _, tc := range []struct{ name, model, mtp, want string }{
		{"depths as a model", ahead, "", "not a text model"},
		{"model as depths", text, text, "holds no layers for multi-token prediction"},
		{"projector as depths", text, tinyFiles(t).MMProj, "holds no layers for multi-token prediction"},
		{"another model's", randomFiles(t).Model, ahead, "embedding_length\": 256, but the model has"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := models.Params{Backend: newBackend(t), MTPDepths: 2}
			if tc.mtp != "" {
				p.MTP = openGGUF(t, tc.mtp)
			}
			if m, err := models.Open(openGGUF(t, tc.model), p); err == nil || !strings.Contains(err.Error(), tc.want) {
				if err == nil {
					m.Close()
				}
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestStateAfterRounds: after a thousand rounds of right and wrong tokens a sequence
// is what it is when it gets the right ones at once: its logits, what it generates,
// and what is guessed.
func TestStateAfterRounds(t *testing.T) {
	m := loadTiny(t, 2)
	const rounds = 1000
	ids := tokens(3*rounds+1, 6)
	c := newTestCache(t, m, 4096, binding.F32)
	rng := rand.New(rand.NewPCG(6, 6))
	n := 0
	for range rounds {
		right := 1 + rng.IntN(3)
		b := models.Batch{Tokens: slices.Clone(ids[n : n+right]), Outputs: []int32{0}}
		for range rng.IntN(6) {
			b.Tokens = append(b.Tokens, int32(rng.IntN(1000)))
		}
		if n > 0 && rng.IntN(2) == 0 {
			guess(t, m, c, 0, ids[:n+1], 1+rng.IntN(2))
		}
		feed(t, m, c, b)
		n += right
		if err := c.Truncate(0, n); err != nil {
			t.Fatal(err)
		}
	}
	fresh := newTestCache(t, m, 4096, binding.F32)
	feed(t, m, fresh, models.Batch{Tokens: ids[:n], Outputs: []int32{0}})
	known := slices.Clone(ids[:n+1])
	for range 24 {
		if got, want := guess(t, m, c, 0, known, 2), guess(t, m, fresh, 0, known, 2); !slices.Equal(got, want) {
			t.Errorf("behind %d tokens: guesses %v, want %v", len(known), got, want)
		}
		last := known[len(known)-1:]
		got, want := forward(t, m, c, last, false), forward(t, m, fresh, last, false)
		testutil.Close(t, "logits", got, want, wrapTol)
		id := int32(testutil.Argmax(want))
		if other := int32(testutil.Argmax(got)); other != id {
			t.Fatalf("token %d is %d, want %d", len(known), other, id)
		}
		known = append(known, id)
	}
}
