package kimik25

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models/layers"
)

// feedForward is the second branch of layer i.
//
//	b:   [n_embd, n]     the normed stream
//	res: [n_embd, n]
func (st *step) feedForward(g *binding.Graph, l *layer, i int, b *binding.Tensor) *binding.Tensor {
	if d := l.Dense; d != nil {
		return layers.SwiGLU(g, d.Gate, d.Up, d.Down, b)
	}
	m := l.MoE
	logits := g.MulMatF32(m.Router, b)
	g.Tap(logits, "router_logits", i)
	ids, weights := op.TopKRouter(g, logits, m.Bias, st.router)
	g.Tap(ids, "router_indices", i)
	g.Tap(weights, "router_weights", i)
	y := layers.Experts(g, m.Gate, m.Up, m.Down, b, ids, weights)
	g.Tap(y, "routed", i)
	if s := m.Shared; s != nil {
		sh := layers.SwiGLU(g, s.Gate, s.Up, s.Down, b)
		g.Tap(sh, "shared", i)
		y = g.Add(y, sh)
	}
	g.Tap(y, "moe_out", i)
	return y
}
