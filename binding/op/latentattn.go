package op

import "github.com/inkling-go/inkling/binding"

// LatentAttention is multi-head latent attention in its absorbed form: all
// heads attend to the same cached rows, whose first n_rope elements are the
// rotated part of the key and whose last n_latent elements are the rest of it
// and the value at once. The queries have been taken into the latent space
// before, and the result is taken out of it afterwards.
//
// The order is not free: for rows of 64+512 elements CUDA's fused kernel does
// not look at v but takes the end of each row of k.
//
// Source: DeepSeek-V2, section 2.1 and appendix C (DeepseekV3Attention of
// transformers 5.17 computes the expanded form).
type LatentAttention struct {
	Q      *binding.Tensor // [n_rope+n_latent, n_q, n_head, seqs]   F32, contiguous
	Cells  *binding.Tensor // [n_rope+n_latent, n_kv, 1, seqs]       any cache type; contiguous rows
	Latent int64           // n_latent
	Scale  float32

	// Flash takes the fused kernel, which with an F16 cache on the CPU adds up
	// values in F16. Without it scores are F32 in memory.
	Flash bool

	// Block is the number of queries that get one score matrix; 0 takes as many
	// as keep it below maxScores.
	Block int64
}

// Build records the attention; sequences do not see each other.
//
//	mask: [n_kv, n_q', 1, seqs]             F16 in the flash form, else F32: 0 or -inf; n_q' >= n_q
//	res:  [n_latent, n_q, n_head, seqs]     contiguous
func (a *LatentAttention) Build(g *binding.Graph, mask *binding.Tensor) *binding.Tensor {
	nQ, nHead, seqs, nKV := a.Q.Dim(1), a.Q.Dim(2), a.Q.Dim(3), a.Cells.Dim(1)
	k := a.Cells
	v := LatentValues(g, k, a.Latent)
	if a.Flash {
		o := g.FlashAttnExt(a.Q, k, flashValues(g, v), mask, a.Scale) // [n_latent, n_head, n_q, seqs]
		if nQ == 1 {
			return g.Reshape(o, a.Latent, 1, nHead, seqs)
		}
		return g.Cont(g.Permute(o, 0, 2, 1, 3))
	}
	if v.Type().Quantized() {
		v = g.Cast(v, binding.F32)
	}
	vt := g.Cont(g.Transpose(v)) // [n_kv, n_latent, 1, seqs]

	block := a.Block
	if block == 0 {
		block = windowBlock(nQ, nKV, nHead*seqs)
	}
	var out *binding.Tensor
	for i := int64(0); i < nQ; i += block {
		n := min(block, nQ-i)
		q, m := a.Q, mask
		if n < nQ {
			q, m = g.Cont(g.Rows(q, i, n)), g.Rows(m, i, n)
			if seqs > 1 {
				m = g.Cont(m)
			}
		}
		// Heads are rows: the cells are read once for all of them.
		s := g.MulMatF32(k, g.Reshape(q, q.Dim(0), n*nHead, 1, seqs))
		s = g.SoftMaxExtInplace(g.Reshape(s, nKV, n, nHead, seqs), m, a.Scale)
		o := g.MulMatF32(vt, g.Reshape(s, nKV, n*nHead, 1, seqs))
		o = g.Reshape(o, a.Latent, n, nHead, seqs)
		if out == nil {
			out = o
		} else {
			out = g.Concat(out, o, 1)
		}
	}
	return out
}

// LatentValues is the view of the part of latent rows that is the value.
//
//	cells: [n_rope+n_latent, n_kv, 1, seqs]
//	res:   [n_latent, n_kv, 1, seqs]
func LatentValues(g *binding.Graph, cells *binding.Tensor, latent int64) *binding.Tensor {
	rope, t := cells.Dim(0)-latent, cells.Type()
	return g.View(cells, [4]int64{latent, cells.Dim(1), 1, cells.Dim(3)}, cells.Stride(1), cells.Stride(2), cells.Stride(3), rope/t.BlockSize()*t.Size())
}

// LatentBlocks is the number of score matrices that Build cuts nQ queries of
// each of seqs sequences into.
func LatentBlocks(nQ, nKV, nHead, seqs int64) int64 { return WindowBlocks(nQ, nKV, nHead*seqs) }
