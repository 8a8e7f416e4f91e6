package inkling

import (
	"fmt"
	"slices"
	"weak"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// few is the number of rows of a sequence up to which a step takes the
// attention forms whose graph is the same at every position.
const few = 16

// reach is how many rows a sequence can be cut back at any time: the drafts of
// one round that turn out wrong.
const reach = 16

// cellPad is the multiple that the cells of full layers are rounded up to, so
// that graphs are reused while a sequence grows; ringPad that of rings.
const (
	cellPad = 256
	ringPad = 32
)

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// cache is the state of a number of sequences: keys and values of every layer,
// and the last inputs of its convolutions.
//
// Full layers hold position p in cell p, sliding layers in cell p mod ring,
// convolutions in row p mod conv. Because rings are longer than what is looked
// at by few+reach, nothing that a truncated sequence still needs was
// overwritten, and cells of forgotten rows count as positions that are too far
// back to be seen. Every table has a place that is written and never read, for
// sequences that take no part in a step; those of convolutions have a zero row
// for what was before the beginning as well.
type cache struct {
	id     uint64 // tells graphs of different caches apart
	mem    *binding.Memory
	layers []layerCache
	seqs   []sequence
	size   int
	kv     binding.DType

	full      int // cells of a full layer; the last is never seen
	ring      int // positions that a sliding layer holds
	ringCells int // cells of it, one more
	conv      int // inputs that a convolution holds
	convRows  int // rows of its table: conv, the zero row, the unread row
	reach     int // rows that a sequence can be cut back at any time

	keep bool // steps give the hidden state of every row, not of the output rows alone
}

// sequence is where one sequence stands.
type sequence struct {
	pos         int                        // rows held
	high        int                        // the most it held since its rings were last set: what was overwritten counts from here
	checkpoints []weak.Pointer[checkpoint] // that may become invalid; their memory is their owners'
}

type layerCache struct {
	sliding           bool
	k, v              *binding.Tensor // [head_dim, cells, n_head_kv, seqs]
	vt                *binding.Tensor // [cells, head_dim, n_head_kv, seqs], in place of v: see transposed
	flash             bool            // the device has the fused kernel for heads of this size and the cache's type
	tickets           *binding.Tensor // [2*n_head*seqs] I32, zero between steps: of fused attention, nil where there is none
	kvConv            *binding.Tensor // [2*n_head_kv*head_dim, convRows*seqs], keys before values
	attnConv, mlpConv *binding.Tensor // [n_embd, convRows*seqs]
}

func (l *layerCache) convs() [3]*binding.Tensor {
	return [3]*binding.Tensor{l.kvConv, l.attnConv, l.mlpConv}
}

// values is where the values are, in either layout.
func (l *layerCache) values() *binding.Tensor {
	if l.vt != nil {
		return l.vt
	}
	return l.v
}

// newCache allocates the state of seqs sequences of up to size rows that can be
// cut back by reach.
func newCache(be *binding.Backend, c *config, id uint64, seqs, size, reach int, kv binding.DType) (_ *cache, err error) {
	switch kv {
	case binding.F32, binding.F16, binding.BF16, binding.Q8_0:
	default:
		return nil, fmt.Errorf("cache type %s: want f32, f16, bf16 or q8_0", kv)
	}
	if size < 1 || size > c.contextLength {
		return nil, fmt.Errorf("context of %d tokens: want 1 to %d", size, c.contextLength)
	}
	const maxSeqs = 1024
	if seqs < 1 || seqs > maxSeqs {
		return nil, fmt.Errorf("%d sequences: want 1 to %d", seqs, maxSeqs)
	}
	s := &cache{
		id: id, mem: be.NewMemory(tensorsPerLayer * c.blockCount), size: size, kv: kv, seqs: make([]sequence, seqs),
		full: roundUp(size+1, cellPad), reach: reach, conv: c.shortconvKernel - 1 + reach,
	}
	s.ringCells = roundUp(c.slidingWindow+few+reach+1, ringPad)
	s.ring = s.ringCells - 1
	s.convRows = s.conv + 2
	defer func() {
		if err != nil {
			s.mem.Close()
		}
	}()
	for i := range c.blockCount {
		if err := s.addLayer(c, i); err != nil {
			return nil, err
		}
	}
	if err := s.mem.Alloc(); err != nil {
		return nil, fmt.Errorf("cache of %d x %d tokens: %w", seqs, size, err)
	}
	return s, nil
}

// tensorsPerLayer bounds the tensors of a layer's state.
const tensorsPerLayer = 6

func (s *cache) addLayer(c *config, i int) error {
	cells := s.full
	if c.sliding[i] {
		cells = s.ringCells
	}
	dh, hkv, seqs := int64(c.headDimOf(i)), int64(c.nHeadKV[i]), int64(len(s.seqs))
	l := layerCache{sliding: c.sliding[i], flash: c.hasFlash(i, s.kv)}
	v, values := &l.v, []int64{dh, int64(cells), hkv, seqs}
	if c.transposed(i, s.kv) {
		v, values = &l.vt, []int64{int64(cells), dh, hkv, seqs}
	}
	for _, t := range []struct {
		t    **binding.Tensor
		name string
		typ  binding.DType
		ne   []int64
	}{
		{&l.k, "k", s.kv, []int64{dh, int64(cells), hkv, seqs}},
		{v, "v", s.kv, values},
		{&l.tickets, "tickets", binding.I32, []int64{int64(2*c.nHead) * seqs}},
		{&l.kvConv, "kv_conv", binding.F32, []int64{2 * dh * hkv, int64(s.convRows) * seqs}},
		{&l.attnConv, "attn_conv", binding.F32, []int64{int64(c.embd), int64(s.convRows) * seqs}},
		{&l.mlpConv, "mlp_conv", binding.F32, []int64{int64(c.embd), int64(s.convRows) * seqs}},
	} {
		if t.t == &l.tickets && !c.on(i).Device().Fuses() {
			continue
		}
		var err error
		if *t.t, err = s.mem.NewOn(c.on(i), fmt.Sprintf("cache.%d.%s", i, t.name), t.typ, t.ne...); err != nil {
			return err
		}
	}
	s.layers = append(s.layers, l)
	return nil
}

func (s *cache) Seqs() int       { return len(s.seqs) }
func (s *cache) Size() int       { return s.size }
func (s *cache) Pos(seq int) int { return s.seqs[seq].pos }
func (s *cache) Bytes() int64    { return s.mem.Size() }

// StateBytes is the memory of the convolutions' tables.
func (s *cache) StateBytes() int64 {
	n := int64(0)
	for i := range s.layers {
		for _, t := range s.layers[i].convs() {
			n += t.Bytes()
		}
	}
	return n
}

func (s *cache) Close() { s.mem.Close() }

// begin notes that a step is about to write n rows.
func (s *cache) begin(seq, n int) {
	q := &s.seqs[seq]
	q.high = max(q.high, q.pos+n)
}

// eachUsed calls f with the parts of the keys' and values' memory that hold the
// first n cells of seq; sliding layers count whole.
func (l *layerCache) eachUsed(seq, n int, f func(t *binding.Tensor, off, n int64)) {
	if n == 0 && !l.sliding {
		return
	}
	if l.sliding {
		for _, t := range []*binding.Tensor{l.k, l.values()} {
			f(t, int64(seq)*t.Stride(3), t.Stride(3))
		}
		return
	}
	rows := []*binding.Tensor{l.k}
	if l.vt == nil {
		rows = append(rows, l.v)
	}
	for _, t := range rows {
		for h := range t.Dim(2) {
			f(t, int64(seq)*t.Stride(3)+h*t.Stride(2), int64(n)*t.Stride(1))
		}
	}
	if t := l.vt; t != nil {
		for r := range t.Dim(1) * t.Dim(2) {
			f(t, int64(seq)*t.Stride(3)+r*t.Stride(1), int64(n)*t.Stride(0))
		}
	}
}

// Reset empties the sequence. What it held is cleared although no step sees
// cells that it did not fill: a failed step may have left NaN, and a masked
// score that is NaN is still NaN.
func (s *cache) Reset(seq int) {
	q := &s.seqs[seq]
	if q.high == 0 {
		return
	}
	for i := range s.layers {
		l := &s.layers[i]
		l.eachUsed(seq, min(q.high, s.full), func(t *binding.Tensor, off, n int64) { t.ZeroBytes(off, n) })
		for _, t := range l.convs() {
			n := int64(s.convRows) * t.Stride(1)
			t.ZeroBytes(int64(seq)*n, n)
		}
	}
	s.forget(seq, 0)
	q.pos, q.high = 0, 0
}

// forget makes checkpoints beyond pos invalid.
func (s *cache) forget(seq, pos int) {
	q := &s.seqs[seq]
	kept := q.checkpoints[:0]
	for _, w := range q.checkpoints {
		switch p := w.Value(); {
		case p == nil: // nobody has it any more
		case p.pos <= pos && pos > 0:
			kept = append(kept, w)
		default:
			p.valid = false
		}
	}
	q.checkpoints = kept
}

// Truncate forgets the rows from pos on, at most s.reach rows counted from the
// longest that the sequence was.
func (s *cache) Truncate(seq, pos int) error {
	q := &s.seqs[seq]
	switch {
	case pos == q.pos:
		return nil
	case pos < 0 || pos > q.pos:
		return fmt.Errorf("truncating to %d of %d rows", pos, q.pos)
	case pos == 0:
		s.Reset(seq)
		return nil
	case pos < q.high-s.reach:
		return fmt.Errorf("truncating to %d rows: %w: at most %d rows back from %d", pos, models.ErrOutOfReach, s.reach, q.high)
	}
	q.pos = pos
	s.forget(seq, pos)
	return nil
}

// checkpoint holds the rings of a sequence; the cells of full layers stay
// where they are, which is why it can become invalid.
type checkpoint struct {
	cache *cache
	seq   int
	pos   int
	high  int
	valid bool
	rings [][]byte // in the order of eachRing
}

func (p *checkpoint) Pos() int { return p.pos }

func (p *checkpoint) Bytes() int64 {
	n := int64(0)
	for _, r := range p.rings {
		n += int64(len(r))
	}
	return n
}

// eachRing calls f with every part of memory that a checkpoint of seq saves.
func (s *cache) eachRing(seq int, f func(t *binding.Tensor, off, n int64)) {
	for _, l := range s.layers {
		if l.sliding {
			l.eachUsed(seq, 0, f)
		}
		for _, t := range l.convs() {
			n := int64(s.convRows) * t.Stride(1)
			f(t, int64(seq)*n, n)
		}
	}
}

// Checkpoint copies the rings of the sequence.
func (s *cache) Checkpoint(seq int) models.Checkpoint {
	q := &s.seqs[seq]
	p := &checkpoint{cache: s, seq: seq, pos: q.pos, high: q.high, valid: true}
	s.eachRing(seq, func(t *binding.Tensor, off, n int64) {
		data := make([]byte, n)
		t.ReadBytes(data, off)
		p.rings = append(p.rings, data)
	})
	q.note(p)
	return p
}

// note remembers a checkpoint, and lets go of those that are gone.
func (q *sequence) note(p *checkpoint) {
	q.checkpoints = slices.DeleteFunc(q.checkpoints, func(w weak.Pointer[checkpoint]) bool { return w.Value() == nil })
	q.checkpoints = append(q.checkpoints, weak.Make(p))
}

// Restore brings the sequence back to a checkpoint.
func (s *cache) Restore(seq int, saved models.Checkpoint) error {
	p, ok := saved.(*checkpoint)
	if !ok || p.cache != s || p.seq != seq || !p.valid {
		return fmt.Errorf("restoring a checkpoint: %w", models.ErrOutOfReach)
	}
	i := 0
	s.eachRing(seq, func(t *binding.Tensor, off, _ int64) {
		t.SetBytes(p.rings[i], off)
		i++
	})
	q := &s.seqs[seq]
	q.pos, q.high = p.pos, p.high
	s.forget(seq, p.pos)
	return nil
}

// Copy makes dst equal to src: full layers as far as they are used, rings whole.
func (s *cache) Copy(dst, src int) error {
	if dst == src {
		return nil
	}
	s.Reset(dst)
	buf := []byte{}
	move := func(t *binding.Tensor, from, to, n int64) {
		if int64(cap(buf)) < n {
			buf = make([]byte, n)
		}
		t.ReadBytes(buf[:n], from)
		t.SetBytes(buf[:n], to)
	}
	q := s.seqs[src]
	for i := range s.layers {
		if l := &s.layers[i]; !l.sliding { // those are with the rings
			l.eachUsed(src, q.pos, func(t *binding.Tensor, off, n int64) { move(t, off, off+int64(dst-src)*t.Stride(3), n) })
		}
	}
	s.eachRing(src, func(t *binding.Tensor, off, n int64) { move(t, off, off+int64(dst-src)*n, n) })
	s.seqs[dst] = sequence{pos: q.pos, high: q.high}
	return nil
}
