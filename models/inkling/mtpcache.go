package inkling

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

const (
	// maxBehind is how many rows a sequence may be ahead of the depths before
	// these forget what was before, and how many a depth then takes at once.
	maxBehind = 512
	// maxAsleep is how many rows wait at most for a depth that nobody wants, and
	// leastAsleep how many of them are left when they are more: catching up with
	// them is to take no more than a few steps.
	maxAsleep, leastAsleep = 96, 64
	// keepRows is how many rows are kept that the depths have seen: enough to
	// start a window behind the longest cut.
	keepRows = reach + 2*maxDepths
)

// mtpCache is a cache that also holds the state of the depths. That follows
// behind: rows of the model wait until a draft is wanted, and what a depth gives
// until the next one is.
type mtpCache struct {
	*cache
	mtp    *mtp
	depths []*cache // each of one layer: row i is row origin+i of the sequence
	tails  []tail
	wanted int       // depths that follow a prompt: those of the last draft
	all    []float32 // of the last step
}

// newCache adds room for the depths to the model's cache c, which it owns from then on.
func (m *mtp) newCache(c *cache) (*mtpCache, error) {
	s := &mtpCache{cache: c, mtp: m, tails: make([]tail, len(c.seqs)), wanted: m.cfg.blockCount}
	for _, cfg := range m.each {
		m.trunk.caches++
		d, err := newCache(m.trunk.be, cfg, m.trunk.caches, len(c.seqs), c.size, keepRows, c.kv)
		if err != nil {
			s.closeDepths()
			return nil, fmt.Errorf("layers for multi-token prediction: %w", err)
		}
		s.depths = append(s.depths, d)
	}
	for seq := range s.tails {
		s.tails[seq] = newTail(len(s.depths))
	}
	c.keep = true
	return s, nil
}

// room is where a step puts the hidden states of all rows.
func (s *mtpCache) room(bs []models.Batch) []float32 {
	r := layers.RowsOf(bs, models.Outputs{})
	n := r.N * r.Seqs * s.mtp.cfg.embd
	s.all = slices.Grow(s.all[:0], n)[:n]
	return s.all
}

// note appends the rows of a step to their tails.
func (s *mtpCache) note(bs []models.Batch, all []float32) {
	embd := s.mtp.cfg.embd
	r := layers.RowsOf(bs, models.Outputs{})
	for i := range bs {
		at := (bs[i].Seq - r.Lo) * r.N * embd
		s.tails[bs[i].Seq].add(&bs[i], all[at:at+r.N*embd], embd)
	}
}

// check finds what makes a draft impossible.
func (s *mtpCache) check(d *models.Draft, vocab int) error {
	if d.Seq < 0 || d.Seq >= s.Seqs() {
		return fmt.Errorf("sequence %d is outside 0 to %d", d.Seq, s.Seqs()-1)
	}
	if n, want := len(d.IDs), s.Pos(d.Seq)+1; n != want || n < 2 {
		return fmt.Errorf("a draft behind %d tokens of sequence %d, which holds %d: want one more, and at least 2", n, d.Seq, want-1)
	}
	return layers.InRange(d.IDs[len(d.IDs)-1:], vocab, "token")
}

// windowRows is the number of rows that a draft of n tokens computes at n depths:
// what a round adds at most, and those before that are not final. Always as many,
// so that rounds share a graph whatever was accepted.
func (s *mtpCache) windowRows(seq, n int) int {
	return min(2*n, s.Pos(seq)-s.tails[seq].depths[0].base)
}

// ready brings the first n depths of a sequence to where a window that begins at
// row first can follow.
func (s *mtpCache) ready(seq, n, first int) error {
	if err := s.follow(seq, n, first); err != nil {
		return err
	}
	for d := range n {
		if b := &s.tails[seq].depths[d]; b.done < first || !s.reaches(seq, d, first) {
			s.lose(seq, d)
			b.origin, b.done = first, first
		}
	}
	return nil
}

// follow computes each of the first n depths for all rows whose next tokens are
// known, if it lacks rows before row least or gave the next one none of them.
func (s *mtpCache) follow(seq, n, least int) error {
	t := &s.tails[seq]
	for d := range n {
		if t.depths[d].done >= least && (d+1 == len(t.depths) || t.depths[d+1].end(s.mtp.cfg.embd) >= least) {
			continue
		}
		if err := s.catchUp(seq, d); err != nil {
			return err
		}
	}
	t.trim(s.Pos(seq)-1-keepRows, s.mtp.cfg.embd)
	return nil
}

// catchUp computes depth d for all rows whose next tokens are known.
func (s *mtpCache) catchUp(seq, d int) error {
	t, embd := &s.tails[seq], s.mtp.cfg.embd
	b := &t.depths[d]
	from, end := b.done, min(s.Pos(seq)-d-1, b.end(embd))
	if d+1 < len(t.depths) { // which may lack rows that this one has let go of
		if fed := t.depths[d+1].end(embd); fed < from && b.base <= fed && s.reaches(seq, d, fed) {
			from = fed
		}
	}
	if b.base > from || !s.reaches(seq, d, from) {
		s.lose(seq, d)
		from = b.base
	}
	for from < end {
		next := min(from+maxBehind, end)
		w := window{first: from, origins: []int{b.origin}, hidden: b.rows(from, next, embd)}
		w.Batch = t.batch(seq, from+d+1, next+d+1)
		if _, err := s.run([]window{w}, d, d+1, 0); err != nil {
			return err
		}
		from = next
	}
	if d > 0 {
		b.drop(b.done, embd)
	}
	return nil
}

// reaches says whether the state of depth d can be cut back to end before a row.
func (s *mtpCache) reaches(seq, d, row int) bool {
	at, c := row-s.tails[seq].depths[d].origin, s.depths[d]
	return at >= 0 && at >= c.Reach(seq) && at <= c.Pos(seq)
}

// lose starts a depth anew: its attention then reaches no further than what waits.
func (s *mtpCache) lose(seq, d int) {
	s.depths[d].Reset(seq)
	b := &s.tails[seq].depths[d]
	b.origin, b.done = b.base, b.base
}

// computeBytes measures the graph of a draft, or of what Follow computes at once
// if rows are more than few, at the end of a full cache.
func (s *mtpCache) computeBytes(rows int) (most int64, err error) {
	all := len(s.depths)
	sh := mtpShape{hi: all, drafts: all}
	if rows = min(rows, s.size, maxBehind); rows <= few {
		rows = min(2*all, s.size)
	} else {
		sh.hi, sh.drafts = 1, 0
	}
	sh.shape = shape{cache: s.depths[0].id, rows: layers.Rows{N: rows, Seqs: 1}, nKV: roundUp(s.size+1, cellPad)}
	if !sh.few() {
		sh.pos = s.size - rows
	}
	for ; sh.hi <= all; sh.lo, sh.hi = sh.lo+1, sh.hi+1 {
		n, err := layers.Measure(func() *layers.Step[[]window] { return s.mtp.newStep(s.depths, sh, nil) })
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// draft describes the last n rows of a sequence, next being the token behind them,
// for the first depths.
func (s *mtpCache) draft(seq, n, depths int, next int32) window {
	t, first := &s.tails[seq], s.Pos(seq)-n
	w := window{first: first, hidden: t.depths[0].rows(first, first+n, s.mtp.cfg.embd)}
	w.Batch = t.batch(seq, first+1, first+n)
	w.Tokens = append(w.Tokens, next)
	for d := range depths {
		w.origins = append(w.origins, t.depths[d].origin)
	}
	return w
}

// run computes depths lo to hi-1 for windows of the same number of rows, and returns
// drafts tokens for each. What an error leaves of their states is forgotten.
func (s *mtpCache) run(ws []window, lo, hi, drafts int) (guesses [][]int32, err error) {
	defer func() {
		if err != nil {
			for _, w := range ws {
				for d := range s.depths {
					s.lose(w.Seq, d)
				}
			}
		}
	}()
	sh := mtpShape{lo: lo, hi: hi, drafts: drafts}
	bs := make([]models.Batch, len(ws))
	for i, w := range ws {
		bs[i] = w.Batch
	}
	for d := lo; d < hi; d++ {
		for _, w := range ws {
			if err := s.depths[d].Truncate(w.Seq, w.first-w.origins[d-lo]); err != nil {
				return nil, err
			}
			s.depths[d].begin(w.Seq, len(w.Tokens))
		}
		sh.join(shapeOf(s.depths[d], bs, models.Outputs{}))
	}
	outs := make([][]float32, drafts, drafts+1)
	for i := range outs {
		outs[i] = make([]float32, sh.rows.Seqs)
	}
	per := sh.rows.N * s.mtp.cfg.embd
	var fed []float32 // what the next depth takes
	if hi < len(s.depths) {
		fed = make([]float32, sh.rows.Seqs*per)
		outs = append(outs, fed)
	}
	// Only drafts come again: the others would take the place of their graphs.
	err = s.mtp.exec.RunStep(sh, drafts > 0, ws, outs, s.mtp.onTap, func(tap layers.GraphTap) *layers.Step[[]window] {
		return s.mtp.newStep(s.depths, sh, tap)
	})
	if err != nil {
		return nil, err
	}
	guesses = make([][]int32, len(ws))
	for i := range ws {
		lane := ws[i].Seq - sh.rows.Lo
		for _, ids := range outs[:drafts] {
			guesses[i] = append(guesses[i], int32(ids[lane]))
		}
		s.computed(&ws[i], sh, fed[min(lane*per, len(fed)):])
	}
	return guesses, nil
}

// computed notes what depths have computed of a window: rows before the last ones
// are final, as many as there are depths behind the first that took drafted tokens.
//
//	fed: [n_embd] for each row of the window, and more: what the next depth takes
func (s *mtpCache) computed(w *window, sh mtpShape, fed []float32) {
	t, embd, n := &s.tails[w.Seq], s.mtp.cfg.embd, len(w.Tokens)
	done := w.first + n
	if sh.drafts > 0 {
		done = max(w.first, done-(sh.hi-1))
	}
	for d := sh.lo; d < sh.hi; d++ {
		s.depths[d].seqs[w.Seq].pos += n
		b := &t.depths[d]
		b.done = done
		if d > sh.lo { // it took its input within the graph
			b.empty(done)
		}
	}
	if sh.hi == len(s.depths) {
		return
	}
	next := &t.depths[sh.hi]
	next.feed(w.first, fed[:(done-w.first)*embd], embd)
	if sh.hi >= s.wanted && len(next.hidden) > maxAsleep*embd {
		next.drop(done-leastAsleep, embd)
	}
}
