package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
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
	s := stream{x: x}
	for i, l := range w.Layers {
		next := w.Norm
		if i+1 < len(w.Layers) {
			next = w.Layers[i+1].AttnNorm
		}
		s = st.block(g, l, i, s, next)
	}

	g.On(w.outputOn)
	unembed := func(x *binding.Tensor) *binding.Tensor { return st.unembed(g, w, x) }
	if !st.s.keep {
		// Not before: the convolutions of the last layer have to see every row.
		if s.normed != nil {
			x = g.GetRows(s.normed, st.OutRows)
		} else {
			x = g.RMSNorm(g.GetRows(s.x, st.OutRows), w.Norm, st.eps)
		}
		g.Tap(x, "final_norm", -1)
		return st.Outputs(g, x, unembed)
	}
	all := st.norm(g, s, w.Norm)
	if s.normed != nil {
		all = g.Cont(all) // a view's memory is reused, output or not
	}
	g.Output(all) // the layers for multi-token prediction go on from every row
	return append(st.Outputs(g, g.GetRows(all, st.OutRows), unembed), all)
}

// embed gives the rows of tokens.
//
//	ids: [n]           I32
//	res: [n_embd, n]
func (st *step) embed(g *binding.Graph, w *weights, ids *binding.Tensor) *binding.Tensor {
	g.On(w.embdOn)
	rows, _ := op.Rows(g, w.Embd, ids) // the embedding lies where there is a kernel
	return g.RMSNorm(rows, w.EmbdNorm, st.eps)
}

// block is layer i. next is the norm's weight of what comes behind it, or nil.
func (st *step) block(g *binding.Graph, l *layer, i int, s stream, next *binding.Tensor) stream {
	g.On(st.on(i))
	lc := &st.s.layers[i]
	a := st.norm(g, s, l.AttnNorm)
	g.Tap(a, "attn_in", i)
	y := st.attention(g, l, i, a)
	g.Tap(y, "attn_out", i)
	s = st.join(g, i, s.x, y, l.attnConv, lc.attnConv, l.FFNNorm, "attn_sconv")

	b := st.norm(g, s, l.FFNNorm)
	g.Tap(b, "mlp_in", i)
	z := st.feedForward(g, l, i, b)
	g.Tap(z, "mlp_out", i)
	s = st.join(g, i, s.x, z, l.mlpConv, lc.mlpConv, next, "mlp_sconv")
	g.Tap(s.x, "layer", i)
	return s
}

// unembed computes logits. The padding of the vocabulary holds anything; it is
// never computed.
//
//	x:   [n_embd, n]
//	res: [vocab, n]
func (st *step) unembed(g *binding.Graph, w *weights, x *binding.Tensor) *binding.Tensor {
	g.On(w.outputOn)
	return product(g, g.Rows(w.Output, 0, int64(st.unpadded)), g.Scale(x, 1/st.logitScaleDenom))
}
