package token

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mergeSlowly is byte-pair encoding as it is defined: as long as there is one, merge the leftmost of the neighbours with the
// lowest rank.
func mergeSlowly(m *bpe, piece string) []int32 {
	var ids []int32
	for i := range len(piece) {
		ids = append(ids, m.bytes[piece[i]])
	}
	for {
		best, at := merge{}, -1
		for i := range len(ids) - 1 {
			if g, ok := m.merges[pair{ids[i], ids[i+1]}]; ok && (at < 0 || g.rank < best.rank) {
				best, at = g, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = append(append(ids[:at:at], best.id), ids[at+2:]...)
	}
}

func TestMergeOrder(t *testing.T) {
	v := loadVocab(t, tinyDir)
	rng := rand.New(rand.NewPCG(1, 2))
	var w mergeWork
	for range 3000 {
		var b strings.Builder
		for range 1 + rng.IntN(40) {
			// Pieces of real tokens, so that many merges compete.
			b.Write(v.pieces[rng.IntN(1208)])
		}
		if rng.IntN(4) == 0 {
			b.WriteString(strings.Repeat("e", rng.IntN(30)))
		}
		piece := b.String()
		if d := cmp.Diff(mergeSlowly(&v.bpe, piece), v.bpe.appendPiece(nil, piece, &w)); d != "" {
			t.Fatalf("%q (-definition +heap):\n%s", piece, d)
		}
	}
}

// TestLongPiece gives the merge loop its worst case, one piece of 50,000 equal letters. A quadratic loop takes many seconds.
func TestLongPiece(t *testing.T) {
	v := vocabOf(t, `"a": 256, "aa": 257, "aaaa": 258`, `"a a", "aa aa"`)
	text := strings.Repeat("a", 50_001)
	start := time.Now()
	ids := v.Encode(text)
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
	// 50,001 = 12,500 · 4 + 1.
	if len(ids) != 12_501 || ids[0] != idOf4(v) || ids[12_500] == idOf4(v) {
		t.Errorf("%d tokens, want 12500 of four letters and one of one", len(ids))
	}
	if v.Decode(ids) != text {
		t.Error("text is not kept")
	}
}

func idOf4(v *Vocab) int32 {
	for id, p := range v.pieces {
		if string(p) == "aaaa" {
			return int32(id)
		}
	}
	return -1
}

func BenchmarkEncodeEqualLetters(b *testing.B) {
	v := loadVocab(b, tinyDir)
	text := strings.Repeat("e", 50_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v.Encode(text)
	}
}

func BenchmarkEncodeText(b *testing.B) {
	v := loadVocab(b, tinyDir)
	text := strings.Join(sampleTexts(b)[:8], "\n")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v.Encode(text)
	}
}
