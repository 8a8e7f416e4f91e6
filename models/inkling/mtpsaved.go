package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// mtpSaved is a saved state of a sequence with that of its depths. The second
// may fail to come back although the first does: drafts then begin anew.
type mtpSaved struct {
	models.Checkpoint
	ahead models.Checkpoint // nil: lost
	tail  tail
}

// Bytes is the host memory of both.
func (p *mtpSaved) Bytes() int64 {
	n := p.Checkpoint.Bytes() + p.tail.bytes()
	if p.ahead != nil {
		n += p.ahead.Bytes()
	}
	return n
}

// bytes is the memory of what waits.
func (t *tail) bytes() int64 {
	n := 4 * int64(len(t.ids)+len(t.hidden))
	for _, v := range t.media {
		n += 4 * int64(len(v))
	}
	return n
}

// CheckpointBytes is what Checkpoint would take, at most.
func (s *mtpCache) CheckpointBytes(seq int) int64 {
	return s.cache.CheckpointBytes(seq) + s.ahead.CheckpointBytes(seq) + s.tails[seq].bytes()
}

// SaveBytes is what Save would take.
func (s *mtpCache) SaveBytes(seq int) int64 {
	return s.cache.SaveBytes(seq) + s.ahead.SaveBytes(seq) + s.tails[seq].bytes()
}

// Bytes is the device memory of both states.
func (s *mtpCache) Bytes() int64 { return s.cache.Bytes() + s.ahead.Bytes() }

// StateBytes is the part of both that is no keys and values.
func (s *mtpCache) StateBytes() int64 { return s.cache.StateBytes() + s.ahead.StateBytes() }

// Close frees both.
func (s *mtpCache) Close() {
	s.ahead.Close()
	s.cache.Close()
}

// Reset empties the sequence.
func (s *mtpCache) Reset(seq int) {
	s.cache.Reset(seq)
	s.ahead.Reset(seq)
	s.tails[seq] = tail{}
}

// Truncate forgets the rows from pos on.
func (s *mtpCache) Truncate(seq, pos int) error {
	if err := s.cache.Truncate(seq, pos); err != nil {
		return err
	}
	t := &s.tails[seq]
	if n := max(0, pos-t.base); n < len(t.ids) {
		t.ids, t.media, t.hidden = t.ids[:n], t.media[:n], t.hidden[:n*s.mtp.cfg.embd]
	}
	t.base = min(t.base, pos)
	t.done = min(t.done, max(0, pos-s.mtp.cfg.blockCount)) // the token behind pos may be another one
	return nil
}

// settle cuts the depths back to what no later window begins before, so that
// their checkpoint stays valid as long as the sequence's.
func (s *mtpCache) settle(seq int) bool {
	s.mend(seq)
	t := &s.tails[seq]
	at := min(t.done, s.Pos(seq)-s.windowRows(seq))
	if at <= t.origin || s.ahead.Truncate(seq, at-t.origin) != nil {
		return false
	}
	t.done = at
	return true
}

// Checkpoint saves what Truncate can not bring back.
func (s *mtpCache) Checkpoint(seq int) models.Checkpoint {
	p := &mtpSaved{Checkpoint: s.cache.Checkpoint(seq)}
	if s.settle(seq) {
		p.ahead = s.ahead.Checkpoint(seq)
	}
	p.tail = s.tails[seq].clone()
	return p
}

// Restore goes back to a checkpoint.
func (s *mtpCache) Restore(seq int, c models.Checkpoint) error {
	p, ok := c.(*mtpSaved)
	if !ok {
		return fmt.Errorf("restoring a checkpoint: %w", models.ErrOutOfReach)
	}
	if err := s.cache.Restore(seq, p.Checkpoint); err != nil {
		return err
	}
	s.tails[seq] = p.tail.clone()
	if p.ahead == nil || s.ahead.Restore(seq, p.ahead) != nil {
		s.lose(seq)
	}
	return nil
}

// Adopt makes a checkpoint of another sequence one of seq.
func (s *mtpCache) Adopt(seq int, c models.Checkpoint) (models.Checkpoint, error) {
	p, ok := c.(*mtpSaved)
	if !ok {
		return nil, fmt.Errorf("adopting a checkpoint: %w", models.ErrOutOfReach)
	}
	trunk, err := s.cache.Adopt(seq, p.Checkpoint)
	if err != nil {
		return nil, err
	}
	own := &mtpSaved{Checkpoint: trunk, tail: p.tail}
	if t := &s.tails[seq]; p.ahead != nil && t.origin == p.tail.origin && t.done >= p.tail.done {
		if ahead, err := s.ahead.Adopt(seq, p.ahead); err == nil {
			own.ahead = ahead
		}
	}
	return own, nil
}

// Copy makes dst equal to src.
func (s *mtpCache) Copy(dst, src int) error {
	if dst == src {
		return nil
	}
	if err := s.cache.Copy(dst, src); err != nil {
		return err
	}
	if err := s.ahead.Copy(dst, src); err != nil {
		return err
	}
	s.tails[dst] = s.tails[src].clone()
	return nil
}

// Save copies all that the sequence holds.
func (s *mtpCache) Save(seq int) models.Checkpoint {
	return &mtpSaved{Checkpoint: s.cache.Save(seq), ahead: s.ahead.Save(seq), tail: s.tails[seq].clone()}
}

// Load makes a sequence equal to what was saved.
func (s *mtpCache) Load(seq int, c models.Checkpoint) error {
	p, ok := c.(*mtpSaved)
	if !ok {
		return fmt.Errorf("loading a sequence: %w", models.ErrForeignCache)
	}
	if err := s.cache.Load(seq, p.Checkpoint); err != nil {
		return err
	}
	if err := s.ahead.Load(seq, p.ahead); err != nil {
		return err
	}
	s.tails[seq] = p.tail.clone()
	return nil
}
