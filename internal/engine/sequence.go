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
}

func (s *sequence) reset() {
	s.cache.Reset(0)
	s.fed = rows{}
}

// reuse keeps the state if what was fed is the beginning of p, and returns the
// number of rows that need not be computed again. One row at least is left,
// because its logits are wanted. The state can not be cut back, so that any
// other prompt starts anew.
func (s *sequence) reuse(p rows) int {
	n := len(s.fed.ids)
	if n > 0 && n < len(p.ids) && slices.Equal(s.fed.ids, p.ids[:n]) && s.fed.sameMedia(p, n) {
		return n
	}
	if n > 0 {
		s.reset()
	}
	return 0
}

// sameMedia reports whether the first n rows of p hold the media of r.
func (r rows) sameMedia(p rows, n int) bool {
	i := 0
	for ; i < len(p.media) && p.media[i].pos < n; i++ {
		if i >= len(r.media) {
			return false
		}
		a, b := r.media[i], p.media[i]
		if a.pos != b.pos || a.rows != b.rows || a.hash != b.hash || b.pos+b.rows > n {
			return false
		}
	}
	return i == len(r.media)
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
	err := e.model.Forward(e.seq.cache, []models.Batch{b}, logits)
	if err != nil && !errors.Is(err, models.ErrContextFull) {
		e.seq.reset()
	}
	return err
}
