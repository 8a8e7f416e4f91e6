package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// saved is all that a sequence held: the used cells of full layers and the
// rings, in the order of eachPart.
type saved struct {
	cache     *cache
	pos, high int
	data      []byte
}

func (p *saved) Pos() int     { return p.pos }
func (p *saved) Bytes() int64 { return int64(len(p.data)) }

// eachPart calls f with every part of memory that a sequence of n rows uses.
func (s *cache) eachPart(seq, n int, f func(t *binding.Tensor, off, n int64)) {
	for i := range s.layers {
		if l := &s.layers[i]; !l.sliding { // those are with the rings
			l.eachUsed(seq, n, f)
		}
	}
	s.eachRing(seq, f)
}

// Save copies the used part of a sequence.
func (s *cache) Save(seq int) models.Checkpoint {
	q := &s.seqs[seq]
	p := &saved{cache: s, pos: q.pos, high: q.high, data: make([]byte, s.SaveBytes(seq))}
	at := p.data
	s.eachPart(seq, q.pos, func(t *binding.Tensor, off, n int64) {
		t.ReadBytes(at[:n], off)
		at = at[n:]
	})
	return p
}

// SaveBytes is the size of the used part.
func (s *cache) SaveBytes(seq int) (size int64) {
	s.eachPart(seq, s.seqs[seq].pos, func(_ *binding.Tensor, _, n int64) { size += n })
	return size
}

// CheckpointBytes is the size of the rings.
func (s *cache) CheckpointBytes(seq int) (size int64) {
	s.eachRing(seq, func(_ *binding.Tensor, _, n int64) { size += n })
	return size
}

// Load makes a sequence equal to what was saved.
func (s *cache) Load(seq int, c models.Checkpoint) error {
	p, ok := c.(*saved)
	if !ok || p.cache != s {
		return fmt.Errorf("loading a sequence: %w", models.ErrForeignCache)
	}
	s.Reset(seq)
	at := p.data
	s.eachPart(seq, p.pos, func(t *binding.Tensor, off, n int64) {
		t.SetBytes(at[:n], off)
		at = at[n:]
	})
	q := &s.seqs[seq]
	q.pos, q.high = p.pos, p.high
	return nil
}

// Adopt shares the rings of a checkpoint, which never change.
func (s *cache) Adopt(seq int, c models.Checkpoint) (models.Checkpoint, error) {
	p, ok := c.(*checkpoint)
	q := &s.seqs[seq]
	if !ok || p.cache != s || p.pos > q.pos {
		return nil, fmt.Errorf("adopting a checkpoint: %w", models.ErrOutOfReach)
	}
	own := &checkpoint{cache: s, seq: seq, pos: p.pos, high: p.high, valid: true, rings: p.rings}
	q.note(own)
	return own, nil
}

// Reach is s.reach rows behind the longest that the sequence was.
func (s *cache) Reach(seq int) int { return max(0, s.seqs[seq].high-s.reach) }
