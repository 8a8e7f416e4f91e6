package engine

import "github.com/inkling-go/inkling/models"

// Bounds of nGram: the tokens that have to repeat, at least and at most, and how
// far back they are looked for.
const (
	leastGram = 2
	mostGram  = 4
	maxBack   = 1 << 16
)

// nGram guesses that what followed the last tokens where they stood before
// follows them again: prompt lookup decoding (Saxena 2023). It costs next to
// nothing and pays where an answer repeats its prompt or itself.
type nGram struct{ most int }

// MaxDraft is the largest number of tokens that Draft can be asked for.
func (g nGram) MaxDraft() int { return g.most }

// Draft looks for the last tokens of every element.
func (g nGram) Draft(_ models.Cache, ds []models.Draft, n int) error {
	for i := range ds {
		ds[i].Guess = lookUp(ds[i].Guess[:0], ds[i].IDs, n)
	}
	return nil
}

// Follow does nothing: there is no state.
func (g nGram) Follow(models.Cache, ...int) error { return nil }

// lookUp appends to guess n tokens that followed the longest repeated end of
// ids, the latest of several. A repetition that reaches the end goes on in the
// same way.
func lookUp(guess, ids []int32, n int) []int32 {
	end := len(ids)
	best, at := leastGram-1, 0
	for i := end - 1; i >= max(1, end-maxBack) && best < mostGram; i-- { // ids[:i] is to end as ids does
		same := 0
		for same < mostGram && same < i && ids[i-1-same] == ids[end-1-same] {
			same++
		}
		if same > best {
			best, at = same, i
		}
	}
	if at == 0 {
		return guess
	}
	period := end - at
	for k := range n {
		guess = append(guess, ids[at+k%period])
	}
	return guess
}
