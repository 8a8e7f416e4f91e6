package binding

// #include "bridge.h"
import "C"

// placing says where the nodes of a graph run, if there are several devices.
//
// Left alone, ggml's scheduler derives it from the places of weights and states.
// Nodes that overwrite intermediate results, and nodes whose form was chosen for
// a device, must be where they were meant to be: so all nodes are pinned to the
// device that On or Follow named, but those with a weight that lies elsewhere and
// that neither named.
type placing struct {
	on      *Backend // one of the backend's Parts
	follows *Backend // that Follow chose, nil outside of it
	pins    map[*Tensor]pinned
	sched   C.ggml_backend_sched_t // of the allocator, once allocated
	splits  int
}

// pinned says where a node runs.
type pinned struct {
	on    *Backend
	fetch bool // weights that lie elsewhere come there
}

// On says which device the nodes that are recorded from here on run on: be is
// one of the backend's Parts; nil stands for the main device, which it is at first.
func (g *Graph) On(be *Backend) {
	if be == nil {
		be = g.be
	}
	g.place.on = be.home()
}

// Fresh is a, or a copy of it if a may be computed on another device than On's:
// what is overwritten must be where it is overwritten.
func (g *Graph) Fresh(a *Tensor) *Tensor {
	if g.be.parts == nil {
		return a
	}
	return g.Cont(a)
}

// runs is the device that nodes recorded now run on.
func (g *Graph) runs() *Backend {
	if g.place.follows != nil {
		return g.place.follows
	}
	return g.place.on
}

// Device is the device that nodes recorded now run on.
func (g *Graph) Device() Device { return g.runs().dev }

// Elsewhere reports whether one of the weights has memory that On's device can not read.
func (g *Graph) Elsewhere(weights ...*Tensor) bool {
	for _, w := range weights {
		if g.be.parts != nil && bool(C.inkling_weight_is_elsewhere(w.c(), g.place.on.b)) {
			return true
		}
	}
	return false
}

// Beside reports whether nodes recorded now run on the CPU because Follow said so: a GPU
// waits for them.
func (g *Graph) Beside() bool { return g.place.follows != nil && g.place.follows.dev.IsCPU() }

// Supports reports whether that device has a kernel for the node t.
func (g *Graph) Supports(t *Tensor) bool { return g.runs().dev.Supports(t) }

// Follow lets the nodes that are recorded until the returned function is called,
// products of rows rows with weights, run where those are, if all of them are on
// the same device and it is another than On's. Of StreamRows rows and more the weights come
// to On's device instead.
func (g *Graph) Follow(rows int64, weights ...*Tensor) (done func()) {
	w := weights[0]
	if !g.Elsewhere(w) {
		return func() {}
	}
	for _, other := range weights[1:] {
		if C.inkling_buffer_type(other.c()) != C.inkling_buffer_type(w.c()) {
			return func() {} // each product runs where its own weight is
		}
	}
	g.place.follows = g.place.on
	if rows < int64(g.be.StreamRows()) || !g.place.on.multipliesByChoice(w) {
		for _, p := range g.be.parts {
			if !bool(C.inkling_is_elsewhere(w.c(), p.b)) {
				g.place.follows = p
			}
		}
	}
	return func() { g.place.follows = nil }
}

// multipliesByChoice reports whether the device has a kernel for banks of experts like w.
func (b *Backend) multipliesByChoice(w *Tensor) bool {
	g := b.NewGraph(4)
	defer g.Close()
	x, ids := g.Input("x", F32, w.Dim(0), 1, 1), g.Input("ids", I32, 1, 1)
	return g.Supports(g.MulMatID(w, x, ids))
}

// DefaultStreamRows is ggml's own number, and the least that can be set.
const DefaultStreamRows = 32

// StreamRows is the least number of rows whose products with weights in host memory
// are computed on a GPU, to which the weights are copied.
func (b *Backend) StreamRows() int { return max(b.stream, DefaultStreamRows) }

// SetStreamRows sets it for graphs that are built from now on.
func (b *Backend) SetStreamRows(n int) { b.stream = n }

func (g *Graph) pin(t *Tensor) {
	if g.be.parts == nil {
		return
	}
	if g.place.pins == nil {
		g.place.pins = map[*Tensor]pinned{}
	}
	g.place.pins[t] = pinned{g.runs(), g.place.follows != nil}
}

// follows reports whether a node of be's device is to run elsewhere: one of its
// operands is a weight that lies there.
func (g *Graph) follows(t *Tensor, be *Backend) bool {
	if g.be.parts == nil {
		return false
	}
	p, ok := g.place.pins[t]
	if !ok {
		return true
	}
	for _, src := range t.c().src {
		if src != nil && !p.fetch && bool(C.inkling_weight_is_elsewhere(src, be.b)) {
			return true
		}
	}
	return false
}

// fetches reports whether an operand lies where be can not read it: the scheduler
// copies it, and the device's answer about the node as it stands means nothing.
func (g *Graph) fetches(t *Tensor, be *Backend) bool {
	for _, src := range t.c().src {
		if src != nil && bool(C.inkling_is_elsewhere(src, be.b)) {
			return g.be.parts != nil
		}
	}
	return false
}

// Splits is the number of parts that the graph was cut into, each of which runs
// on one device: 1 if there is only one.
func (g *Graph) Splits() int { return max(1, g.place.splits) }

// newScheduler makes a scheduler with room for g and tells it the pins.
func (g *Graph) newScheduler(room int) C.ggml_backend_sched_t {
	var bs [maxDevices]C.ggml_backend_t
	for i, p := range g.be.parts {
		bs[i] = p.b
	}
	host := C.ggml_backend_dev_host_buffer_type(g.be.dev.dev)
	return C.inkling_sched_new(&bs[0], C.int(len(g.be.parts)), host, C.size_t(room))
}

// needed is the room for g's nodes and leafs: weights and inputs, counted once for
// each node that reads them, so rather too many.
func (g *Graph) needed() int {
	n := 64
	for i := C.int(0); i < C.ggml_graph_n_nodes(g.cg); i++ {
		n++
		for _, src := range C.ggml_graph_node(g.cg, i).src {
			if src != nil && src.op == C.GGML_OP_NONE {
				n++
			}
		}
	}
	return n
}

func (g *Graph) tellPins(sched C.ggml_backend_sched_t) {
	for i := C.int(0); i < C.ggml_graph_n_nodes(g.cg); i++ {
		t := wrap(C.ggml_graph_node(g.cg, i))
		switch t.c().op {
		case C.GGML_OP_VIEW, C.GGML_OP_RESHAPE, C.GGML_OP_PERMUTE, C.GGML_OP_TRANSPOSE, C.GGML_OP_NONE:
			continue // they have no kernel and are where their memory is
		}
		if p, ok := g.place.pins[t]; ok && !g.follows(t, p.on) {
			C.ggml_backend_sched_set_tensor_backend(sched, t.c(), p.on.b)
		}
	}
}

// schedule splits the graph over the devices and allocates each part there.
func (g *Graph) schedule(a *Allocator) bool {
	if n := g.needed(); a.sched == nil || a.room < n {
		C.ggml_backend_sched_free(a.sched)
		a.room = n + n/4
		a.sched = g.newScheduler(a.room)
	}
	C.ggml_backend_sched_reset(a.sched)
	g.tellPins(a.sched)
	if !C.ggml_backend_sched_alloc_graph(a.sched, g.cg) {
		return false
	}
	g.place.sched, g.place.splits = a.sched, int(C.ggml_backend_sched_get_n_splits(a.sched))
	return true
}

// measureParts is Measure over several devices. The graph is of no use afterwards.
func (g *Graph) measureParts() int64 {
	sched := g.newScheduler(g.needed())
	defer C.ggml_backend_sched_free(sched)
	// It begins anew and so forgets pins: the sizes are those of ggml's own
	// choice, which differs in a few nodes at the edges of devices.
	var sizes [maxDevices]C.size_t
	C.ggml_backend_sched_reserve_size(sched, g.cg, &sizes[0])
	total := int64(0)
	for i, p := range g.be.parts {
		n := int64(sizes[i])
		total += n
		p.planned.Compute += n
	}
	if g.teamWork > 0 {
		g.be.host().planned.Compute += g.teamWork
	}
	return total + g.teamWork
}

// sizeOn is the part of Size that is on one device.
func (a *Allocator) sizeOn(p *Backend) int64 {
	if a.sched == nil {
		return 0
	}
	return int64(C.ggml_backend_sched_get_buffer_size(a.sched, p.b))
}
