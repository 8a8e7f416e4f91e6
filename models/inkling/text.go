package inkling

import (
	"github.com/inkling-go/inkling/binding"
)

// build records one step of the decoder.
//
//	logits: [vocab, outs]    of the usable vocabulary
//	hidden: [n_embd, outs]
//	all:    [n_embd, N*Seqs]   hidden of every row, if the cache keeps it
func (st *step) build(g *binding.Graph, w *weights) []*binding.Tensor {
	// Rows of the tower enter as they are: the embedding norm is for tokens.
	x := st.PutMedia(g, st.embed(g, w, st.IDs)) // [n_embd, N*Seqs]
	g.Tap(x, "embed_norm", -1)
	if _, ok := st.layerOf(false); ok {
		st.tau = st.scaling(g, func(int) int { return 0 })
	}
	for i, l := range w.Layers {
		x = st.block(g, l, i, x)
	}

	g.On(w.outputOn)
	unembed := func(x *binding.Tensor) *binding.Tensor { return st.unembed(g, w, x) }
	if !st.s.keep {
		// Not before: the convolutions of the last layer have to see every row.
		x = g.RMSNorm(g.GetRows(x, st.OutRows), w.Norm, st.eps)
		g.Tap(x, "final_norm", -1)
		return st.Outputs(g, x, unembed)
	}
	all := g.Output(g.RMSNorm(x, w.Norm, st.eps)) // the layers for multi-token prediction go on from every row
	return append(st.Outputs(g, g.GetRows(all, st.OutRows), unembed), all)
}

// embed gives the rows of tokens.
//
//	ids: [n]           I32
//	res: [n_embd, n]
func (st *step) embed(g *binding.Graph, w *weights, ids *binding.Tensor) *binding.Tensor {
	g.On(w.embdOn)
	return g.RMSNorm(g.GetRows(w.Embd, ids), w.EmbdNorm, st.eps)
}

// block is layer i.
//
//	x:   [n_embd, N*Seqs]
//	res: [n_embd, N*Seqs]
func (st *step) block(g *binding.Graph, l *layer, i int, x *binding.Tensor) *binding.Tensor {
	g.On(st.on(i))
	a := g.RMSNorm(x, l.AttnNorm, st.eps)
	g.Tap(a, "attn_in", i)
	y := st.attention(g, l, i, a)
	g.Tap(y, "attn_out", i)
	y = st.conv(g, y, l.attnConv, st.s.layers[i].attnConv)
	g.Tap(y, "attn_sconv", i)
	x = g.Add(x, y)

	b := g.RMSNorm(x, l.FFNNorm, st.eps)
	g.Tap(b, "mlp_in", i)
	z := st.feedForward(g, l, i, b)
	g.Tap(z, "mlp_out", i)
	z = st.conv(g, z, l.mlpConv, st.s.layers[i].mlpConv)
	g.Tap(z, "mlp_sconv", i)
	x = g.Add(x, z)
	g.Tap(x, "layer", i)
	return x
}

// unembed computes logits. The padding of the vocabulary holds anything; it is
// never computed.
//
//	x:   [n_embd, n]
//	res: [vocab, n]
func (st *step) unembed(g *binding.Graph, w *weights, x *binding.Tensor) *binding.Tensor {
	g.On(w.outputOn)
	return g.MulMat(g.Rows(w.Output, 0, int64(st.unpadded)), g.Scale(x, 1/st.logitScaleDenom))
}
