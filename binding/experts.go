package binding

// #include "products.h"
import "C"

// Experts is Σ_k weight_k·down_k(silu(gate_k x)·up_k x) over the experts chosen for
// each row, as one node that the CPU alone has a kernel for.
//
//	gate, up: [n_embd, n_ff, n_expert]
//	down:     [n_ff, n_embd, n_expert]
//	x:        [n_embd, n]               F32, rows contiguous
//	ids:      [n_used, n]               I32, rows contiguous
//	weights:  [n_used, n]               F32, rows contiguous
//	res:      [n_embd, n]
func (g *Graph) Experts(gate, up, down, x, ids, weights *Tensor) *Tensor {
	embd, ff, n := gate.Dim(0), gate.Dim(1), x.Dim(1)
	need(up.Shape() == gate.Shape() && down.Shape() == [4]int64{ff, embd, gate.Dim(2), 1} && gate.Dim(3) == 1, "experts", "banks do not fit", gate, up, down)
	need(x.Type() == F32 && x.Elems() == embd*n && x.Dim(0) == embd && contiguousRows(x), "experts", "want rows of the banks' width", gate, x)
	need(ids.Type() == I32 && weights.Type() == F32 && weights.Shape() == ids.Shape() && ids.Elems() == ids.Dim(0)*n && ids.Dim(1) == n &&
		contiguousRows(ids) && contiguousRows(weights), "experts", "want an id and a weight for each expert of each row", ids, weights)
	team := g.team(C.inkling_experts_work(gate.c(), up.c(), down.c(), x.c(), ids.c()))
	return g.node(C.inkling_experts(g.ctx, gate.c(), up.c(), down.c(), x.c(), ids.c(), weights.c(), team))
}

// OwnExperts reports whether Experts has kernels of this project for banks like these,
// which are faster than ggml's products.
func (g *Graph) OwnExperts(banks ...*Tensor) bool {
	for _, b := range banks {
		if !g.Device().IsCPU() || !bool(C.inkling_multiplies(C.enum_ggml_type(b.Type()), C.int64_t(b.Dim(0)))) {
			return false
		}
	}
	return true
}

// ownProduct reports whether the CPU has a kernel of this project for the product of
// weights a and b.
func (g *Graph) ownProduct(a, b *Tensor) bool {
	return g.Device().IsCPU() && b.Type() == F32 && contiguousRows(b) && contiguousRows(a) && a.Dim(3) == 1 && b.Dim(3) == 1 &&
		bool(C.inkling_multiplies(C.enum_ggml_type(a.Type()), C.int64_t(a.Dim(0)))) && !g.Elsewhere(a)
}

// team is what threads share in a node that wants work bytes for itself.
func (g *Graph) team(work C.size_t) *C.struct_inkling_team {
	g.teamWork = max(g.teamWork, int64(work))
	return g.be.host().team
}
