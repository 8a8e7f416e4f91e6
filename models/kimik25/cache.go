package kimik25

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models"
)

// cellPad is the multiple that cells are rounded up to, so that graphs are
// reused while a sequence grows; the fused kernels of GPUs want it as well.
const cellPad = 256

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// cache is the state of a number of sequences: one latent row per token and
// layer, position p in cell p. Because nothing is ever overwritten but by the
// same position, any sequence can be cut back to any length.
type cache struct {
	id    uint64 // tells graphs of different caches apart
	mem   *binding.Memory
	cells []*binding.Tensor // per layer [rope+kv_lora, full, 1, seqs]
	seqs  []sequence
	size  int
	full  int // cells of a sequence; the last is written by idle ones and never seen
	kv    binding.DType
	flash []bool // per layer: its device has the fused kernel for rows of this size and type
}

// sequence is where one sequence stands.
type sequence struct {
	pos  int
	high int   // the most it held since it was cleared
	cuts []cut // what Truncate and Reset forgot, later ones further on
	next int   // serial of the next cut
}

// cut says that all rows from pos on were forgotten once.
type cut struct{ serial, pos int }

// newCache allocates the state of seqs sequences of up to size rows.
func newCache(be *binding.Backend, c *config, id uint64, seqs, size int, kv binding.DType) (*cache, error) {
	switch kv {
	case binding.F32, binding.F16, binding.BF16, binding.Q8_0:
	default:
		return nil, fmt.Errorf("cache type %s: want f32, f16, bf16 or q8_0", kv)
	}
	width := int64(c.kvLora + c.rope)
	if b := kv.BlockSize(); int64(c.rope)%b != 0 || int64(c.kvLora)%b != 0 {
		return nil, fmt.Errorf("cache type %s: rows of %d+%d elements are not whole blocks of %d", kv, c.rope, c.kvLora, b)
	}
	if size < 1 || size > c.contextLength {
		return nil, fmt.Errorf("context of %d tokens: want 1 to %d", size, c.contextLength)
	}
	const maxSeqs = 1024
	if seqs < 1 || seqs > maxSeqs {
		return nil, fmt.Errorf("%d sequences: want 1 to %d", seqs, maxSeqs)
	}
	s := &cache{id: id, mem: be.NewMemory(c.blockCount), size: size, kv: kv, seqs: make([]sequence, seqs), full: roundUp(size+1, cellPad)}
	for i := range c.blockCount {
		t, err := s.mem.NewOn(c.on(i), fmt.Sprintf("cache.%d", i), kv, width, int64(s.full), 1, int64(seqs))
		if err != nil {
			s.mem.Close()
			return nil, err
		}
		s.cells = append(s.cells, t)
	}
	if err := s.mem.Alloc(); err != nil {
		s.mem.Close()
		return nil, fmt.Errorf("cache of %d x %d tokens: %w", seqs, size, err)
	}
	has := map[*binding.Backend]bool{}
	for i := range c.blockCount {
		on := c.on(i)
		if _, known := has[on]; !known {
			has[on] = kv != binding.F32 && hasFlash(on, c, kv)
		}
		s.flash = append(s.flash, has[on])
	}
	return s, nil
}

// hasFlash asks a device for a fused kernel for the latent rows.
func hasFlash(on *binding.Backend, c *config, kv binding.DType) bool {
	g := on.NewGraph(16)
	defer g.Close()
	width, cells := int64(c.kvLora+c.rope), int64(cellPad)
	k := g.Input("cells", kv, width, cells)
	v := op.LatentValues(g, k, int64(c.kvLora))
	g.Expand(g.FlashAttnExt(g.Input("q", binding.F32, width, 1, int64(c.nHead)), k, v, g.Input("mask", binding.F16, cells, 1), 1))
	return len(g.Unsupported()) == 0
}

func (s *cache) Seqs() int       { return len(s.seqs) }
func (s *cache) Size() int       { return s.size }
func (s *cache) Pos(seq int) int { return s.seqs[seq].pos }
func (s *cache) Bytes() int64    { return s.mem.Size() }

// StateBytes is 0: the latent rows are all that a sequence has.
func (s *cache) StateBytes() int64 { return 0 }
func (s *cache) Close()            { s.mem.Close() }

// begin notes that a step is about to write n rows.
func (s *cache) begin(seq, n int) {
	q := &s.seqs[seq]
	q.high = max(q.high, q.pos+n)
}

// Reset empties the sequence. What it held is cleared although no step sees
// cells that it did not fill: a failed step may have left NaN, and a masked
// score that is NaN is still NaN.
func (s *cache) Reset(seq int) {
	q := &s.seqs[seq]
	for _, t := range s.cells {
		t.ZeroBytes(int64(seq)*t.Stride(3), int64(min(q.high, s.full))*t.Stride(1))
	}
	q.forget(-1)
	q.pos, q.high = 0, 0
}

// forget notes a cut at pos; -1 makes every checkpoint invalid.
func (q *sequence) forget(pos int) {
	for len(q.cuts) > 0 && q.cuts[len(q.cuts)-1].pos >= pos {
		q.cuts = q.cuts[:len(q.cuts)-1]
	}
	q.cuts = append(q.cuts, cut{q.next, pos})
	q.next++
}

// Truncate forgets the rows from pos on.
func (s *cache) Truncate(seq, pos int) error {
	q := &s.seqs[seq]
	if pos < 0 || pos > q.pos {
		return fmt.Errorf("truncating to %d of %d rows", pos, q.pos)
	}
	if pos < q.pos {
		q.forget(pos)
		q.pos = pos
	}
	return nil
}

// Copy makes dst equal to src.
func (s *cache) Copy(dst, src int) error {
	if dst == src {
		return nil
	}
	s.Reset(dst)
	pos := s.seqs[src].pos
	var buf []byte
	for _, t := range s.cells {
		n := int64(pos) * t.Stride(1)
		if int64(len(buf)) < n {
			buf = make([]byte, n)
		}
		t.ReadBytes(buf[:n], int64(src)*t.Stride(3))
		t.SetBytes(buf[:n], int64(dst)*t.Stride(3))
	}
	s.seqs[dst].pos, s.seqs[dst].high = pos, pos
	return nil
}

// checkpoint is a length: the rows stay where they are.
type checkpoint struct {
	cache    *cache
	seq, pos int
	serial   int // of the next cut
}

func (p *checkpoint) Pos() int     { return p.pos }
func (p *checkpoint) Bytes() int64 { return 0 }

// Checkpoint remembers how far the sequence has come.
func (s *cache) Checkpoint(seq int) models.Checkpoint {
	return &checkpoint{s, seq, s.seqs[seq].pos, s.seqs[seq].next}
}

// Restore cuts the sequence back to a checkpoint.
func (s *cache) Restore(seq int, saved models.Checkpoint) error {
	p, ok := saved.(*checkpoint)
	if !ok || p.cache != s || p.seq != seq {
		return fmt.Errorf("restoring a checkpoint of another sequence: %w", models.ErrOutOfReach)
	}
	for _, c := range s.seqs[seq].cuts {
		if c.serial >= p.serial && c.pos < p.pos || c.serial >= p.serial && c.pos < 0 {
			return fmt.Errorf("restoring a checkpoint: %w", models.ErrOutOfReach)
		}
	}
	return s.Truncate(seq, p.pos)
}
