package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// On a device with fused operations a layer of few rows is nine launches, and of many rows the
// branches join the stream in one. Each function takes the composition for what the device has no kernel for.

// stream is what goes from one part of a layer to the next.
type stream struct {
	x      *binding.Tensor // [n_embd, N*Seqs]
	normed *binding.Tensor // likewise: under the norm of what comes next; nil if it has to be made
}

// norm is the stream under the norm of what comes next.
func (st *step) norm(g *binding.Graph, s stream, w *binding.Tensor) *binding.Tensor {
	if s.normed != nil {
		return s.normed
	}
	return g.RMSNorm(s.x, w, st.eps)
}

// join adds a branch to the stream, behind the branch's short convolution. The sum
// comes with the norm of weight next if that costs no launch.
//
//	x, y: [n_embd, N*Seqs]
//	name: of the convolution's result
func (st *step) join(g *binding.Graph, i int, x, y, w, table, next *binding.Tensor, name string) stream {
	if st.first != nil {
		if sum, normed, ok := op.FusedConvAddNorm(g, y, x, next, st.first, st.ringOf(w, table), st.eps); ok {
			return stream{sum, normed}
		}
		if next != nil { // which may be the weight of another device
			if sum, _, ok := op.FusedConvAddNorm(g, y, x, nil, st.first, st.ringOf(w, table), st.eps); ok {
				return stream{x: sum}
			}
		}
	}
	y = st.conv(g, y, w, table)
	g.Tap(y, name, i)
	return stream{x: g.Add(x, y)}
}

// ringOf describes a convolution for fused operations.
func (st *step) ringOf(w, table *binding.Tensor) *op.Conv {
	return &op.Conv{W: w, Table: table, Size: st.s.conv, Rows: st.s.convRows, Lo: st.Lo}
}

// product is MulMat of few rows.
//
//	w:   [k, m]
//	x:   [k, n]
//	res: [m, n]
func product(g *binding.Graph, w, x *binding.Tensor) *binding.Tensor {
	if y, ok := op.FusedProducts(g, x, w); ok {
		return y
	}
	return g.MulMat(w, x)
}

// fusedHeads makes queries and biases of few rows, and puts keys and values into the
// cache.
//
//	a: [n_embd, n*seqs]                the normed stream
//	q: [head_dim, n_head, n, seqs]
//	r: [d_rel, n_head, n, seqs]
//	ok: false: nothing was written
func (st *step) fusedHeads(g *binding.Graph, w *layer, i int, a *binding.Tensor) (q, r *binding.Tensor, ok bool) {
	lc := &st.s.layers[i]
	if !st.few() || st.first == nil || lc.v == nil || !g.Device().Fuses() {
		return nil, nil, false
	}
	h := &op.Heads{
		QNorm: w.QNorm, KNorm: w.KNorm, First: st.first, NHead: int64(st.nHead),
		K: st.cells(g, lc.k, int(lc.k.Dim(1))), V: st.cells(g, lc.v, int(lc.v.Dim(1))),
	}
	if st.sliding[i] {
		h.Ring = st.s.ring
	} else {
		h.Tau = st.tau
	}
	qkvr, ok := op.FusedProducts(g, a, w.Q, w.K, w.V, w.R)
	if !ok { // more rows, or types without a kernel
		qkvr = g.Concat(g.Concat(g.MulMat(w.Q, a), g.MulMat(w.K, a), 0), g.Concat(g.MulMat(w.V, a), g.MulMat(w.R, a), 0), 0)
	}
	q, r, ok = op.FusedQKV(g, qkvr, h, st.ringOf(w.kvConv, lc.kvConv), st.eps)
	if !ok {
		return nil, nil, false
	}
	g.Tap(q, "q", i)
	g.Tap(r, "r", i)
	return q, r, true
}
