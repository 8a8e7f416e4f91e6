package binding

// #include "bridge.h"
// #include "cpuops.h"
// #include "products.h"
import "C"

import (
	"math/rand/v2"
	"slices"
)

// Ops counts the nodes of a graph by operation, as ggml spells them: MUL_MAT, SOFT_MAX.
func (g *Graph) Ops() map[string]int {
	count := map[string]int{}
	for i := C.int(0); i < C.ggml_graph_n_nodes(g.cg); i++ {
		count[opName(C.ggml_graph_node(g.cg, i))]++
	}
	return count
}

// opName is ggml's name of an operation, or that of one of this project's.
func opName(t *C.struct_ggml_tensor) string {
	if own := C.inkling_cpu_op_name(t); own != nil {
		return C.GoString(own)
	}
	return C.GoString(C.ggml_op_name(t.op))
}

// Only returns a graph of the nodes of an allocated graph that are one of some
// operations, on the same memory: for measuring what kernels take without the rest. Its results
// mean nothing. The experts of MUL_MAT_ID and EXPERTS are drawn, since what had chosen them is
// overwritten. It must be closed before g is, or another graph allocated in g's
// memory; of several devices there are none.
func (g *Graph) Only(ops ...string) (*Subgraph, error) {
	s := &Subgraph{Graph: g.be.NewGraph(g.Nodes())}
	var kept []*C.struct_ggml_tensor
	choices := 0
	for i := C.int(0); i < C.ggml_graph_n_nodes(g.cg); i++ {
		if t := C.ggml_graph_node(g.cg, i); slices.Contains(ops, opName(t)) {
			kept = append(kept, t)
			if idsOf(t) != nil {
				choices++
			}
		}
	}
	s.ids = g.be.NewMemory(choices)
	copies := map[int]*Tensor{}
	for i, t := range kept {
		chosen := idsOf(t)
		if chosen == nil {
			continue
		}
		ids, err := s.ids.New("ids", I32, int64(chosen.ne[0]), int64(chosen.ne[1]))
		if err != nil {
			s.Close()
			return nil, err
		}
		own := s.withIDs(t, ids)
		own.data, own.buffer = t.data, t.buffer
		copies[i] = ids
		kept[i] = own
	}
	if err := s.ids.Alloc(); err != nil {
		s.Close()
		return nil, err
	}
	rng := rand.New(rand.NewPCG(0, 0))
	for i, t := range kept {
		if ids := copies[i]; ids != nil {
			ids.SetInt32s(draw(rng, int(t.src[0].ne[2]), int(ids.Dim(0)), int(ids.Dim(1))))
		}
		C.ggml_graph_add_node(s.cg, t)
	}
	return s, nil
}

// idsOf is the operand of a node that says which experts its rows choose, nil of others.
func idsOf(t *C.struct_ggml_tensor) *C.struct_ggml_tensor {
	switch opName(t) {
	case "MUL_MAT_ID":
		return t.src[2]
	case "EXPERTS":
		return t.src[4]
	}
	return nil
}

// withIDs is the node t for other choices.
func (g *Graph) withIDs(t *C.struct_ggml_tensor, ids *Tensor) *C.struct_ggml_tensor {
	if t.op == C.GGML_OP_MUL_MAT_ID {
		return C.ggml_mul_mat_id(g.ctx, t.src[0], t.src[1], ids.c())
	}
	return C.inkling_experts(g.ctx, t.src[0], t.src[1], t.src[2], t.src[3], ids.c(), t.src[5], g.be.host().team)
}

// draw chooses k different ones of n for each of some rows.
func draw(rng *rand.Rand, n, k, rows int) []int32 {
	var ids []int32
	for range rows {
		for _, id := range rng.Perm(n)[:k] {
			ids = append(ids, int32(id))
		}
	}
	return ids
}

// Subgraph is some nodes of another graph.
type Subgraph struct {
	*Graph
	ids *Memory
}

// Close frees it; the graph that it was made of stays.
func (s *Subgraph) Close() {
	s.Graph.Close()
	s.ids.Close()
}
