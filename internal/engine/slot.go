package engine

import (
	"slices"

	"github.com/inkling-go/inkling/models"
)

// rows is a prompt in the form that the model takes: an id for each row, and
// for media rows the vectors that stand in their place.
type rows struct {
	ids   []int32
	media []mediaRows // ascending by pos
}

// mediaRows are the rows of one medium.
type mediaRows struct {
	*medium
	pos int // row of the first one
}

// common is the number of rows that r and p begin with alike. A medium counts
// whole or not at all.
func (r rows) common(p rows) int {
	n := 0
	for n < min(len(r.ids), len(p.ids)) && r.ids[n] == p.ids[n] {
		n++
	}
	for i := range max(len(r.media), len(p.media)) {
		switch {
		case i >= len(r.media):
			return min(n, p.media[i].pos)
		case i >= len(p.media):
			return min(n, r.media[i].pos)
		}
		a, b := r.media[i], p.media[i]
		if a.pos != b.pos || a.rows != b.rows || a.hash != b.hash {
			return min(n, a.pos, b.pos)
		}
		if a.pos < n && n < a.pos+a.rows {
			n = a.pos
		}
	}
	return n
}

// nextMedium is the first medium of some rows that is not encoded yet.
func (r rows) nextMedium(first, end int) *medium {
	for _, m := range r.media {
		if m.pos < end && m.pos+m.rows > first && m.values == nil {
			return m.medium
		}
	}
	return nil
}

// mediaOf are the vectors of the media rows among some rows, and which these are. Those of
// a single medium lie where the medium's do.
func (r rows) mediaOf(first, end, embd int) (values []float32, at []int32) {
	for _, m := range r.media {
		from, to := max(m.pos, first), min(m.pos+m.rows, end)
		if from >= to {
			continue
		}
		for i := from; i < to; i++ {
			at = append(at, int32(i-first))
		}
		part := m.values[(from-m.pos)*embd : (to-m.pos)*embd]
		if values == nil {
			values = slices.Clip(part) // as they are, if nothing follows
		} else {
			values = append(values, part...)
		}
	}
	return values, at
}

// content is what a state holds: the rows that went into it, and points that it
// can be brought back to.
type content struct {
	fed    rows
	prompt int // rows of the last prompt; behind them is an answer
	points []point
	used   uint64 // when, in requests
}

// point is a state in the middle of another, with the logits of its last row: a
// state itself can be cut back by a few rows only.
type point struct {
	models.Checkpoint
	logits []float32 // nil where no request has ended its prompt yet
	used   uint64
}

// size is the host memory of the point.
func (p point) size() int64 { return p.Bytes() + 4*int64(len(p.logits)) }

func (c *content) pointBytes() int64 {
	n := int64(0)
	for _, p := range c.points {
		n += p.size()
	}
	return n
}

// usable is the number of rows of p that need not be computed again, and the
// number of the point to go back to for them, -1 for none. reach is how far the
// state can be cut back. One row at least has to be computed for its logits,
// unless they were kept.
func (c *content) usable(p rows, reach int) (n, at int) {
	common := c.fed.common(p)
	for i, pt := range c.points {
		if pt.Pos() == len(p.ids) && pt.Pos() <= common && pt.logits != nil {
			return pt.Pos(), i
		}
	}
	if common == len(c.fed.ids) && common < len(p.ids) {
		return common, -1
	}
	if cut := min(common, len(p.ids)-1); cut > 0 && cut >= reach {
		return cut, -1
	}
	n, at = 0, -1
	for i, pt := range c.points {
		if pos := pt.Pos(); pos <= min(common, len(p.ids)-1) && pos > n {
			n, at = pos, i
		}
	}
	return n, at
}

// cutTo forgets what lies behind the first n rows.
func (c *content) cutTo(n int) {
	c.fed.ids = c.fed.ids[:n:n]
	c.fed.media = slices.DeleteFunc(slices.Clone(c.fed.media), func(m mediaRows) bool { return m.pos >= n })
	c.points = slices.DeleteFunc(c.points, func(p point) bool { return p.Pos() > n })
	c.prompt = min(c.prompt, n)
}

// slot is a sequence of the cache, and the task that has it.
type slot struct {
	content
	cache models.Cache
	seq   int
	t     *task // nil: idle; what it holds stays for requests that begin alike
}

// reset empties the slot: what a broken step leaves behind must never be seen
// by a later request.
func (s *slot) reset() {
	s.cache.Reset(s.seq)
	s.content = content{}
}

// goBack keeps the first n rows, by the point at if it is not -1, and returns
// the logits that were kept of the last one.
func (s *slot) goBack(n, at int) (logits []float32, err error) {
	switch {
	case at >= 0:
		if err := s.cache.Restore(s.seq, s.points[at].Checkpoint); err != nil {
			return nil, err
		}
		logits = s.points[at].logits
	case n < len(s.fed.ids):
		if err := s.cache.Truncate(s.seq, n); err != nil {
			return nil, err
		}
	}
	s.cutTo(n)
	return logits, nil
}

// adopt takes over points of a state that was copied into the slot.
func (s *slot) adopt(c *content) error {
	s.content = content{fed: c.fed, prompt: c.prompt, used: c.used}
	for _, p := range c.points {
		own, err := s.cache.Adopt(s.seq, p.Checkpoint)
		if err != nil {
			return err
		}
		s.points = append(s.points, point{own, p.logits, p.used})
	}
	return nil
}
