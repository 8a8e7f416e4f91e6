package binding

// #include <stdlib.h>
// #include "bridge.h"
// #include "products.h"
// #include "readahead.h"
// #include "readback.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Errors that callers tell apart.
var (
	// ErrInterrupted is returned by Compute after Interrupt. What the graph had
	// written to persistent tensors by then is undefined.
	ErrInterrupted = errors.New("interrupted")
	// ErrOutOfMemory reports that a device has no room for weights, a cache or
	// the results of a graph.
	ErrOutOfMemory = errors.New("out of memory")
)

// Backend computes graphs on one device, or on several (NewBackends). It belongs
// to one goroutine; Interrupt and Resume may be called from any.
type Backend struct {
	// Watch, if set, is called with every graph that was computed: for measuring.
	Watch func(g *Graph)

	dev   Device
	b     C.ggml_backend_t
	pool  *C.struct_ggml_threadpool
	team  *C.struct_inkling_team // of the CPU: what threads share in this project's products
	flag  *C.int
	parts []*Backend      // of several devices: the main one first, which b is, and the CPU last
	plan  bool            // see NewPlanner
	lacks map[string]bool // names of operations, of a planner

	stream    int                     // see StreamRows
	streaming *Streaming              // nil unless measured
	reads     *C.struct_inkling_reads // nil unless CountReads

	through *C.struct_inkling_window // see Read; nil until it is needed

	graphs  graphMemory
	threads int
	pinned  int   // runs of pages, see Memory.Pin
	work    int64 // of the largest graph that was allocated, see Work
	planned Planned
	closed  bool
}

// NewBackend opens d. threads is the number of CPU threads that compute, at
// least 1; other devices ignore it.
func NewBackend(d Device, threads int) (*Backend, error) {
	if threads < 1 || threads > int(C.GGML_MAX_N_THREADS) {
		return nil, fmt.Errorf("threads: %d, want 1 to %d", threads, int(C.GGML_MAX_N_THREADS))
	}
	b := C.ggml_backend_dev_init(d.dev, nil)
	if b == nil {
		return nil, fmt.Errorf("device %s: can not be opened", d.Name())
	}
	be := &Backend{dev: d, b: b, threads: threads, flag: (*C.int)(C.calloc(1, C.sizeof_int))}
	if d.IsCPU() {
		// Without a pool of its own the backend would start and join the threads for every graph.
		be.pool = C.inkling_threadpool_new(C.int(threads))
		be.team = C.inkling_team_new()
		if be.pool == nil || be.team == nil {
			be.Close()
			return nil, fmt.Errorf("device %s: can not start %d threads", d.Name(), threads)
		}
		C.ggml_backend_cpu_set_n_threads(b, C.int(threads))
		C.ggml_backend_cpu_set_threadpool(b, be.pool)
		C.inkling_cpu_set_abort_flag(b, be.flag)
	}
	return be, nil
}

// maxDevices is what ggml's scheduler takes.
const maxDevices = 16

// NewBackends opens several devices, the main one first and the CPU last, for
// graphs whose nodes are spread over them. Tensors without another place are the
// main device's.
func NewBackends(devs []Device, threads int) (*Backend, error) {
	if len(devs) < 2 || len(devs) > maxDevices || !devs[len(devs)-1].IsCPU() {
		return nil, fmt.Errorf("%d devices: want 2 to %d, the CPU last", len(devs), maxDevices)
	}
	all := &Backend{dev: devs[0], flag: (*C.int)(C.calloc(1, C.sizeof_int))}
	for _, d := range devs {
		b, err := NewBackend(d, threads)
		if err != nil {
			all.Close()
			return nil, err
		}
		all.parts = append(all.parts, b)
	}
	all.b = all.parts[0].b
	return all, nil
}

// NewPlanner opens devices for planning: what is declared on the backend is
// measured and never allocated, so that a model can be laid out that fits no
// memory of this machine. Writes to such tensors are dropped, and reads leave the
// destination as it is; graphs can be measured, and must not be allocated or
// computed. Of several devices the CPU is the last, as for NewBackends.
func NewPlanner(devs ...Device) (b *Backend, err error) {
	if len(devs) == 1 {
		b, err = NewBackend(devs[0], 1)
	} else {
		b, err = NewBackends(devs, 1)
	}
	if err != nil {
		return nil, err
	}
	b.plan, b.lacks = true, map[string]bool{}
	for _, p := range b.parts {
		p.plan, p.lacks = true, b.lacks
	}
	return b, nil
}

// vectors says which of this project's kernels products take: a value of
// inkling_vectors in dots.h.
func (b *Backend) vectors() uint32 { return uint32(C.inkling_team_vectors(b.host().team)) }

// useVectors sets it for graphs that are built from now on.
func (b *Backend) useVectors(v uint32) { C.inkling_team_use(b.host().team, v) }

// WorkBytes is what the CPU's kernels hold for converted operands and the like,
// as much as the largest graph so far wants.
func (b *Backend) WorkBytes() int64 { return b.work }

// Planned is what a planner has measured on one device, in bytes.
type Planned struct {
	Memory  int64 // of all Memory that was allocated
	Mapped  int64 // of the CPU: tensors that lie in files
	Compute int64 // of the largest graph, with what its kernels want
}

// Planned is what was measured so far on each of Parts.
func (b *Backend) Planned() []Planned {
	var ps []Planned
	for _, p := range b.Parts() {
		ps = append(ps, p.planned)
	}
	return ps
}

// Lacks lists the operations of the graphs measured on a planner that its device
// has no kernel for, in order of name.
func (b *Backend) Lacks() []string { return slices.Sorted(maps.Keys(b.lacks)) }

// Parts are the backends of the single devices, the CPU's last; of a single
// device it is the backend itself.
func (b *Backend) Parts() []*Backend {
	if b.parts == nil {
		return []*Backend{b}
	}
	return b.parts
}

// home is the backend of the main device.
func (b *Backend) home() *Backend { return b.Parts()[0] }

// host is the part that is the CPU's, nil if there is none.
func (b *Backend) host() *Backend {
	ps := b.Parts()
	if last := ps[len(ps)-1]; last.dev.IsCPU() {
		return last
	}
	return nil
}

// Device returns the device that b computes on, the main one of several.
func (b *Backend) Device() Device { return b.dev }

// Interrupt makes the running graph, and every later one until Resume, stop
// with ErrInterrupted. Devices other than the CPU finish the graph that runs.
func (b *Backend) Interrupt() { b.setFlag(1) }

// Resume takes Interrupt back.
func (b *Backend) Resume() { b.setFlag(0) }

func (b *Backend) setFlag(v C.int) {
	C.inkling_flag_set(b.flag, v)
	for _, p := range b.parts {
		C.inkling_flag_set(p.flag, v)
	}
}

// Close frees the backend. No graph of it may be running, and neither
// Interrupt nor Resume may be called afterwards.
func (b *Backend) Close() {
	if b == nil || b.closed {
		return
	}
	b.closed = true
	b.freeReads()
	b.graphs.free()
	C.inkling_window_free(b.through)
	if b.parts == nil && b.b != nil {
		C.ggml_backend_free(b.b)
	}
	for _, p := range b.parts {
		p.Close()
	}
	if b.pool != nil {
		C.ggml_threadpool_free(b.pool)
	}
	C.inkling_team_free(b.team)
	C.free(unsafePointer(b.flag))
}
