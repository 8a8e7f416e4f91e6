package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/inkling-go/inkling/models"
)

// maxDraft bounds the tokens that are guessed ahead. With the token that is known
// they are the few rows that a step computes in one graph, and that a sequence can
// be cut back by.
const maxDraft = 15

// Drafts counts guesses by how far ahead they were.
type Drafts struct {
	Rounds   int   // steps with guesses
	Drafted  []int // guesses that were checked
	Accepted []int // of them, those that were right, as all before them
}

// add counts a round with n guesses, the first right of which were right.
func (d *Drafts) add(n, right int) {
	for len(d.Drafted) < n {
		d.Drafted, d.Accepted = append(d.Drafted, 0), append(d.Accepted, 0)
	}
	d.Rounds++
	for i := range n {
		d.Drafted[i]++
		if i < right {
			d.Accepted[i]++
		}
	}
}

// sum adds the counts of other.
func (d *Drafts) sum(other Drafts) {
	d.Rounds += other.Rounds
	for i := range other.Drafted {
		if i == len(d.Drafted) {
			d.Drafted, d.Accepted = append(d.Drafted, 0), append(d.Accepted, 0)
		}
		d.Drafted[i] += other.Drafted[i]
		d.Accepted[i] += other.Accepted[i]
	}
}

// speculation guesses the next tokens of answers, so that the model computes
// them in the step of the token before and only has to be asked whether they are
// what it would have chosen. What is generated stays the same: every token is
// chosen from the model's own logits, in order, with all that a request asks for,
// and a guess only counts if it is that token. Choosing from p and comparing is
// the rule of speculative sampling (Leviathan et al. 2023, section 2.3) for a
// guess that is certain: it is accepted with probability p(guess), and what
// takes its place is distributed as p without it.
type speculation struct {
	drafter models.Drafter // nil: no guesses
	most    int
	adapt   bool
	right   acceptance
	paces   map[int]*pace // of steps, by the number of sequences
	coin    *coin
	drafts  []models.Draft
}

// newSpeculation prepares guesses as the options say.
func newSpeculation(o *Options, m models.Model) (*speculation, error) {
	s := &speculation{adapt: o.Draft == 0, paces: map[int]*pace{}}
	if o.Draft == NoDraft {
		return s, nil
	}
	d, ok := m.(models.Drafter)
	switch {
	case ok && d.MaxDraft() > 0 && !o.NGram:
		s.drafter = d
	case o.NGram || o.Draft > 0:
		s.drafter = nGram{maxDraft}
	default:
		return s, nil
	}
	if s.most = s.drafter.MaxDraft(); o.Draft > 0 {
		s.most = min(s.most, o.Draft)
	} else if o.NGram {
		s.most = autoNGram
	}
	if len(o.Accept) > 0 {
		s.coin = &coin{rates: o.Accept, rng: rand.New(rand.NewPCG(1, 1))}
	}
	return s, nil
}

// length is the number of guesses of the next step.
func (s *speculation) length(seqs int) int {
	if s.drafter == nil || !s.adapt {
		return s.most
	}
	return s.pace(seqs).n
}

func (s *speculation) pace(seqs int) *pace {
	p := s.paces[seqs]
	if p == nil {
		p = newPace(s.most, &s.right)
		s.paces[seqs] = p
	}
	return p
}

// follow tells the drafter of new rows of a prompt.
func (s *speculation) follow(c models.Cache, seq int) error {
	if s.drafter == nil || s.most == 0 {
		return nil
	}
	return s.drafter.Follow(c, seq)
}

// guess returns n tokens for every task, or none. There are as many for all, since
// only alike sequences share a graph: where nothing or less is known the rest is
// filled up, and counts for nothing.
func (s *speculation) guess(c models.Cache, ts []*task) (ds []models.Draft, n int, err error) {
	n = s.length(len(ts))
	s.drafts = slices.Grow(s.drafts[:0], len(ts))
	for i, t := range ts {
		s.drafts = s.drafts[:i+1]
		s.drafts[i].Seq, s.drafts[i].IDs, s.drafts[i].Guess = t.slot.seq, t.p.ids, s.drafts[i].Guess[:0]
		n = min(n, c.Size()-len(t.p.ids))
		if len(t.left()) != 1 {
			n = 0
		}
	}
	if n <= 0 {
		return s.drafts, 0, nil
	}
	if err := s.drafter.Draft(c, s.drafts, n); err != nil {
		return nil, 0, fmt.Errorf("guessing %d tokens: %w", n, err)
	}
	if !slices.ContainsFunc(s.drafts, func(d models.Draft) bool { return len(d.Guess) > 0 }) {
		return s.drafts, 0, nil
	}
	return s.drafts, n, nil
}

// round is what a step with guesses took.
type round struct {
	start, drafted, computed time.Time
}

// note learns from a round in which seqs sequences had n guesses.
func (s *speculation) note(seqs, n int, took time.Duration) {
	if s.drafter != nil && s.adapt {
		s.pace(seqs).note(n, took.Seconds())
	}
}

// coin accepts guesses by chance in place of comparing them, for measuring what
// guesses of some quality would be worth.
type coin struct {
	rates []float64 // by how far ahead; the last one holds beyond
	rng   *rand.Rand
}

// Accept bounds what Options.Accept may be.
func checkAccept(rates []float64) error {
	if len(rates) > maxDraft {
		return fmt.Errorf("accept: %d rates, want at most %d", len(rates), maxDraft)
	}
	for _, r := range rates {
		if !(r >= 0 && r <= 1) {
			return fmt.Errorf("accept: %g, want 0 to 1", r)
		}
	}
	return nil
}

// toss changes logits so that the guess is what is chosen, or is not, and no
// answer ends.
func (c *coin) toss(e *Engine, logits []float32, depth int, guess []int32) {
	for id := range e.stops {
		if int(id) < len(logits) {
			logits[id] = float32(math.Inf(-1))
		}
	}
	if depth >= len(guess) {
		return
	}
	l := &logits[guess[depth]]
	if *l = float32(math.Inf(-1)); c.rng.Float64() < c.rates[min(depth, len(c.rates)-1)] {
		*l = slices.Max(logits) + 1
	}
}

// errDraftOptions is of options that contradict each other.
var errDraftOptions = errors.New("draft")
