package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// mtpSaved is a saved state of a sequence with those of its depths. Of these some
// may fail to come back although the first does: they then begin anew.
type mtpSaved struct {
	models.Checkpoint
	depths []models.Checkpoint // nil: lost
	tail   tail
}

// Bytes is the host memory of all.
func (p *mtpSaved) Bytes() int64 {
	n := p.Checkpoint.Bytes() + p.tail.bytes()
	for _, d := range p.depths {
		if d != nil {
			n += d.Bytes()
		}
	}
	return n
}

// CheckpointBytes is what Checkpoint would take, at most.
func (s *mtpCache) CheckpointBytes(seq int) int64 {
	return s.tails[seq].bytes() + s.sum((*cache).CheckpointBytes, seq)
}

// SaveBytes is what Save would take.
func (s *mtpCache) SaveBytes(seq int) int64 {
	return s.tails[seq].bytes() + s.sum((*cache).SaveBytes, seq)
}

// Bytes is the device memory of all states.
func (s *mtpCache) Bytes() int64 {
	return s.sum(func(c *cache, _ int) int64 { return c.Bytes() }, 0)
}

// StateBytes is the part of them that is no keys and values.
func (s *mtpCache) StateBytes() int64 {
	return s.sum(func(c *cache, _ int) int64 { return c.StateBytes() }, 0)
}

// sum adds up a size of the model's state and of those of the depths.
func (s *mtpCache) sum(size func(*cache, int) int64, seq int) int64 {
	n := size(s.cache, seq)
	for _, d := range s.depths {
		n += size(d, seq)
	}
	return n
}

// Close frees all.
func (s *mtpCache) Close() {
	s.closeDepths()
	s.cache.Close()
}

func (s *mtpCache) closeDepths() {
	for _, d := range s.depths {
		d.Close()
	}
}

// Reset empties the sequence.
func (s *mtpCache) Reset(seq int) {
	s.cache.Reset(seq)
	for _, d := range s.depths {
		d.Reset(seq)
	}
	s.tails[seq] = newTail(len(s.depths))
}

// Truncate forgets the rows from pos on.
func (s *mtpCache) Truncate(seq, pos int) error {
	if err := s.cache.Truncate(seq, pos); err != nil {
		return err
	}
	s.tails[seq].cut(pos, s.wanted, s.mtp.cfg.embd)
	return nil
}

// settle cuts a depth back to what no later window begins before, so that its
// checkpoint stays valid as long as the sequence's.
func (s *mtpCache) settle(seq, d int) bool {
	b := &s.tails[seq].depths[d]
	at := min(b.done, s.Pos(seq)-s.windowRows(seq, len(s.depths)))
	if at <= b.origin || s.depths[d].Truncate(seq, at-b.origin) != nil {
		return false
	}
	if b.done = at; d > 0 && b.base > at {
		b.empty(at)
	}
	return true
}

// Checkpoint saves what Truncate can not bring back.
func (s *mtpCache) Checkpoint(seq int) models.Checkpoint {
	p := &mtpSaved{Checkpoint: s.cache.Checkpoint(seq), depths: make([]models.Checkpoint, len(s.depths))}
	for d, c := range s.depths {
		if s.settle(seq, d) {
			p.depths[d] = c.Checkpoint(seq)
		}
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
	for d, saved := range p.depths {
		if saved == nil || s.depths[d].Restore(seq, saved) != nil {
			s.lose(seq, d)
		}
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
	own := &mtpSaved{Checkpoint: trunk, depths: make([]models.Checkpoint, len(s.depths)), tail: p.tail}
	for d, saved := range p.depths {
		was, is := &p.tail.depths[d], &s.tails[seq].depths[d]
		if saved == nil || is.origin != was.origin || is.done < was.done {
			continue
		}
		if at, err := s.depths[d].Adopt(seq, saved); err == nil {
			own.depths[d] = at
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
	for _, d := range s.depths {
		if err := d.Copy(dst, src); err != nil {
			return err
		}
	}
	s.tails[dst] = s.tails[src].clone()
	return nil
}

// Save copies all that the sequence holds.
func (s *mtpCache) Save(seq int) models.Checkpoint {
	p := &mtpSaved{Checkpoint: s.cache.Save(seq), tail: s.tails[seq].clone()}
	for _, d := range s.depths {
		p.depths = append(p.depths, d.Save(seq))
	}
	return p
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
	for d, saved := range p.depths {
		if err := s.depths[d].Load(seq, saved); err != nil {
			return err
		}
	}
	s.tails[seq] = p.tail.clone()
	return nil
}
