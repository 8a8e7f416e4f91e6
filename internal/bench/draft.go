package bench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/inkling-go/inkling/models"
)

// Drafts is what steps with guesses came to, on average over all measurements. A
// step guesses the next tokens, checks them with the one that is known, and forgets
// those that were wrong.
type Drafts struct {
	Tokens   float64 `json:"tokens"`      // of a step and sequence
	Draft    float64 `json:"draft_ms"`    // guessing
	Verify   float64 `json:"verify_ms"`   // computing
	Rollback float64 `json:"rollback_ms"` // forgetting

	steps int
	times [3]time.Duration
	kept  int
}

// settle computes the averages.
func (d *Drafts) settle(seqs int) {
	per := func(t time.Duration) float64 { return t.Seconds() * 1000 / float64(d.steps) }
	d.Tokens = float64(d.kept) / float64(d.steps*seqs)
	d.Draft, d.Verify, d.Rollback = per(d.times[0]), per(d.times[1]), per(d.times[2])
}

// coin decides how many of n guesses are right: the text is made up, and so no
// guess would be.
type coin struct {
	rates []float64 // by how far ahead; the last one holds beyond
	rng   *rand.Rand
}

func newCoin(rates []float64) *coin { return &coin{rates, rand.New(rand.NewPCG(1, 1))} }

func (c *coin) right(n int) int {
	for i := range n {
		if c.rng.Float64() >= c.rates[min(i, len(c.rates)-1)] {
			return i
		}
	}
	return n
}

// checkDrafts finds numbers of guesses that the model can not make, and rates that
// are none.
func (o *Options) checkDrafts(m models.Model) error {
	for _, n := range o.Draft {
		if d, ok := m.(models.Drafter); n > 0 && ok && d.MaxDraft() > 0 && n > d.MaxDraft() {
			return fmt.Errorf("%d guesses: the MTP file has %d depths", n, d.MaxDraft())
		}
		if n > 0 && len(o.Accept) == 0 {
			return fmt.Errorf("%d guesses, and no rates by which they are right", n)
		}
	}
	for _, r := range o.Accept {
		if !(r >= 0 && r <= 1) {
			return fmt.Errorf("rate %g: want 0 to 1", r)
		}
	}
	return nil
}

// guessed makes steps with n guesses for each sequence until they have so many
// tokens together, and returns how many these are. Without a drafter guesses cost
// nothing.
func (s *stepper) guessed(n, tokens int) (done int, err error) {
	for done < tokens {
		kept, err := s.round(n)
		if err != nil {
			return done, err
		}
		done += kept
	}
	return done, nil
}

func (s *stepper) round(n int) (kept int, err error) {
	start := time.Now()
	seqs := s.c.Seqs()
	ds := make([]models.Draft, seqs)
	for seq := range ds {
		s.ids[seq] = append(s.ids[seq], s.token())
		ds[seq] = models.Draft{Seq: seq, IDs: s.ids[seq]}
	}
	if s.drafter != nil {
		if err := s.drafter.Draft(s.c, ds, n); err != nil {
			return 0, err
		}
	}
	drafted := time.Now()
	bs := make([]models.Batch, seqs)
	for seq := range bs {
		b := models.Batch{Seq: seq, Tokens: append(s.ids[seq][len(s.ids[seq])-1:len(s.ids[seq]):len(s.ids[seq])], ds[seq].Guess...)}
		for len(b.Tokens) <= n {
			b.Tokens = append(b.Tokens, s.token())
		}
		for row := range b.Tokens {
			b.Outputs = append(b.Outputs, int32(row))
		}
		bs[seq] = b
	}
	if err := s.forward(bs...); err != nil {
		return 0, err
	}
	computed := time.Now()
	for seq, b := range bs {
		right := s.coin.right(n)
		s.ids[seq] = append(s.ids[seq], b.Tokens[1:1+right]...)
		if err := s.c.Truncate(seq, len(s.ids[seq])); err != nil {
			return 0, err
		}
		kept += 1 + right
	}
	s.drafts.steps++
	s.drafts.kept += kept
	s.drafts.times[0] += drafted.Sub(start)
	s.drafts.times[1] += computed.Sub(drafted)
	s.drafts.times[2] += time.Since(computed)
	return kept, nil
}

// follow lets the drafter see the rows of a prompt.
func (s *stepper) follow(seq int) error {
	if s.drafter == nil {
		return nil
	}
	return s.drafter.Follow(s.c, seq)
}
