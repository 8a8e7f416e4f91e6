package kimik25

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// saved is all that a sequence held: its latent rows, layer by layer.
type saved struct {
	cache *cache
	pos   int
	data  []byte
}

func (p *saved) Pos() int     { return p.pos }
func (p *saved) Bytes() int64 { return int64(len(p.data)) }

// Save copies the rows of a sequence.
func (s *cache) Save(seq int) models.Checkpoint {
	pos := s.seqs[seq].pos
	p := &saved{cache: s, pos: pos, data: make([]byte, s.SaveBytes(seq))}
	at := p.data
	for _, t := range s.cells {
		n := int64(pos) * t.Stride(1)
		t.ReadBytes(at[:n], int64(seq)*t.Stride(3))
		at = at[n:]
	}
	return p
}

// SaveBytes is the size of the rows.
func (s *cache) SaveBytes(seq int) (size int64) {
	for _, t := range s.cells {
		size += int64(s.seqs[seq].pos) * t.Stride(1)
	}
	return size
}

// CheckpointBytes is 0: a checkpoint is a length.
func (s *cache) CheckpointBytes(int) int64 { return 0 }

// Load makes a sequence equal to what was saved.
func (s *cache) Load(seq int, c models.Checkpoint) error {
	p, ok := c.(*saved)
	if !ok || p.cache != s {
		return fmt.Errorf("loading a sequence: %w", models.ErrForeignCache)
	}
	s.Reset(seq)
	at := p.data
	for _, t := range s.cells {
		n := int64(p.pos) * t.Stride(1)
		t.SetBytes(at[:n], int64(seq)*t.Stride(3))
		at = at[n:]
	}
	s.seqs[seq].pos, s.seqs[seq].high = p.pos, p.pos
	return nil
}

// Adopt makes a checkpoint of a length that the sequence has reached.
func (s *cache) Adopt(seq int, c models.Checkpoint) (models.Checkpoint, error) {
	p, ok := c.(*checkpoint)
	if !ok || p.cache != s || p.pos > s.seqs[seq].pos {
		return nil, fmt.Errorf("adopting a checkpoint: %w", models.ErrOutOfReach)
	}
	return &checkpoint{s, seq, p.pos, s.seqs[seq].next}, nil
}

// Reach is 0: nothing is overwritten before its row is forgotten.
func (s *cache) Reach(int) int { return 0 }
