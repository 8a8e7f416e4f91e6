package op

import "github.com/inkling-go/inkling/binding"

// SegmentAttention lets every row of a segment attend to every row of it:
// softmax(q·kᵀ·scale)·v per head, in F32. Long segments are cut into blocks of
// queries, so that no more than maxScores bytes of scores exist at once.
//
//	q:     [head_dim, n_head, n]   F32, contiguous; overwritten by the result
//	k:     [head_dim, n_head, n]   F32, contiguous rows
//	v:     [head_dim, n_head, n]   F32, contiguous rows
//	block: queries per block; 0 takes as many as maxScores has room for
//	res:   [head_dim*n_head, n]
func SegmentAttention(g *binding.Graph, q, k, v *binding.Tensor, scale float32, block int64) *binding.Tensor {
	dh, nHead, n := q.Dim(0), q.Dim(1), q.Dim(2)
	k = g.Permute(k, 0, 2, 1, 3)           // [head_dim, n, n_head]
	vt := g.Cont(g.Permute(v, 1, 2, 0, 3)) // [n, head_dim, n_head]
	if block == 0 {
		block = windowBlock(n, n, nHead)
	}
	for i := int64(0); i < n; i += block {
		rows := min(block, n-i)
		qi := g.View(q, [4]int64{dh, nHead, rows, 1}, q.Stride(1), q.Stride(2), q.Stride(3), i*q.Stride(2))
		s := g.MulMatF32(k, g.Permute(qi, 0, 2, 1, 3)) // [n, rows, n_head]
		o := g.MulMatF32(vt, g.SoftMaxExtInplace(s, nil, scale))
		// No later block needs these queries, so the result takes their place.
		g.Expand(g.Cpy(g.Permute(o, 0, 2, 1, 3), qi))
	}
	return g.Reshape(q, dh*nHead, n)
}
