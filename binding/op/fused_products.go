package op

import "github.com/inkling-go/inkling/binding"

// Bounds of rows for fused products: their kernels read a weight once for up to 8.
// More are work for matrix kernels, but rows that choose experts have few in common.
const (
	maxFusedRows    = 8
	maxFusedChoices = 32
)

// FusedProducts are the products of x with up to 4 weights in one launch, on devices
// that have a kernel for them. Quantised weights are multiplied by x rounded to blocks
// of 32 values of 8 bits, as ggml's own kernels do for one row.
//
//	x:   [k, n]        F32, contiguous; n up to 8
//	w_i: [k, m_i]      contiguous, a row a multiple of 16 bytes; all quantised or none
//	res: [Σm_i, n]     the results of the weights behind each other; false: use the composition
func FusedProducts(g *binding.Graph, x *binding.Tensor, w ...*binding.Tensor) (*binding.Tensor, bool) {
	const most = 4
	n := x.Dim(1)
	if !g.Device().Fuses() || n > maxFusedRows || len(w) == 0 || len(w) > most {
		return nil, false
	}
	defer g.Follow(n, w...)()
	if !g.Device().Fuses() {
		return nil, false
	}
	var m int64
	for _, w := range w {
		m += w.Dim(1)
	}
	y := g.Fused(binding.FusedProducts, binding.F32, [4]int64{m, n, 1, 1}, nil, append([]*binding.Tensor{x}, w...)...)
	return y, g.Supports(y)
}

// FusedExperts is Σ_j weight_j·down_j(silu(gate_j x)·up_j x) over the chosen experts
// and behind them the shared ones, in two launches, on devices that have a kernel.
//
//	x:            [n_embd, n]              F32, contiguous; n up to 32
//	ids:          [n_used, n]              I32, rows contiguous
//	weights:      [n_used+n_shared, n]     F32, rows contiguous
//	gate, up:     [n_embd, n_ff, n_expert]
//	down:         [n_ff, n_embd, n_expert]
//	gateSh, upSh: [n_embd, n_ff, n_shared]   or nil, all three
//	downSh:       [n_ff, n_embd, n_shared]
//	res:          [n_embd, n]              false: use the composition
func FusedExperts(g *binding.Graph, x, ids, weights, gate, up, down, gateSh, upSh, downSh *binding.Tensor) (*binding.Tensor, bool) {
	n, nUsed := x.Dim(1), ids.Dim(0)
	if !g.Device().Fuses() || n > maxFusedChoices {
		return nil, false
	}
	defer g.Follow(n, gate, up, down)()
	if !g.Device().Fuses() || g.Elsewhere(gate, up, down) {
		return nil, false
	}
	src, shared := []*binding.Tensor{x, ids, gate, up}, int64(0)
	if gateSh != nil {
		src, shared = append(src, gateSh, upSh), gateSh.Dim(2)
	}
	h := g.Fused(binding.FusedExpertsUp, binding.F32, [4]int64{gate.Dim(1), nUsed + shared, n, 1}, nil, src...)
	if !g.Supports(h) {
		return nil, false
	}
	src = []*binding.Tensor{h, ids, weights, down}
	if downSh != nil {
		src = append(src, downSh)
	}
	y := g.Fused(binding.FusedExpertsDown, binding.F32, [4]int64{down.Dim(1), n, 1, 1}, nil, src...)
	return y, g.Supports(y)
}
