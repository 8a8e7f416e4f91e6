package op

import "github.com/inkling-go/inkling/binding"

// Bounds of rows for fused products: their kernels read a weight once for up to 8.
// More are work for matrix kernels, but rows that choose experts have few in common.
const (
	maxFusedRows    = 8
	maxFusedChoices = 32
	maxWeights      = 4 // that multiply the same rows
)

// FusedProducts are the products of x with up to 4 weights in one launch, on devices
// that have a kernel for them. Quantised weights are multiplied by x rounded to blocks
// of 32 values of 8 bits, as ggml's own kernels do for one row.
//
//	x:   [k, n]        F32, contiguous; n up to 8
//	w_i: [k, m_i]      contiguous, a row a multiple of 16 bytes; all quantised or none
//	res: [Σm_i, n]     the results of the weights behind each other; false: use the composition
func FusedProducts(g *binding.Graph, x *binding.Tensor, w ...*binding.Tensor) (*binding.Tensor, bool) {
	n := x.Dim(1)
	if !g.Device().Fuses() || n > maxFusedRows || len(w) == 0 || len(w) > maxWeights {
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

// DenseProducts are the products of many rows with up to 4 quantised weights, on devices that have
// kernels for them: both are rounded to F16, the rows once for all weights.
//
//	x:   [k, n]           F32, contiguous; n from about 100 on
//	w_i: [k, m_i]         contiguous, in groups
//	res: [Σm_i, n]        of each group, the results of its weights side by side; false: use the composition
func DenseProducts(g *binding.Graph, x *binding.Tensor, groups ...[]*binding.Tensor) ([]*binding.Tensor, bool) {
	n, src, of := x.Dim(1), []*binding.Tensor{x}, []binding.Arg{}
	widths, all := make([]int64, len(groups)), int64(0)
	for i, ws := range groups {
		for _, w := range ws {
			src, of = append(src, w), append(of, binding.Arg(i))
			widths[i] += w.Dim(1)
		}
		all += widths[i]
	}
	if !g.Device().Fuses() || n <= maxFusedRows || len(of) > maxWeights {
		return nil, false
	}
	defer g.Follow(n, src[1:]...)()
	if !g.Device().Fuses() {
		return nil, false
	}
	y := g.Fused(binding.FusedDenseProducts, binding.F32, [4]int64{all * n, 1, 1, 1}, of, src...)
	if !g.Supports(y) {
		return nil, false
	}
	var res []*binding.Tensor
	at := int64(0)
	for _, width := range widths {
		res = append(res, g.View(y, [4]int64{width, n, 1, 1}, 4*width, 4*width*n, 4*width*n, 4*at))
		at += width * n
	}
	return res, true
}

// FusedExperts is Σ_j weight_j·down_j(silu(gate_j x)·up_j x) over the chosen experts
// and behind them the shared ones, on devices that have kernels. Few rows are rounded
// to 8 bits, and each reads the experts that it chose; many are rounded to F16, and an
// expert is read for all that chose it, a shared one by dense products.
//
//	x:            [n_embd, n]              F32, contiguous
//	ids:          [n_used, n]              I32, rows contiguous
//	weights:      [n_used+n_shared, n]     F32, rows contiguous
//	gate, up:     [n_embd, n_ff, n_expert]
//	down:         [n_ff, n_embd, n_expert]
//	gateSh, upSh: [n_embd, n_ff, n_shared]   or nil, all three
//	downSh:       [n_ff, n_embd, n_shared]
//	res:          [n_embd, n]              false: use the composition
func FusedExperts(g *binding.Graph, x, ids, weights, gate, up, down, gateSh, upSh, downSh *binding.Tensor) (*binding.Tensor, bool) {
	n, nUsed := x.Dim(1), ids.Dim(0)
	if !g.Device().Fuses() {
		return nil, false
	}
	defer g.Follow(n, gate, up, down)()
	if !g.Device().Fuses() || g.Elsewhere(gate, up, down) {
		return nil, false
	}
	if n > maxFusedChoices {
		return manyExperts(g, x, ids, weights, gate, up, down, gateSh, upSh, downSh)
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

// The order of rows by expert (ggml/cuda/experts.cuh): integers in front of it, and how many
// rows of an expert are multiplied at once.
const (
	orderHead   = 4
	tileColumns = 64
)

// manyExperts is FusedExperts of many rows: they are sorted by expert, and their products
// weighted and added up.
func manyExperts(g *binding.Graph, x, ids, weights, gate, up, down, gateSh, upSh, downSh *binding.Tensor) (*binding.Tensor, bool) {
	n, used, experts := x.Dim(1), ids.Dim(0), gate.Dim(2)
	tiles := min(experts, n*used) + n*used/tileColumns
	order := g.Fused(binding.FusedExpertsOrder, binding.I32, [4]int64{orderHead + 4*tiles + n*used, 1, 1, 1}, []binding.Arg{binding.Arg(experts)}, ids)
	h := g.Fused(binding.FusedMatrixUp, binding.F32, [4]int64{gate.Dim(1), used, n, 1}, nil, x, order, gate, up)
	if !g.Supports(order) || !g.Supports(h) {
		return nil, false
	}
	y := g.Fused(binding.FusedMatrixDown, binding.F32, [4]int64{down.Dim(1), used, n, 1}, nil, h, order, g.Cols(weights, 0, used), down)
	parts := []*binding.Tensor{y}
	if gateSh != nil {
		z := SharedExperts(g, x, gateSh, upSh, downSh)
		if !g.Supports(z) {
			return nil, false
		}
		parts = append(parts, z, g.Cols(weights, used, gateSh.Dim(2)))
	}
	sum := g.Fused(binding.FusedExpertsSum, binding.F32, [4]int64{down.Dim(1), n, 1, 1}, nil, parts...)
	return sum, g.Supports(y) && g.Supports(sum)
}
