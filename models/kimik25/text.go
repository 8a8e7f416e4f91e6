package kimik25

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// build records one step of the decoder.
//
//	logits: [vocab, outs]
//	hidden: [n_embd, outs]
func (st *step) build(g *binding.Graph, w *weights) []*binding.Tensor {
	g.On(w.embdOn)
	rows, _ := op.Rows(g, w.Embd, st.IDs) // the embedding lies where there is a kernel
	x := st.PutMedia(g, rows)             // [n_embd, N]
	g.Tap(x, "inputs_embeds", -1)
	for i, l := range w.Layers {
		g.On(st.on(i))
		a := g.RMSNorm(x, l.AttnNorm, st.eps)
		g.Tap(a, "attn_in", i)
		y := st.attention(g, w, i, a)
		g.Tap(y, "o_proj", i)
		if i == len(w.Layers)-1 { // from here on rows do not meet any more
			x, y = g.GetRows(x, st.OutRows), g.GetRows(y, st.OutRows)
		}
		x = g.Add(x, y)
		b := g.RMSNorm(x, l.FFNNorm, st.eps)
		g.Tap(b, "mlp_in", i)
		x = g.Add(x, st.feedForward(g, l, i, b))
		g.Tap(x, "layer", i)
	}
	g.On(w.outputOn)
	x = g.RMSNorm(x, w.Norm, st.eps)
	g.Tap(x, "final_norm", -1)
	return st.Outputs(g, x, func(x *binding.Tensor) *binding.Tensor { return g.MulMat(w.Output, x) })
}
