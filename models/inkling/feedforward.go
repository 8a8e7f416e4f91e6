package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models/layers"
)

// feedForward is the second branch of layer i, without its short convolution.
//
//	b:   [n_embd, n]     the normed stream
//	res: [n_embd, n]
func (st *step) feedForward(g *binding.Graph, w *layer, i int, b *binding.Tensor) *binding.Tensor {
	if d := w.Dense; d != nil {
		return g.Scale(swiGLU(g, d, b), w.gscale)
	}
	m, k := w.MoE, st.nExpertUsed
	ids, weights := st.route(g, w, i, b)

	if y, ok := op.FusedExperts(g, b, ids, weights, m.Gate, m.Up, m.Down, m.GateShex, m.UpShex, m.DownShex); ok {
		return y
	}
	routed := layers.Experts(g, m.Gate, m.Up, m.Down, b, ids, g.Cols(weights, 0, int64(k)))
	g.Tap(routed, "experts", i)
	shared := st.sharedExperts(g, m, b, g.Cols(weights, int64(k), int64(st.nExpertShared)))
	g.Tap(shared, "shared", i)
	g.Expand(shared) // before the routed ones: see layers.Experts
	return g.Add(routed, shared)
}

// route chooses the experts of each row.
//
//	ids:     [n_used, n]            I32
//	weights: [n_used+n_shared, n]   the routed ones in the order of ids, then the shared ones
func (st *step) route(g *binding.Graph, w *layer, i int, b *binding.Tensor) (ids, weights *binding.Tensor) {
	m, k, scale := w.MoE, st.nExpertUsed, st.expertScale*w.gscale
	logits, ids, weights, ok := op.FusedRouting(g, b, m.Router, m.Bias, st.s.layers[i].tickets, k, scale)
	if !ok {
		logits = g.MulMatF32(m.Router, b)
		if ids, weights, ok = op.FusedRouter(g, logits, m.Bias, k, scale); !ok {
			ids, weights = op.SinkRouter(g, logits, m.Bias, k, scale)
		}
	}
	g.Tap(logits, "router_logits", i)
	g.Tap(ids, "router_indices", i)
	g.Tap(weights, "router_weights", i)
	return ids, weights
}

// swiGLU is down(silu(gate b)·up b).
//
//	res: [n_embd, n]
func swiGLU(g *binding.Graph, d *dense, b *binding.Tensor) *binding.Tensor {
	h, ok := fusedGates(g, d.Gate, d.Up, b)
	if !ok {
		return layers.SwiGLU(g, d.Gate, d.Up, d.Down, b)
	}
	return product(g, d.Down, h)
}

// fusedGates is silu(gate b)·up b, if both products are one node on the layer's device.
//
//	gate, up: [n_embd, n_ff]
//	res:      [n_ff, n]
func fusedGates(g *binding.Graph, gate, up, b *binding.Tensor) (*binding.Tensor, bool) {
	y, ok := op.FusedProducts(g, b, gate, up)
	if !ok {
		return nil, false
	}
	ff := gate.Dim(1)
	return g.SwiGLUSplit(g.Cols(y, 0, ff), g.Cols(y, ff, ff)), true
}

// sharedExperts is Σ_s weight_s·down_s(silu(gate_s b)·up_s b) over the experts that every row uses.
//
//	weights: [n_shared, n]
func (st *step) sharedExperts(g *binding.Graph, m *moe, b, weights *binding.Tensor) *binding.Tensor {
	if g.OwnExperts(m.GateShex, m.UpShex, m.DownShex) {
		return g.Experts(m.GateShex, m.UpShex, m.DownShex, b, nil, weights)
	}
	embd, n := b.Dim(0), b.Dim(1)
	ff, ns := m.GateShex.Dim(1), m.GateShex.Dim(2)
	// The banks are contiguous, so that one product serves all shared experts.
	gate, up := g.Reshape(m.GateShex, embd, ff*ns), g.Reshape(m.UpShex, embd, ff*ns)
	h, ok := fusedGates(g, gate, up, b)
	if !ok {
		h = g.SwiGLUSplit(g.MulMat(gate, b), g.MulMat(up, b))
	}
	h = g.Reshape(h, ff, ns, n)
	if n > 1 {
		h = g.Cont(g.Permute(h, 0, 2, 1, 3))
	}
	y := g.MulMat(m.DownShex, g.Reshape(h, ff, n, ns)) // [n_embd, n, n_shared]
	return layers.WeightedSum(g, g.Permute(y, 0, 2, 1, 3), weights)
}
