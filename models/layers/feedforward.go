package layers

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// SwiGLU is down(silu(gate x)·up x).
//
//	gate, up: [n_embd, n_ff]
//	down:     [n_ff, n_embd]
//	x:        [n_embd, n]
//	res:      [n_embd, n]
func SwiGLU(g *binding.Graph, gate, up, down, x *binding.Tensor) *binding.Tensor {
	if g.OwnExperts(gate, up, down) { // a single one
		return g.Experts(gate, up, down, x, nil, nil)
	}
	return g.MulMat(down, g.SwiGLUSplit(g.MulMat(gate, x), g.MulMat(up, x)))
}

// Experts is Σ_k weight_k·down_k(silu(gate_k x)·up_k x) over the chosen experts.
//
//	gate, up: [n_embd, n_ff, n_expert]
//	down:     [n_ff, n_embd, n_expert]
//	x:        [n_embd, n]
//	ids:      [n_used, n]               I32
//	weights:  [n_used, n]               rows contiguous
//	res:      [n_embd, n]
//
// A few rows are computed where the experts are, be it another device than the layer's.
func Experts(g *binding.Graph, gate, up, down, x, ids, weights *binding.Tensor) *binding.Tensor {
	if y, ok := op.FusedExperts(g, x, ids, weights, gate, up, down, nil, nil, nil); ok {
		return y
	}
	embd, n := x.Dim(0), x.Dim(1)
	g.ReadAhead(ids, gate, up, down)
	defer g.Follow(n, gate, up, down)()
	if g.OwnExperts(gate, up, down) || n == 1 && g.Beside() {
		return g.Experts(gate, up, down, x, ids, weights)
	}
	x = g.Reshape(x, embd, 1, n)
	h := g.SwiGLUSplit(g.MulMatID(gate, x, ids), g.MulMatID(up, x, ids)) // [n_ff, n_used, n]
	return WeightedSum(g, g.MulMatID(down, h, ids), weights)
}

// WeightedSum is Σ_k weight_k·y_k.
//
//	y:       [n_embd, k, n]   rows contiguous
//	weights: [k, n]           rows contiguous
//	res:     [n_embd, n]
func WeightedSum(g *binding.Graph, y, weights *binding.Tensor) *binding.Tensor {
	embd, k, n := y.Dim(0), y.Dim(1), y.Dim(2)
	if g.Device().IsCPU() { // one node for k+1; elsewhere it would be a launch for each of the n
		w := g.View(weights, [4]int64{1, k, n, 1}, weights.Stride(0), weights.Stride(1), weights.Stride(1)*n, 0)
		return g.Reshape(g.OutProd(y, w), embd, n)
	}
	y = g.Mul(y, g.Reshape(g.Cont(weights), 1, k, n))
	part := func(j int64) *binding.Tensor {
		return g.View(y, [4]int64{embd, n, 1, 1}, y.Stride(2), y.Stride(2)*n, y.Stride(2)*n, j*y.Stride(1))
	}
	acc := part(0)
	for j := int64(1); j < k; j++ {
		acc = g.Add(acc, part(j))
	}
	if k == 1 {
		acc = g.Cont(acc)
	}
	return acc
}
