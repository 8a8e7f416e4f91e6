package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// Few rows on a device with fused operations: a layer is about ten launches. Each
// function takes the composition for what the device has no kernel for.

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
