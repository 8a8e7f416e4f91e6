package engine

// acceptance is the share of guesses that were right, by how far ahead they
// were, among those whose predecessors were right.
type acceptance struct {
	share  [MaxDraft]float64
	recent [MaxDraft]float64 // of the last few
	tested [MaxDraft]int     // that share stands on
}

// What acceptance starts from, and how fast old results fade.
const (
	firstShare  = 0.8 // of what was never tested
	firstWeight = 1   // results that this counts as
	longMemory  = 64
	shortMemory = 8
)

// note takes the result of one guess.
func (a *acceptance) note(depth int, right bool) {
	hit := 0.0
	if right {
		hit = 1
	}
	if a.tested[depth] == 0 {
		a.share[depth], a.recent[depth] = firstShare, firstShare
	}
	a.tested[depth]++
	n := float64(a.tested[depth] + firstWeight)
	a.share[depth] += (hit - a.share[depth]) / min(n, longMemory)
	a.recent[depth] += (hit - a.recent[depth]) / min(n, shortMemory)
}

// doubt lets the last few results stand for all, and the next ones change that soon.
func (a *acceptance) doubt() {
	for d, n := range a.tested {
		if n > 0 {
			a.share[d], a.tested[d] = a.recent[d], 1
		}
	}
}

// tokens is the expected number of tokens of a round with n guesses.
func (a *acceptance) tokens(n int) float64 {
	sum, all := 1.0, 1.0
	for d := range n {
		share := firstShare
		if a.tested[d] > 0 {
			share = a.share[d]
		}
		all *= share
		sum += all
	}
	return sum
}
