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
//
// The experts are computed where they are, be it another device than the layer's.
func Experts(g *binding.Graph, gate, up, down, x, ids, weights *binding.Tensor) *binding.Tensor {
	defer g.Follow(gate)()
	embd, n, k := x.Dim(0), x.Dim(1), ids.Dim(0)
	x = g.Reshape(x, embd, 1, n)
	h := g.SwiGLUSplit(g.MulMatID(gate, x, ids), g.MulMatID(up, x, ids)) // [n_ff, n_used, n]
	y := g.Mul(g.MulMatID(down, h, ids), g.Reshape(weights, 1, k, n))    // [n_embd, n_used, n]
	return SumExperts(g, y, int(k), y.Stride(1), y.Stride(2))
}

// SumExperts adds up the outputs of k experts, which lie at a distance of expert
// bytes from each other; rows of one expert lie at a distance of row bytes.
//
//	res: [n_embd, n]
func SumExperts(g *binding.Graph, y *binding.Tensor, k int, expert, row int64) *binding.Tensor {
	embd := y.Dim(0)
	n := y.Elems() / embd / int64(k)
	view := func(j int) *binding.Tensor {
		return g.View(y, [4]int64{embd, n, 1, 1}, row, row*n, row*n, int64(j)*expert)
	}
	acc := view(0)
	for j := 1; j < k; j++ {
		acc = g.Add(acc, view(j))
	}
	if k == 1 {
		acc = g.Cont(acc)
	}
	return acc
}
