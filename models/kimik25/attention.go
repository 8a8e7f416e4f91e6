package kimik25

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// attention is the first branch of layer i: multi-head latent attention in the
// absorbed form. Queries are taken into the latent space by k_b, all heads
// attend to the latent rows of the cache, and v_b makes values of the result.
//
//	a:   [n_embd, N]     the normed stream; N rows of all sequences
//	res: [n_embd, N]
func (st *step) attention(g *binding.Graph, w *weights, i int, a *binding.Tensor) *binding.Tensor {
	l := w.Layers[i]
	n, seqs, heads := int64(st.N), int64(st.Seqs), int64(st.nHead)
	latent := int64(st.kvLora)

	q := st.queries(g, w, i, a)
	cells := st.writeLatent(g, w, i, a)
	at := &op.LatentAttention{Q: q, Cells: cells, Latent: latent, Scale: st.rotation.scale(st.nope + st.rope), Flash: st.flash(i)}
	o := at.Build(g, st.mask(g, i)) // [kv_lora, n, n_head, seqs]
	if seqs > 1 {
		o = g.Cont(g.Permute(o, 0, 1, 3, 2)) // [kv_lora, n, seqs, n_head]
	}
	v := g.MulMat(l.VB, g.Reshape(o, latent, n*seqs, heads)) // [n_value, N, n_head]
	if n*seqs > 1 {
		v = g.Cont(g.Permute(v, 0, 2, 1, 3)) // [n_value, n_head, N]
	}
	v = g.Reshape(v, int64(st.valueLn)*heads, n*seqs)
	g.Tap(v, "attn_heads", i)
	return g.MulMat(l.O, v)
}

// queries projects, rotates and absorbs the queries.
//
//	a:   [n_embd, N]
//	res: [rope+kv_lora, n, n_head, seqs]   contiguous
func (st *step) queries(g *binding.Graph, w *weights, i int, a *binding.Tensor) *binding.Tensor {
	l := w.Layers[i]
	n, seqs, heads := int64(st.N), int64(st.Seqs), int64(st.nHead)
	nope, rope := int64(st.nope), int64(st.rope)
	var q *binding.Tensor
	if l.Q != nil {
		q = g.MulMat(l.Q.W, a)
	} else {
		c := g.RMSNorm(g.MulMat(l.QLatent.A, a), l.QLatent.Norm, st.latentEps)
		g.Tap(c, "q_a", i)
		q = g.MulMat(l.QLatent.B, c)
	}
	g.Tap(q, "q_b", i)
	q = g.Reshape(q, nope+rope, heads, n*seqs)
	pe := st.rotate(g, w, g.Cols(q, nope, rope)) // [rope, n_head, N]
	g.Tap(pe, "q_rot", i)
	absorbed := g.MulMat(l.KB, g.Permute(g.Cols(q, 0, nope), 0, 2, 1, 3)) // [kv_lora, N, n_head]
	q = g.Concat(g.Permute(pe, 0, 2, 1, 3), absorbed, 0)                  // [rope+kv_lora, N, n_head]
	q = g.Reshape(q, q.Dim(0), n, seqs, heads)
	if seqs > 1 {
		q = g.Cont(g.Permute(q, 0, 1, 3, 2))
	}
	return g.Reshape(q, q.Dim(0), n, heads, seqs)
}

// writeLatent writes the latent rows of the new tokens to their cells and
// returns the cells that the step looks at.
//
//	a:   [n_embd, N]
//	res: [rope+kv_lora, nKV, 1, seqs]
func (st *step) writeLatent(g *binding.Graph, w *weights, i int, a *binding.Tensor) *binding.Tensor {
	l := w.Layers[i]
	n, seqs := int64(st.N), int64(st.Seqs)
	latent, rope := int64(st.kvLora), int64(st.rope)
	kv := g.MulMat(l.KVA, a) // [kv_lora+rope, N]
	g.Tap(kv, "kv_a", i)
	c := g.RMSNorm(g.Cols(kv, 0, latent), l.KVANorm, st.latentEps)
	g.Tap(c, "kv_a_norm", i)
	pe := g.View(kv, [4]int64{rope, 1, n * seqs, 1}, kv.Stride(1), kv.Stride(1), kv.Stride(2), 4*latent)
	pe = st.rotate(g, w, pe)
	g.Tap(pe, "k_rot", i)
	row := g.Concat(g.Reshape(pe, rope, n*seqs), c, 0)

	cells := func(count int) *binding.Tensor {
		t := st.s.cells[i]
		return g.View(t, [4]int64{t.Dim(0), int64(count), 1, seqs}, t.Stride(1), t.Stride(2), t.Stride(3), int64(st.Lo)*t.Stride(3))
	}
	g.Expand(g.SetRows(cells(st.s.full), g.Reshape(row, latent+rope, n, 1, seqs), st.write))
	return cells(st.nKV)
}

// rotate turns the pairs of neighbours by the position of their row. The
// frequencies are all in the table, which is exact where ggml's own formula
// would multiply up rounding errors.
//
//	x:   [rope, heads, N]
//	res: [rope, heads, N]   contiguous
func (st *step) rotate(g *binding.Graph, w *weights, x *binding.Tensor) *binding.Tensor {
	return g.RopeExt(x, st.pos, w.invFreq, st.rope, binding.RopeNorm, 0, 1, 1, 0, float32(st.rotation.attnFactor), 0, 0)
}
