package layers

import "github.com/inkling-go/inkling/binding"

// SwiGLU is down(silu(gate x)·up x).
//
//	gate, up: [n_embd, n_ff]
//	down:     [n_ff, n_embd]
//	x:        [n_embd, n]
//	res:      [n_embd, n]
func SwiGLU(g *binding.Graph, gate, up, down, x *binding.Tensor) *binding.Tensor {
	return g.MulMat(down, g.SwiGLUSplit(g.MulMat(gate, x), g.MulMat(up, x)))
}

// Experts is Σ_k weight_k·down_k(silu(gate_k x)·up_k x) over the chosen experts.
//
//	gate, up: [n_embd, n_ff, n_expert]
//	down:     [n_ff, n_embd, n_expert]
//	x:        [n_embd, n]
//	ids:      [n_used, n]               I32
//	weights:  [n_used, n]               contiguous
//	res:      [n_embd, n]
func Experts(g *binding.Graph, gate, up, down, x, ids, weights *binding.Tensor) *binding.Tensor {
	embd, n, k := x.Dim(0), x.Dim(1), ids.Dim(0)
	x = g.Reshape(x, embd, 1, n)
	h := g.SwiGLUSplit(g.MulMatID(gate, x, ids), g.MulMatID(up, x, ids)) // [n_ff, n_used, n]
	y := g.Mul(g.MulMatID(down, h, ids), g.Reshape(weights, 1, k, n))    // [n_embd, n_used, n]
	sum := expert(g, y, 0)
	for j := int64(1); j < k; j++ {
		sum = g.Add(sum, expert(g, y, j))
	}
	if k == 1 {
		sum = g.Cont(sum)
	}
	return sum
}

// expert is the view of what the j-th chosen expert made of each row.
//
//	y:   [n_embd, n_used, n]
//	res: [n_embd, n]
func expert(g *binding.Graph, y *binding.Tensor, j int64) *binding.Tensor {
	n, row := y.Dim(2), y.Stride(2)
	return g.View(y, [4]int64{y.Dim(0), n, 1, 1}, row, row*n, row*n, j*y.Stride(1))
}
