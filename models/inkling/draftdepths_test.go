package inkling

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// loadFour opens the trained checkpoint with four depths: its own two, and both again.
func loadFour(t testing.TB) *Model {
	t.Helper()
	keys := map[string]any{}
	f := openGGUF(t, tinyFiles(t).MTP)
	for _, key := range []string{"block_count", "dense_block_count", "nextn_predict_layers"} {
		keys[prefix+key] = uint32(4)
	}
	kv, err := f.Ints(prefix + "attention.head_count_kv")
	if err != nil {
		t.Fatal(err)
	}
	sliding, err := f.Bools(prefix + "attention.sliding_window_pattern")
	if err != nil {
		t.Fatal(err)
	}
	var heads []int32
	for _, n := range slices.Concat(kv, kv) {
		heads = append(heads, int32(n))
	}
	keys[prefix+"attention.head_count_kv"], keys[prefix+"attention.sliding_window_pattern"] = heads, slices.Concat(sliding, sliding)
	path := testutil.Rewrite(t, f.Path(), keys, func(x testutil.Tensor) []testutil.Tensor {
		again := x
		again.Name = strings.NewReplacer("blk.0.", "blk.2.", "blk.1.", "blk.3.").Replace(x.Name)
		return []testutil.Tensor{x, again}
	})
	p := models.Params{Backend: newBackend(t), MTP: openGGUF(t, path), MTPDepths: 4}
	m, err := models.Open(openGGUF(t, tinyFiles(t).Model), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.(*Model)
}

// wantWhole checks that no depth has forgotten rows of a sequence.
func wantWhole(t testing.TB, c models.Cache, seq int) {
	t.Helper()
	for d, b := range c.(*mtpCache).tails[seq].depths {
		if b.origin != 0 {
			t.Errorf("depth %d began anew at row %d", d, b.origin)
		}
	}
}

// TestDraftFewer: whichever number of depths was wanted for how long, those that are
// wanted now guess what they do where all are computed in every round.
func TestDraftFewer(t *testing.T) {
	m := loadFour(t)
	const size = 1024
	ids := tokens(size, 9)
	all, some := newTestCache(t, m, size, binding.F32), newTestCache(t, m, size, binding.F32)
	rng := rand.New(rand.NewPCG(9, 9))
	asked := [5]int{}
	for n, left, depths := 0, 0, 4; n < 500; left-- {
		if left == 0 {
			left, depths = 1+rng.IntN(8), 1+rng.IntN(4)
		}
		if n > 0 {
			want, got := guess(t, m, all, 0, ids[:n+1], 4), guess(t, m, some, 0, ids[:n+1], depths)
			if len(got) != depths || !slices.Equal(got, want[:depths]) {
				t.Errorf("behind %d tokens: %d depths guess %v, want %v", n+1, depths, got, want)
			}
			asked[depths]++
		}
		right := 1 + rng.IntN(depths+1)
		b := models.Batch{Tokens: slices.Clone(ids[n : n+right]), Outputs: []int32{0}}
		for range depths + 1 - right {
			b.Tokens = append(b.Tokens, int32(rng.IntN(1000)))
		}
		n += right
		for _, c := range []models.Cache{all, some} {
			feed(t, m, c, b)
			if err := c.Truncate(0, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if slices.Min(asked[1:]) == 0 {
		t.Errorf("drafts by their depths %v, want some of each", asked)
	}
	wantWhole(t, some, 0)
}

// TestDraftSwitch: the second depth guesses what the reference's does also behind
// rows for which only the first one was wanted.
func TestDraftSwitch(t *testing.T) {
	items := readEval(t)
	m := loadTiny(t, 2)
	for i := 2; i < len(items); i += 10 {
		it := &items[i]
		c := newTestCache(t, m, 1024, binding.F32)
		p, ids := len(it.Prompt), it.tokens()
		feed(t, m, c, it.batch(0, p))
		for k, id := range it.Reference.Tokens {
			n := 2 - k/4%2
			got := guess(t, m, c, 0, ids[:p+k+1], n)
			if it.wantGuess(t, k, got); len(got) != n {
				t.Errorf("item %s, token %d: guesses %v, want %d", it.ID, k, got, n)
			}
			feed(t, m, c, models.Batch{Tokens: []int32{id}, Outputs: []int32{0}})
		}
		wantWhole(t, c, 0)
		c.Close()
	}
}

// TestDraftSavedBehind: a sequence that was restored, copied, loaded or that adopted a
// checkpoint while the second depth was behind catches up from there.
func TestDraftSavedBehind(t *testing.T) {
	items := readEval(t)
	it := &items[102]
	m := loadTiny(t, 2)
	p, ids := len(it.Prompt), it.tokens()
	const at, rounds = 8, 6 // tokens of the answer before and behind what is saved
	for _, tc := range waysBack {
		t.Run(tc.name, func(t *testing.T) {
			c, err := m.NewCache(2, 1024, binding.F32)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			feed(t, m, c, it.batch(0, p))
			draftOne := func(from, to int) {
				for k := from; k < to; k++ {
					it.wantGuess(t, k, guess(t, m, c, 0, ids[:p+k+1], 1))
					feed(t, m, c, models.Batch{Tokens: ids[p+k : p+k+1], Outputs: []int32{0}})
				}
			}
			guess(t, m, c, 0, ids[:p+1], 2)
			draftOne(0, at)
			if b := c.(*mtpCache).tails[0].depths[1]; b.done > p {
				t.Errorf("the second depth has %d rows, though only the first was wanted", b.done)
			}
			point, saved := c.Checkpoint(0), c.Save(0)
			if tc.name == "copy" {
				if err := c.Copy(1, 0); err != nil {
					t.Fatal(err)
				}
			}
			draftOne(at, at+rounds)
			bringBack(t, m, c, tc.name, ids[:p+at+1], point, saved)
			for k := at; k < at+rounds; k++ {
				it.wantGuess(t, k, guess(t, m, c, tc.seq, ids[:p+k+1], 2))
				feed(t, m, c, models.Batch{Seq: tc.seq, Tokens: ids[p+k : p+k+1], Outputs: []int32{0}})
			}
			wantWhole(t, c, tc.seq)
		})
	}
}

// TestDraftAsleep: a depth that nobody wants is not computed, neither for answers nor
// for prompts, and keeps little; when it is wanted it begins anew.
func TestDraftAsleep(t *testing.T) {
	m := loadTiny(t, 2)
	c := newTestCache(t, m, 2048, binding.F32)
	ids := tokens(1500, 3)
	var computed [2]int
	m.mtp.onTap = func(name string, d int, shape [4]int64, _ []float32) {
		if name == "mtp_hidden" {
			computed[d] += int(shape[1])
		}
	}
	defer func() { m.mtp.onTap = nil }()
	feed(t, m, c, models.Batch{Tokens: ids[:2], Outputs: []int32{0}})
	for n := 2; n < 300; n++ {
		guess(t, m, c, 0, ids[:n+1], 1)
		feed(t, m, c, models.Batch{Tokens: ids[n : n+1], Outputs: []int32{0}})
	}
	if computed != [2]int{2 * 298, 0} {
		t.Errorf("rows computed by depth: %v, want two a round and none", computed)
	}
	for n := 300; n < 1400; n += 100 {
		feed(t, m, c, models.Batch{Tokens: ids[n : n+100], Outputs: []int32{0}})
		if err := m.Follow(c, 0); err != nil {
			t.Fatal(err)
		}
	}
	second := &c.(*mtpCache).tails[0].depths[1]
	if n := len(second.hidden) / 256; computed[0] < 2*298+maxBehind || computed[1] != 0 || n > maxAsleep {
		t.Errorf("rows computed by depth: %v, and %d wait; want those of the prompt and none, and at most %d", computed, n, maxAsleep)
	}
	if got := guess(t, m, c, 0, ids[:1401], 2); len(got) != 2 || second.origin < 1400-maxBehind-maxAsleep || second.done < 1399 {
		t.Errorf("guesses %v of rows %d to %d, want two of the last rows", got, second.origin, second.done)
	}
	if computed[1] > maxAsleep+maxBehind {
		t.Errorf("the second depth took %d rows to catch up", computed[1])
	}
}
