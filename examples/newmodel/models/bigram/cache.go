package bigram

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// cache is the state of a number of sequences. A row sees no other, so a sequence
// is the number of its rows; models/kimik25/cache.go has one that holds keys and
// values, models/inkling/cache.go one with rings and states besides.
type cache struct {
	pos  []int
	size int
}

func newCache(seqs, size, limit int) (*cache, error) {
	const maxSeqs = 1024
	switch {
	case size < 1 || size > limit:
		return nil, fmt.Errorf("context of %d tokens: want 1 to %d", size, limit)
	case seqs < 1 || seqs > maxSeqs:
		return nil, fmt.Errorf("%d sequences: want 1 to %d", seqs, maxSeqs)
	}
	return &cache{make([]int, seqs), size}, nil
}

func (c *cache) Seqs() int         { return len(c.pos) }
func (c *cache) Size() int         { return c.size }
func (c *cache) Pos(seq int) int   { return c.pos[seq] }
func (c *cache) Reset(seq int)     { c.pos[seq] = 0 }
func (c *cache) Reach(int) int     { return 0 }
func (c *cache) Bytes() int64      { return 0 }
func (c *cache) StateBytes() int64 { return 0 }
func (c *cache) Close()            {}

// Truncate forgets the rows from pos on.
func (c *cache) Truncate(seq, pos int) error {
	if pos < 0 || pos > c.pos[seq] {
		return fmt.Errorf("truncating to %d of %d rows", pos, c.pos[seq])
	}
	c.pos[seq] = pos
	return nil
}

// Copy makes dst equal to src.
func (c *cache) Copy(dst, src int) error {
	c.pos[dst] = c.pos[src]
	return nil
}

// saved is a number of rows.
type saved int

func (s saved) Pos() int     { return int(s) }
func (s saved) Bytes() int64 { return 0 }

// Checkpoint and Save are the same here.
func (c *cache) Checkpoint(seq int) models.Checkpoint { return saved(c.pos[seq]) }
func (c *cache) Save(seq int) models.Checkpoint       { return saved(c.pos[seq]) }
func (c *cache) CheckpointBytes(int) int64            { return 0 }
func (c *cache) SaveBytes(int) int64                  { return 0 }

// Restore cuts the sequence back.
func (c *cache) Restore(seq int, p models.Checkpoint) error { return c.Truncate(seq, p.Pos()) }

// Adopt takes a checkpoint of a length that the sequence has reached.
func (c *cache) Adopt(seq int, p models.Checkpoint) (models.Checkpoint, error) {
	if p.Pos() > c.pos[seq] {
		return nil, fmt.Errorf("adopting a checkpoint: %w", models.ErrOutOfReach)
	}
	return p, nil
}

// Load makes the sequence as long as what was saved.
func (c *cache) Load(seq int, p models.Checkpoint) error {
	if p.Pos() > c.size {
		return fmt.Errorf("loading a sequence: %w", models.ErrContextFull)
	}
	c.pos[seq] = p.Pos()
	return nil
}
