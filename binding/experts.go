package binding

// #include <stdlib.h>
// #include "experts.h"
import "C"

import "unsafe"

// ExpertsOfRow is Σ_k weight_k·down_k(silu(gate_k x)·up_k x) over the experts chosen
// for a single row, as one node that the CPU alone has a kernel for.
//
//	gate, up: [n_embd, n_ff, n_expert]
//	down:     [n_ff, n_embd, n_expert]
//	x:        [n_embd, 1]               F32
//	ids:      [n_used, 1]               I32
//	weights:  [n_used, 1]               F32
//	res:      [n_embd, 1]
func (g *Graph) ExpertsOfRow(gate, up, down, x, ids, weights *Tensor) *Tensor {
	embd, ff := gate.Dim(0), gate.Dim(1)
	need(up.Shape() == gate.Shape() && down.Shape() == [4]int64{ff, embd, gate.Dim(2), 1} && gate.Dim(3) == 1, "experts", "banks do not fit", gate, up, down)
	need(x.Type() == F32 && x.Elems() == embd && x.Dim(0) == embd && x.Contiguous(), "experts", "want one row", gate, x)
	need(ids.Type() == I32 && weights.Type() == F32 && ids.Dim(0) == ids.Elems() && weights.Dim(0) == ids.Dim(0) && weights.Elems() == ids.Elems() &&
		ids.Contiguous() && weights.Contiguous(), "experts", "want an id and a weight for each expert", ids, weights)
	state := C.calloc(1, C.inkling_experts_state_size())
	g.owned = append(g.owned, state)
	y := g.node(C.inkling_experts(g.ctx, gate.c(), up.c(), down.c(), x.c(), ids.c(), weights.c(), state))
	return g.View(y, [4]int64{embd, 1, 1, 1}, y.Stride(1), y.Stride(1), y.Stride(1), 0)
}

// freeOwned frees what nodes of the graph have besides their tensors.
func (g *Graph) freeOwned() {
	for _, p := range g.owned {
		C.free(unsafe.Pointer(p))
	}
	g.owned = nil
}
