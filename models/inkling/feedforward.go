package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// feedForward is the second branch of layer i, without its short convolution.
//
//	b:   [n_embd, n]     the normed stream
//	res: [n_embd, n]
func (st *step) feedForward(g *binding.Graph, w *layer, i int, b *binding.Tensor) *binding.Tensor {
	if d := w.Dense; d != nil {
		h := g.SwiGLUSplit(g.MulMat(d.Gate, b), g.MulMat(d.Up, b))
		return g.Scale(g.MulMat(d.Down, h), w.gscale)
	}
	m, k := w.MoE, st.nExpertUsed
	logits := g.MulMatF32(m.Router, b)
	g.Tap(logits, "router_logits", i)
	ids, weights := op.SinkRouter(g, logits, m.Bias, k, st.expertScale*w.gscale)
	g.Tap(ids, "router_indices", i)
	g.Tap(weights, "router_weights", i)

	routed := st.routedExperts(g, m, b, ids, g.Cont(g.Cols(weights, 0, int64(k))))
	g.Tap(routed, "experts", i)
	shared := st.sharedExperts(g, m, b, g.Cont(g.Cols(weights, int64(k), int64(st.nExpertShared))))
	g.Tap(shared, "shared", i)
	return g.Add(routed, shared)
}

// routedExperts is Σ_k weight_k·down_k(silu(gate_k b)·up_k b) over the chosen experts.
//
//	b:       [n_embd, n]
//	ids:     [n_used, n]    I32
//	weights: [n_used, n]
func (st *step) routedExperts(g *binding.Graph, m *moe, b, ids, weights *binding.Tensor) *binding.Tensor {
	embd, n, k := b.Dim(0), b.Dim(1), ids.Dim(0)
	x := g.Reshape(b, embd, 1, n)
	h := g.SwiGLUSplit(g.MulMatID(m.Gate, x, ids), g.MulMatID(m.Up, x, ids)) // [n_ff_exp, n_used, n]
	y := g.Mul(g.MulMatID(m.Down, h, ids), g.Reshape(weights, 1, k, n))      // [n_embd, n_used, n]
	return sum(g, y, int(k), y.Stride(1), y.Stride(2))
}

// sharedExperts is Σ_s down_s(weight_s·silu(gate_s b)·up_s b) over the experts that every row uses.
//
//	weights: [n_shared, n]
func (st *step) sharedExperts(g *binding.Graph, m *moe, b, weights *binding.Tensor) *binding.Tensor {
	embd, n := b.Dim(0), b.Dim(1)
	ff, ns := m.GateShex.Dim(1), m.GateShex.Dim(2)
	// The banks are contiguous, so that one product serves all shared experts.
	gate := g.MulMat(g.Reshape(m.GateShex, embd, ff*ns), b)
	up := g.MulMat(g.Reshape(m.UpShex, embd, ff*ns), b)
	h := g.Mul(g.Reshape(g.SwiGLUSplit(gate, up), ff, ns, n), g.Reshape(weights, 1, ns, n))
	if n > 1 {
		h = g.Cont(g.Permute(h, 0, 2, 1, 3))
	}
	y := g.MulMat(m.DownShex, g.Reshape(h, ff, n, ns)) // [n_embd, n, n_shared]
	return sum(g, y, int(ns), y.Stride(2), y.Stride(1))
}

// sum adds up the outputs of k experts, which lie at a distance of expert bytes
// from each other; rows of one expert lie at a distance of row bytes.
//
//	res: [n_embd, n]
func sum(g *binding.Graph, y *binding.Tensor, k int, expert, row int64) *binding.Tensor {
	embd := y.Dim(0)
	n := y.Elems() / embd / int64(k)
	view := func(j int) *binding.Tensor {
		return g.View(y, [4]int64{embd, n, 1, 1}, row, row*n, row*n, int64(j)*expert)
	}
	acc := view(0)
	for j := 1; j < k; j++ {
		acc = g.Add(acc, view(j))
	}
	if k == 1 {
		acc = g.Cont(acc)
	}
	return acc
}
