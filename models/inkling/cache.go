package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
)

// few is the number of rows up to which a step takes the attention forms whose
// graph is the same at every position.
const few = 8

// cellPad is the multiple that cell counts are rounded up to, so that graphs
// are reused while a sequence grows.
const cellPad = 256

// ringPad rounds the cells of a sliding layer.
const ringPad = 32

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// cache is the state of one sequence: keys and values of every layer, and the
// last inputs of its four convolutions. Full layers hold position p in cell p,
// sliding layers in cell p mod ring.
type cache struct {
	id     uint64 // tells graphs of different caches apart
	mem    *binding.Memory
	layers []layerCache
	pos    int
	size   int
	ring   int // cells of a sliding layer; 0 without any
	kv     binding.DType
}

type layerCache struct {
	k, v              *binding.Tensor // [head_dim, cells, n_head_kv]
	kConv, vConv      *binding.Tensor // [K-1, n_head_kv*head_dim]
	attnConv, mlpConv *binding.Tensor // [K-1, n_embd]
}

// newCache allocates the state of a sequence of up to nCtx rows.
func newCache(be *binding.Backend, c *config, id uint64, nCtx int, kv binding.DType) (_ *cache, err error) {
	switch kv {
	case binding.F32, binding.F16, binding.BF16, binding.Q8_0:
	default:
		return nil, fmt.Errorf("cache type %s: want f32, f16, bf16 or q8_0", kv)
	}
	if nCtx < 1 || nCtx > c.contextLength {
		return nil, fmt.Errorf("context of %d tokens: want 1 to %d", nCtx, c.contextLength)
	}
	s := &cache{id: id, mem: be.NewMemory(6 * c.blockCount), size: nCtx, kv: kv}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	full := roundUp(nCtx+1, cellPad) // one cell at least is never visible
	s.ring = roundUp(c.slidingWindow+few, ringPad)
	newTensor := func(name string, t binding.DType, ne ...int64) *binding.Tensor {
		if err != nil {
			return nil
		}
		var x *binding.Tensor
		x, err = s.mem.New(name, t, ne...)
		return x
	}
	past := int64(c.shortconvKernel - 1)
	for i := range c.blockCount {
		cells := full
		if c.sliding[i] {
			cells = s.ring
		}
		dh, hkv := int64(c.headDimOf(i)), int64(c.nHeadKV[i])
		name := func(s string) string { return fmt.Sprintf("cache.%d.%s", i, s) }
		s.layers = append(s.layers, layerCache{
			k:        newTensor(name("k"), kv, dh, int64(cells), hkv),
			v:        newTensor(name("v"), kv, dh, int64(cells), hkv),
			kConv:    newTensor(name("k_conv"), binding.F32, past, dh*hkv),
			vConv:    newTensor(name("v_conv"), binding.F32, past, dh*hkv),
			attnConv: newTensor(name("attn_conv"), binding.F32, past, int64(c.embd)),
			mlpConv:  newTensor(name("mlp_conv"), binding.F32, past, int64(c.embd)),
		})
	}
	if err != nil {
		return nil, err
	}
	if err := s.mem.Alloc(); err != nil {
		return nil, fmt.Errorf("cache of %d tokens: %w", nCtx, err)
	}
	return s, nil
}

func (s *cache) Pos() int     { return s.pos }
func (s *cache) Size() int    { return s.size }
func (s *cache) Bytes() int64 { return s.mem.Size() }

// Reset empties the sequence. Keys and values need no clearing, since no step
// sees cells that it did not fill, except that what a failed step left behind
// may not be finite, and 0 times infinity would be seen.
func (s *cache) Reset() {
	s.pos = 0
	for _, l := range s.layers {
		for _, t := range []*binding.Tensor{l.k, l.v, l.kConv, l.vConv, l.attnConv, l.mlpConv} {
			t.Zero()
		}
	}
}

func (s *cache) Close() { s.mem.Close() }
