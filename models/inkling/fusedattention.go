package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// fusedAttention attends in one launch over cells that hold the new rows, if the
// layer's device has a kernel for it: see attend.
func (st *step) fusedAttention(g *binding.Graph, at *op.Attention, w *layer, i int) (*binding.Tensor, bool) {
	if st.few() {
		tickets := st.s.layers[i].tickets
		if st.first == nil || tickets == nil {
			return nil, false
		}
		return op.FusedAttention(g, at, w.proj, st.first, tickets, st.cellsOf(i))
	}
	if !g.Device().Fuses() {
		return nil, false
	}
	return op.FusedPrefill(g, at, g.Cast(w.proj, binding.F16), st.pos, nil, st.cellsOf(i))
}

// fusedPrefill attends in one launch with many rows over a ring and their own keys
// beside it, if the layer's device has a kernel for it.
//
//	at:   without keys and values
//	k, v: [head_dim, n, n_head_kv]
func (st *step) fusedPrefill(g *binding.Graph, at *op.Attention, w *layer, i int, k, v *binding.Tensor) (*binding.Tensor, bool) {
	lc := &st.s.layers[i]
	if !g.Device().Fuses() || lc.vt != nil {
		return nil, false
	}
	beside := *at
	beside.K, beside.V = st.cells(g, lc.k, st.s.ringCells), st.cells(g, lc.v, st.s.ringCells)
	fresh := &op.Fresh{K: g.Cast(k, lc.k.Type()), V: g.Cast(v, lc.v.Type())} // rounded as the ring will round them
	return op.FusedPrefill(g, &beside, g.Cast(w.proj, binding.F16), st.pos, fresh, st.cellsOf(i))
}

// cellsOf describes the cells of layer i for fused operations.
func (st *step) cellsOf(i int) op.Cells {
	if st.sliding[i] {
		return op.Cells{Extent: st.relExtSWA, Window: st.slidingWindow, Ring: st.s.ring}
	}
	return op.Cells{Extent: st.relExtent}
}
