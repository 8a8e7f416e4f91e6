package inkling

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

const (
	// maxBehind is how many rows a sequence may be ahead of the depths before
	// these forget what was before, and how many they then take at once.
	maxBehind = 512
	// keepRows is how many rows are kept that the depths have seen: enough to
	// start a window behind the longest cut.
	keepRows = reach + 2*maxDepths
)

// mtpCache is a cache that also holds the state of the depths. That follows
// behind: rows of the model wait until a draft is wanted.
type mtpCache struct {
	*cache
	mtp   *mtp
	ahead *cache // row i of a depth is row origin+i of the sequence
	tails []tail
	all   []float32 // of the last step
}

// tail is what waits of one sequence, and how far the depths have come.
type tail struct {
	base   int         // row of the first element
	ids    []int32     // one for each row
	media  [][]float32 // likewise: nil, or the vector of a media row
	hidden []float32   // [n_embd] for each row
	origin int         // row of the sequence that is the depths' first
	done   int         // rows below are as final as they get, at every depth
}

// newCache adds room for the depths to the model's cache c, which it owns from then on.
func (m *mtp) newCache(c *cache) (*mtpCache, error) {
	m.trunk.caches++
	ahead, err := newCache(m.trunk.be, m.cfg, m.trunk.caches, len(c.seqs), c.size, keepRows, c.kv)
	if err != nil {
		return nil, fmt.Errorf("layers for multi-token prediction: %w", err)
	}
	c.keep = true
	return &mtpCache{cache: c, mtp: m, ahead: ahead, tails: make([]tail, len(c.seqs))}, nil
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
	for _, b := range bs {
		t := &s.tails[b.Seq]
		if n := len(t.ids); n > 2*maxBehind {
			t.drop(n-maxBehind, embd)
		}
		first := len(t.ids)
		t.ids = append(t.ids, b.Tokens...)
		t.media = append(t.media, make([][]float32, len(b.Tokens))...)
		for i, row := range b.MediaRows {
			t.media[first+int(row)] = slices.Clone(b.Media[i*embd : (i+1)*embd])
		}
		at := (b.Seq - r.Lo) * r.N * embd
		t.hidden = append(t.hidden, all[at:at+r.N*embd]...)
	}
}

// drop forgets the first n rows.
func (t *tail) drop(n, embd int) {
	t.base += n
	t.ids = slices.Delete(t.ids, 0, n)
	t.media = slices.Delete(t.media, 0, n)
	t.hidden = slices.Delete(t.hidden, 0, n*embd)
}

// clone copies what waits.
func (t *tail) clone() tail {
	c := *t
	c.ids, c.media, c.hidden = slices.Clone(t.ids), slices.Clone(t.media), slices.Clone(t.hidden)
	return c
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

// windowRows is the number of rows that a draft computes at every depth: what a
// round adds at most, and those before that are not final. Always as many, so
// that rounds share a graph whatever was accepted.
func (s *mtpCache) windowRows(seq int) int {
	return min(2*s.mtp.cfg.blockCount, len(s.tails[seq].ids))
}

// follow computes the depths for all rows whose next tokens are known, if more
// than spare lack.
func (s *mtpCache) follow(seq, spare int) error {
	t := &s.tails[seq]
	end := s.Pos(seq) - 1 // the last row waits for the token behind it
	s.mend(seq)
	for end+1-t.done > spare {
		next := min(t.done+maxBehind, end)
		if _, err := s.run([]window{s.window(seq, t.done, next-t.done, t.ids[next-t.base])}, 0); err != nil {
			return err
		}
		if next == end {
			break
		}
	}
	if n := min(t.done, end-keepRows) - t.base; n >= keepRows {
		t.drop(n, s.mtp.cfg.embd)
	}
	return nil
}

// mend starts the depths anew if they lack rows before what waits, or can not
// be cut back to where the next window begins: their attention then reaches no
// further than what waits.
func (s *mtpCache) mend(seq int) {
	t := &s.tails[seq]
	first := min(t.done, s.Pos(seq)-s.windowRows(seq))
	if t.base <= t.done && t.origin <= first && first-t.origin >= s.ahead.Reach(seq) && t.done-t.origin <= s.ahead.Pos(seq) {
		return
	}
	s.lose(seq)
}

// computeBytes measures the graph of a draft, or of what Follow computes at once
// if rows are more than few, at the end of a full cache.
func (s *mtpCache) computeBytes(rows int) (int64, error) {
	drafts := 0
	if rows = min(rows, s.size, maxBehind); rows <= few {
		drafts = s.mtp.cfg.blockCount
		rows = min(2*drafts, s.size)
	}
	sh := mtpShape{shape{cache: s.ahead.id, rows: layers.Rows{N: rows, Seqs: 1}, nKV: roundUp(s.size+1, cellPad)}, drafts}
	if !sh.few() {
		sh.pos = s.size - rows
	}
	return layers.Measure(func() *layers.Step[[]window] { return s.mtp.newStep(s.ahead, sh, nil) })
}

// lose forgets the state of the depths.
func (s *mtpCache) lose(seq int) {
	t := &s.tails[seq]
	s.ahead.Reset(seq)
	t.origin, t.done = t.base, t.base
}

// window describes n rows from row first on, next being the token behind them.
func (s *mtpCache) window(seq, first, n int, next int32) window {
	t, embd := &s.tails[seq], s.mtp.cfg.embd
	i := first - t.base
	w := window{first: first, origin: t.origin, hidden: t.hidden[i*embd : (i+n)*embd]}
	w.Seq = seq
	w.Tokens = append(slices.Clone(t.ids[i+1:i+n]), next)
	for r := range min(n, len(t.media)-i-1) {
		if v := t.media[i+1+r]; v != nil {
			w.MediaRows = append(w.MediaRows, int32(r))
			w.Media = append(w.Media, v...)
		}
	}
	return w
}

// run computes the depths for windows of the same number of rows, and returns
// drafts tokens for each. What an error leaves of their states is forgotten.
func (s *mtpCache) run(ws []window, drafts int) (guesses [][]int32, err error) {
	defer func() {
		if err != nil {
			for _, w := range ws {
				s.lose(w.Seq)
			}
		}
	}()
	bs := make([]models.Batch, len(ws))
	for i, w := range ws {
		if err := s.ahead.Truncate(w.Seq, w.first-w.origin); err != nil {
			return nil, err
		}
		s.ahead.begin(w.Seq, len(w.Tokens))
		bs[i] = w.Batch
	}
	sh := mtpShape{shapeOf(s.ahead, bs, models.Outputs{}), drafts}
	outs := make([][]float32, drafts)
	for i := range outs {
		outs[i] = make([]float32, sh.rows.Seqs)
	}
	err = s.mtp.exec.RunStep(sh, sh.few(), ws, outs, s.mtp.onTap, func(tap layers.GraphTap) *layers.Step[[]window] {
		return s.mtp.newStep(s.ahead, sh, tap)
	})
	if err != nil {
		return nil, err
	}
	guesses = make([][]int32, len(ws))
	for i, w := range ws {
		n := len(w.Tokens)
		s.ahead.seqs[w.Seq].pos += n
		t := &s.tails[w.Seq]
		t.done = max(t.done, w.first+n-(s.mtp.cfg.blockCount-1))
		for _, ids := range outs {
			guesses[i] = append(guesses[i], int32(ids[w.Seq-sh.rows.Lo]))
		}
	}
	return guesses, nil
}
