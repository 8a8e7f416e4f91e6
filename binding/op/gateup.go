package op

import "github.com/inkling-go/inkling/binding"

// GateUp is silu(gate x)·up x, of products in one node where the device has it.
//
//	gate, up: [n_embd, n_ff]
//	x:        [n_embd, n]   F32, contiguous
//	res:      [n_ff, n]
func GateUp(g *binding.Graph, gate, up, x *binding.Tensor) *binding.Tensor {
	if ys, ok := DenseProducts(g, x, []*binding.Tensor{gate}, []*binding.Tensor{up}); ok {
		return g.SwiGLUSplit(ys[0], ys[1])
	}
	y, ok := FusedProducts(g, x, gate, up)
	if !ok {
		return g.SwiGLUSplit(g.MulMat(gate, x), g.MulMat(up, x))
	}
	ff := gate.Dim(1)
	return g.SwiGLUSplit(g.Cols(y, 0, ff), g.Cols(y, ff, ff))
}

// SharedExperts is down_s(silu(gate_s x)·up_s x) of each expert s that all rows use.
//
//	x:        [n_embd, n]                F32, contiguous
//	gate, up: [n_embd, n_ff, n_shared]   contiguous: one product serves all experts
//	down:     [n_ff, n_embd, n_shared]
//	res:      [n_embd, n, n_shared]
func SharedExperts(g *binding.Graph, x, gate, up, down *binding.Tensor) *binding.Tensor {
	embd, n, ff, shared := x.Dim(0), x.Dim(1), gate.Dim(1), gate.Dim(2)
	h := GateUp(g, g.Reshape(gate, embd, ff*shared), g.Reshape(up, embd, ff*shared), x)
	return g.MulMat(down, g.View(h, [4]int64{ff, n, shared, 1}, h.Stride(1), 4*ff, 4*ff*shared, 0))
}
