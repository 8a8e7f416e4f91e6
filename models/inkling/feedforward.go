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
	shared := sharedExperts(g, m, b, g.Cols(weights, int64(k), int64(st.nExpertShared)))
	g.Tap(shared, "shared", i)
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
	if !g.Device().Fuses() {
		return layers.SwiGLU(g, d.Gate, d.Up, d.Down, b)
	}
	return product(g, d.Down, op.GateUp(g, d.Gate, d.Up, b))
}

// sharedExperts is Σ_s weight_s·down_s(silu(gate_s b)·up_s b) over the experts that every row uses.
//
//	weights: [n_shared, n]
func sharedExperts(g *binding.Graph, m *moe, b, weights *binding.Tensor) *binding.Tensor {
	if g.OwnExperts(m.GateShex, m.UpShex, m.DownShex) {
		return g.Experts(m.GateShex, m.UpShex, m.DownShex, b, nil, weights)
	}
	y := op.SharedExperts(g, b, m.GateShex, m.UpShex, m.DownShex)
	return layers.WeightedSum(g, g.Permute(y, 0, 2, 1, 3), weights)
}
