package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/inkling-go/inkling/models"
)

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
	purse   purse
	last    int           // sequences of the last step
	paces   map[int]*pace // of steps, by the number of sequences
	drafts  []models.Draft
}

// newSpeculation prepares guesses as the options say.
func newSpeculation(e *Engine) *speculation {
	o := &e.opt
	s := &speculation{adapt: o.Draft == 0, purse: purse{stake}, paces: map[int]*pace{}}
	d, ok := e.model.(models.Drafter)
	switch {
	case o.Draft == NoDraft:
		return s
	case ok && d.MaxDraft() > 0 && !o.NGram:
		s.drafter, s.most = d, d.MaxDraft()
	case o.NGram || o.Draft > 0:
		s.drafter, s.most = nGram{MaxDraft}, autoNGram
	default:
		return s
	}
	if o.Draft > 0 {
		s.most = min(o.Draft, s.drafter.MaxDraft())
	}
	return s
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
		p = newPace(s.most, &s.right, &s.purse)
		s.paces[seqs] = p
	}
	return p
}

// follow tells the drafter of new rows of a prompt.
func (s *speculation) follow(c models.Cache, seq int) error {
	if s.drafter == nil {
		return nil
	}
	return s.drafter.Follow(c, seq)
}

// guess returns the guesses of every task, at most n, and n, which is 0 if there
// are none.
func (s *speculation) guess(c models.Cache, ts []*task) (ds []models.Draft, n int, err error) {
	n = s.length(len(ts))
	ds = s.drafts[:0]
	for _, t := range ts {
		ds = append(ds, models.Draft{Seq: t.slot.seq, IDs: t.p.ids})
		if n = min(n, c.Size()-len(t.p.ids)); len(t.left()) != 1 {
			n = 0
		}
	}
	if s.drafts = ds; n <= 0 {
		return ds, 0, nil
	}
	if err := s.drafter.Draft(c, ds, n); err != nil {
		return nil, 0, fmt.Errorf("guessing %d tokens: %w", n, err)
	}
	if !slices.ContainsFunc(ds, func(d models.Draft) bool { return len(d.Guess) > 0 }) {
		n = 0
	}
	return ds, n, nil
}

// withGuess puts n tokens behind ids: the guess, and what fills it up. All
// sequences of a step have as many rows, since only alike ones share a graph.
func withGuess(ids, guess []int32, n int) []int32 {
	out := append(slices.Clone(ids), guess...)
	for range n - len(guess) {
		out = append(out, ids[0])
	}
	return out
}

// round is a step with what it took.
type round struct {
	n                        int // guesses
	tokens                   int // chosen, of all sequences
	start, guessed, computed time.Time
	rollback                 time.Duration
	checked                  Drafts
}

// note learns from a round of seqs sequences, unless their number is new: then its
// graph may be so.
func (s *speculation) note(r *round, seqs int) {
	if s.drafter != nil && s.adapt && seqs == s.last {
		s.pace(seqs).note(r.n, float64(r.tokens)/float64(seqs), time.Since(r.start).Seconds())
	}
	s.last = seqs
}

// verify lets a task choose from the rows of a step as long as it chooses what
// was guessed, and cuts the sequence back to what was right.
//
//	logits: [vocab] for each row: what was left, and n guesses
func (s *scheduler) verify(r *round, t *task, guess []int32, logits []float32) {
	vocab, before := s.work.vocab(), len(t.slot.fed.ids)
	rows := len(logits) / vocab
	known := rows - r.n
	var done, same bool
	var err error
	right := 0
	for {
		row := logits[(known-1+right)*vocab:][:vocab]
		done, err = t.take(s.work, row)
		same = right < len(guess) && err == nil && t.p.ids[len(t.p.ids)-1] == guess[right]
		if done || !same {
			break
		}
		right++
	}
	r.tokens += right + 1
	for d := range right {
		s.spec.right.note(d, true)
	}
	if right < len(guess) && (same || !done) {
		s.spec.right.note(right, same)
	}
	if len(guess) > 0 {
		accepted := right
		if same {
			accepted++
		}
		t.res.Drafts.add(len(guess), accepted)
		r.checked.add(len(guess), accepted)
	}
	s.cutBack(r, t, before+known+right, before+rows)
	s.took(t, done, err)
}

// cutBack forgets the rows from n on, of those that a step has computed.
func (s *scheduler) cutBack(r *round, t *task, n, computed int) {
	start := time.Now()
	if n < computed {
		if err := s.cache.Truncate(t.slot.seq, n); err != nil {
			t.slot.reset() // it begins anew from the prompt, if anybody wants it
			return
		}
	}
	t.computed(n)
	r.rollback += time.Since(start)
}
