package inkling

import (
	"github.com/inkling-go/inkling/binding"
)

// build records one step of the decoder.
//
//	logits: [vocab, outs]    of the usable vocabulary
//	hidden: [n_embd, outs]
func (st *step) build(g *binding.Graph, w *weights) []*binding.Tensor {
	// Rows of the tower enter as they are: the embedding norm is for tokens.
	x := g.RMSNorm(g.GetRows(w.Embd, st.IDs), w.EmbdNorm, st.eps) // [n_embd, N*Seqs]
	x = st.PutMedia(g, x)
	g.Tap(x, "embed_norm", -1)

	for i, l := range w.Layers {
		a := g.RMSNorm(x, l.AttnNorm, st.eps)
		g.Tap(a, "attn_in", i)
		y := st.attention(g, l, i, a)
		g.Tap(y, "attn_out", i)
		y = st.conv(g, y, l.AttnConv, st.s.layers[i].attnConv)
		g.Tap(y, "attn_sconv", i)
		x = g.Add(x, y)

		b := g.RMSNorm(x, l.FFNNorm, st.eps)
		g.Tap(b, "mlp_in", i)
		z := st.feedForward(g, l, i, b)
		g.Tap(z, "mlp_out", i)
		z = st.conv(g, z, l.MLPConv, st.s.layers[i].mlpConv)
		g.Tap(z, "mlp_sconv", i)
		x = g.Add(x, z)
		g.Tap(x, "layer", i)
	}

	// Not before: the convolutions of the last layer have to see every row.
	x = g.GetRows(x, st.OutRows)
	x = g.RMSNorm(x, w.Norm, st.eps)
	g.Tap(x, "final_norm", -1)
	return st.Outputs(g, x, func(x *binding.Tensor) *binding.Tensor { return st.unembed(g, w, x) })
}

// unembed computes logits. The padding of the vocabulary holds anything; it is
// never computed.
//
//	x:   [n_embd, n]
//	res: [vocab, n]
func (st *step) unembed(g *binding.Graph, w *weights, x *binding.Tensor) *binding.Tensor {
	return g.MulMat(g.Rows(w.Output, 0, int64(st.unpadded)), g.Scale(x, 1/st.logitScaleDenom))
}
