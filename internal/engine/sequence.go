package engine

import (
	"context"
	"errors"
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

// sequence is a model's state with what was fed into it.
type sequence struct {
	cache models.Cache
	fed   rows
	saved []savedState // ascending by position
}

// savedState is the state at the end of a prompt, for requests that begin with
// the same prompt and go on differently: the state itself can be cut back by a
// few rows only.
type savedState struct {
	models.Checkpoint
	logits []float32 // of the last row
}

// maxSaved bounds the memory of saved states; leastSaved is the prompt length
// from which computing it again costs more than a saved state.
const (
	maxSaved   = 4
	leastSaved = 64
)

func (s *sequence) reset() {
	s.cache.Reset(0)
	s.fed = rows{}
	s.saved = nil
}

// reuse keeps as much of the state as p begins with, and returns the number of
// rows that need not be computed again. If that is all of them, logits of the
// last one are returned too.
func (s *sequence) reuse(p rows) (n int, logits []float32) {
	common := s.fed.common(p)
	if common == len(s.fed.ids) && common < len(p.ids) {
		return common, nil
	}
	// One row has to be computed for its logits, unless they were saved.
	if cut := min(common, len(p.ids)-1); cut > 0 && s.cache.Truncate(0, cut) == nil {
		s.cutTo(cut)
		return cut, nil
	}
	for i := len(s.saved) - 1; i >= 0; i-- {
		if at := s.saved[i].Pos(); at <= common && s.cache.Restore(0, s.saved[i].Checkpoint) == nil {
			s.cutTo(at)
			if at == len(p.ids) {
				return at, s.saved[i].logits
			}
			return at, nil
		}
	}
	if len(s.fed.ids) > 0 {
		s.reset()
	}
	return 0, nil
}

// cutTo forgets what lies behind the first n rows.
func (s *sequence) cutTo(n int) {
	s.fed.ids = s.fed.ids[:n:n]
	s.fed.media = slices.DeleteFunc(slices.Clone(s.fed.media), func(m mediaRows) bool { return m.pos >= n })
	s.saved = slices.DeleteFunc(s.saved, func(p savedState) bool { return p.Pos() > n })
}

// save keeps the state at the end of a prompt.
func (s *sequence) save(logits []float32) {
	n := len(s.fed.ids)
	if n < leastSaved || slices.ContainsFunc(s.saved, func(p savedState) bool { return p.Pos() == n }) {
		return
	}
	if len(s.saved) == maxSaved {
		s.saved = slices.Delete(s.saved, 0, 1)
	}
	s.saved = append(s.saved, savedState{s.cache.Checkpoint(0), slices.Clone(logits)})
}

// savedBytes is the host memory of saved states.
func (s *sequence) savedBytes() int64 {
	n := int64(0)
	for _, p := range s.saved {
		n += p.Bytes()
	}
	return n
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

// feed computes the rows of p from first on, and the logits of the last one.
// Media are encoded when their rows come up. progress, if not nil, is told how
// many rows are done.
func (e *Engine) feed(ctx context.Context, p rows, first int, logits []float32, progress func(done, total int)) error {
	s := &e.seq
	embd := e.model.Config().Embd
	for first < len(p.ids) {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(first+e.opt.UBatch, len(p.ids))
		b := models.Batch{Tokens: p.ids[first:end], Outputs: []int32{int32(end - first - 1)}}
		for _, m := range p.media {
			from, to := max(m.pos, first), min(m.pos+m.rows, end)
			if from >= to {
				continue
			}
			values, err := m.vectors()
			if err != nil {
				return err
			}
			for r := from; r < to; r++ {
				b.MediaRows = append(b.MediaRows, int32(r-first))
			}
			b.Media = append(b.Media, values[(from-m.pos)*embd:(to-m.pos)*embd]...)
		}
		if err := e.step(b, logits); err != nil {
			return err
		}
		first = end
		s.fed = rows{ids: p.ids[:first:first], media: p.media}
		if progress != nil {
			progress(first, len(p.ids))
		}
	}
	return nil
}

// step runs the model and empties the sequence if that fails: what a broken
// step leaves behind must never be seen by a later request.
func (e *Engine) step(b models.Batch, logits []float32) error {
	err := e.model.Forward(e.seq.cache, []models.Batch{b}, models.Outputs{Logits: logits})
	if err != nil && !errors.Is(err, models.ErrContextFull) {
		e.seq.reset()
	}
	return err
}
