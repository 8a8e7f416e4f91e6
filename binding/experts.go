package binding

// #include "bridge.h"
// #include "products.h"
import "C"

// Experts is Σ_k weight_k·down_k(silu(gate_k x)·up_k x) over the experts chosen for
// each row, as one node that the CPU alone has a kernel for.
//
//	gate, up: [n_embd, n_ff, n_expert]
//	down:     [n_ff, n_embd, n_expert]
//	x:        [n_embd, n]               F32, rows contiguous
//	ids:      [n_used, n]               I32, rows contiguous; nil: each row uses all experts
//	weights:  [n_used, n]               F32, rows contiguous; nil: all are 1
//	res:      [n_embd, n]
func (g *Graph) Experts(gate, up, down, x, ids, weights *Tensor) *Tensor {
	embd, ff, n, used := gate.Dim(0), gate.Dim(1), x.Dim(1), gate.Dim(2)
	need(up.Shape() == gate.Shape() && down.Shape() == [4]int64{ff, embd, gate.Dim(2), 1} && gate.Dim(3) == 1, "experts", "banks do not fit", gate, up, down)
	need(x.Type() == F32 && x.Elems() == embd*n && x.Dim(0) == embd && contiguousRows(x), "experts", "want rows of the banks' width", gate, x)
	if ids != nil {
		used = ids.Dim(0)
		need(ids.Type() == I32 && ids.Shape() == [4]int64{used, n, 1, 1} && contiguousRows(ids), "experts", "want ids for each row", x, ids)
	}
	if weights != nil {
		need(weights.Type() == F32 && weights.Shape() == [4]int64{used, n, 1, 1} && contiguousRows(weights), "experts", "want a weight for each expert of a row", x, weights)
	}
	team := g.be.host().team
	g.teamWork = max(g.teamWork, int64(C.inkling_experts_work(team, gate.c(), up.c(), down.c(), x.c(), ids.c())))
	return g.node(C.inkling_experts(g.ctx, gate.c(), up.c(), down.c(), x.c(), ids.c(), weights.c(), team))
}

// OwnExperts reports whether Experts has kernels of this project for all of these banks,
// which are faster than ggml's products.
func (g *Graph) OwnExperts(banks ...*Tensor) bool {
	for _, b := range banks {
		if !g.multiplies(b) {
			return false
		}
	}
	return true
}

// multiplies reports whether the device is the CPU and has a kernel of this project for
// rows of w, which it can read.
func (g *Graph) multiplies(w *Tensor) bool {
	return g.Device().IsCPU() && bool(C.inkling_multiplies(g.be.host().team, C.enum_ggml_type(w.Type()), C.int64_t(w.Dim(0)))) && contiguousRows(w) && w.Dim(3) == 1 &&
		(g.be.parts == nil || !bool(C.inkling_weight_is_elsewhere(w.c(), g.runs().b)))
}
