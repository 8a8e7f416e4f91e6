package binding

// #include "bridge.h"
// #include "products.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Graph is a recorded computation. Build it once with the operation methods,
// Alloc it, then set inputs and Compute as often as wanted: addresses and
// shapes stay, which keeps the host's work per step small and lets CUDA replay
// the kernels it has captured.
type Graph struct {
	// OnTap, if set before building, is called by Tap for every named step.
	OnTap func(g *Graph, t *Tensor, name string, layer int)

	be    *Backend
	ctx   *C.struct_ggml_context
	cg    *C.struct_ggml_cgraph
	cap   int
	n     int
	place placing
	mem   unsafe.Pointer // that ctx lies in, of graphMemory
	class int

	teamWork int64 // bytes of the team that a node of this project's products wants
}

// NewGraph makes room for n tensors: inputs, views and results alike.
func (b *Backend) NewGraph(n int) *Graph {
	// An operation is counted after ggml has made its tensors, of which there are two at most.
	const slack = 4
	size := graphBytes(n + slack)
	mem, class := b.graphs.take(size)
	ctx := newContext(mem, size)
	return &Graph{
		be: b, ctx: ctx, cg: C.ggml_new_graph_custom(ctx, C.size_t(n+slack), C.bool(false)), cap: n, place: placing{on: b.home()},
		mem: mem, class: class,
	}
}

// Backend returns the backend that g computes on.
func (g *Graph) Backend() *Backend { return g.be }

// count notes a tensor. Without room for one more ggml would abort.
func (g *Graph) count() {
	if g.n++; g.n > g.cap {
		panic(&ShapeError{Op: "graph", Reason: fmt.Sprintf("more than %d tensors", g.cap)})
	}
}

// Input declares a tensor that the host fills before each Compute.
func (g *Graph) Input(name string, t DType, ne ...int64) *Tensor {
	g.count()
	x, err := newTensor(g.ctx, t, ne)
	if err != nil {
		panic(&ShapeError{Op: "input " + name, Reason: err.Error()})
	}
	C.ggml_set_input(x.c())
	return x.SetName(name)
}

// Expand appends t and what it depends on to the order of computation. Nodes
// that write to persistent tensors must be expanded before those that read
// the written values: such pairs are ordered by nothing else.
func (g *Graph) Expand(t *Tensor) { C.ggml_build_forward_expand(g.cg, t.c()) }

// ExpandWrite is Expand for an F32 result that lies in another tensor's memory
// and that nothing reads under its own name. ggml's allocator would hold that
// memory to the end of the graph, waiting for a reader: it is given one.
func (g *Graph) ExpandWrite(t *Tensor) {
	g.Expand(t)
	g.Expand(g.Scale(g.View(t, [4]int64{1, 1, 1, 1}, 4, 4, 4, 0), 1))
}

// Output expands t and keeps its memory from being reused, so that the host
// can read it after Compute.
func (g *Graph) Output(t *Tensor) *Tensor {
	C.ggml_set_output(t.c())
	g.Expand(t)
	return t
}

// Tap names an intermediate result; it costs nothing unless OnTap is set. The
// names are those of the reference values, and layer is -1 outside layers.
func (g *Graph) Tap(t *Tensor, name string, layer int) {
	if g.OnTap != nil {
		g.OnTap(g, t, name, layer)
	}
}

// Nodes is the number of operations recorded by Expand and Output.
func (g *Graph) Nodes() int { return int(C.ggml_graph_n_nodes(g.cg)) }

// Unsupported lists the operations that no device has a kernel for where they
// are to run.
func (g *Graph) Unsupported() []string {
	var ops []string
	for i := C.int(0); i < C.ggml_graph_n_nodes(g.cg); i++ {
		t := wrap(C.ggml_graph_node(g.cg, i))
		on := g.be.home()
		if p, ok := g.place.pins[t]; ok {
			on = p.on
		}
		if !on.dev.Supports(t) && !g.follows(t, on) && !g.fetches(t, on) {
			ops = append(ops, fmt.Sprintf("%s %v", C.GoString(C.ggml_op_desc(t.c())), t.Shape()))
		}
	}
	return ops
}

// Allocator is the memory of intermediate results. One graph at a time uses
// it: allocating the next one invalidates the one before.
type Allocator struct {
	be    *Backend
	a     C.ggml_gallocr_t       // of a single device
	sched C.ggml_backend_sched_t // of several; nil until it is needed
	room  int                    // nodes and leafs that sched has room for
}

// NewAllocator returns an empty allocator.
func (b *Backend) NewAllocator() *Allocator {
	a := &Allocator{be: b}
	if b.parts == nil {
		a.a = C.ggml_gallocr_new(C.ggml_backend_get_default_buffer_type(b.b))
	}
	return a
}

// Size is the number of bytes held, on all devices.
func (a *Allocator) Size() int64 {
	if a.a != nil {
		return int64(C.ggml_gallocr_get_buffer_size(a.a, 0))
	}
	n := int64(0)
	for _, p := range a.be.parts {
		n += a.sizeOn(p)
	}
	return n
}

// Close frees the memory.
func (a *Allocator) Close() {
	if a == nil {
		return
	}
	if a.a != nil {
		C.ggml_gallocr_free(a.a)
	}
	C.ggml_backend_sched_free(a.sched)
	a.a, a.sched, a.room = nil, nil, 0
}

// Alloc places the graph's tensors in a's memory, which grows if needed. A node
// that its device has no kernel for is an error: it would run elsewhere, slowly
// and unseen, or end the process.
func (g *Graph) Alloc(a *Allocator) error {
	if !g.be.dev.IsCPU() || g.be.parts != nil {
		if ops := g.Unsupported(); len(ops) > 0 {
			return fmt.Errorf("device %s has no kernel for %s", g.be.dev.Name(), strings.Join(ops[:min(len(ops), 4)], ", "))
		}
	}
	ok := false
	if g.be.parts != nil {
		ok = g.schedule(a)
	} else {
		ok = bool(C.ggml_gallocr_alloc_graph(a.a, g.cg))
	}
	if !ok {
		return fmt.Errorf("device %s: %w for a graph of %d nodes", g.be.dev.Name(), ErrOutOfMemory, g.Nodes())
	}
	if g.teamWork > 0 && !bool(C.inkling_team_reserve(g.be.host().team, C.size_t(g.teamWork))) {
		return fmt.Errorf("device %s: %w for %d bytes of operands", g.be.host().dev.Name(), ErrOutOfMemory, g.teamWork)
	}
	g.be.work = max(g.be.work, g.work())
	return nil
}

// Measure returns the bytes that Alloc and Compute would need, without taking them.
func (g *Graph) Measure() int64 {
	if g.be.plan {
		for _, op := range g.Unsupported() {
			name, _, _ := strings.Cut(op, " ")
			g.be.lacks[name] = true
		}
	}
	if g.be.parts != nil {
		return g.measureParts()
	}
	a := C.ggml_gallocr_new(C.ggml_backend_get_default_buffer_type(g.be.b))
	defer C.ggml_gallocr_free(a)
	var size C.size_t
	C.ggml_gallocr_reserve_n_size(a, g.cg, nil, nil, &size)
	n := int64(size) + g.work()
	g.be.planned.Compute = max(g.be.planned.Compute, n)
	return n
}

// work is the memory that the CPU's kernels want beside the results, such as that
// of operands in another type. Graphs computed one after another share it.
func (g *Graph) work() int64 {
	if !g.be.dev.IsCPU() {
		return g.teamWork
	}
	return int64(C.ggml_graph_plan(g.cg, C.int(g.be.threads), nil).work_size) + g.teamWork
}

// Compute runs the graph and returns when its results can be read.
func (g *Graph) Compute() error {
	if C.inkling_flag_get(g.be.flag) != 0 {
		return ErrInterrupted
	}
	var s C.enum_ggml_status
	if g.be.parts != nil {
		s = C.ggml_backend_sched_graph_compute(g.place.sched, g.cg)
	} else {
		s = C.ggml_backend_graph_compute(g.be.b, g.cg)
	}
	switch s {
	case C.GGML_STATUS_SUCCESS:
		if g.be.Watch != nil {
			g.be.Watch(g)
		}
		return nil
	case C.GGML_STATUS_ABORTED:
		return ErrInterrupted
	case C.GGML_STATUS_ALLOC_FAILED:
		return fmt.Errorf("device %s: %w while computing", g.be.dev.Name(), ErrOutOfMemory)
	default:
		return fmt.Errorf("device %s: computing failed with status %d", g.be.dev.Name(), int(s))
	}
}

// Close frees the graph and its tensors.
func (g *Graph) Close() {
	if g != nil && g.ctx != nil {
		C.ggml_free(g.ctx)
		g.be.graphs.give(g.mem, g.class)
		g.ctx, g.cg, g.mem = nil, nil, nil
	}
}
