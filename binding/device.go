package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/inkling-go/inkling/ggml"
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

// Device is a piece of hardware that ggml can compute on.
type Device struct{ dev C.ggml_backend_dev_t }

// Devices lists what this build and machine offer, GPUs before the CPU.
func Devices() []Device {
	var gpus, cpus []Device
	for i := C.size_t(0); i < C.ggml_backend_dev_count(); i++ {
		d := Device{C.ggml_backend_dev_get(i)}
		if d.IsCPU() {
			cpus = append(cpus, d)
		} else {
			gpus = append(gpus, d)
		}
	}
	return append(gpus, cpus...)
}

// CPU returns the CPU device, which every build has.
func CPU() Device { return Device{C.ggml_backend_dev_by_type(C.GGML_BACKEND_DEVICE_TYPE_CPU)} }

// Name is ggml's short name of the device, such as CPU or CUDA0.
func (d Device) Name() string { return C.GoString(C.ggml_backend_dev_name(d.dev)) }

// Description is the hardware's own name.
func (d Device) Description() string { return C.GoString(C.ggml_backend_dev_description(d.dev)) }

// IsCPU reports whether the device's memory is the host's.
func (d Device) IsCPU() bool {
	return C.ggml_backend_dev_type(d.dev) == C.GGML_BACKEND_DEVICE_TYPE_CPU
}

// Memory returns the free and total bytes of the device.
func (d Device) Memory() (free, total int64) {
	var f, t C.size_t
	C.ggml_backend_dev_memory(d.dev, &f, &t)
	return int64(f), int64(t)
}

// Supports reports whether the device has a kernel for the node t.
func (d Device) Supports(t *Tensor) bool {
	return bool(C.ggml_backend_dev_supports_op(d.dev, t.c()))
}

// Features lists the SIMD extensions that the CPU kernels were compiled with.
func Features() []string { return ggml.Features() }

// Warning is a line for the user when the CPU kernels were compiled without SIMD, else empty.
func Warning() string { return ggml.Warning() }

// Source says where this build's ggml comes from.
func Source() string { return ggml.Source }

// Backend computes graphs on one device. It belongs to one goroutine;
// Interrupt and Resume may be called from any.
type Backend struct {
	dev    Device
	b      C.ggml_backend_t
	pool   *C.struct_ggml_threadpool
	flag   *C.int
	plan   bool            // see NewPlanner
	lacks  map[string]bool // names of operations, of a planner
	closed bool
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
	be := &Backend{dev: d, b: b, flag: (*C.int)(C.calloc(1, C.sizeof_int))}
	if d.IsCPU() {
		// Without a pool of its own the backend would start and join the threads for every graph.
		be.pool = C.inkling_threadpool_new(C.int(threads))
		if be.pool == nil {
			be.Close()
			return nil, fmt.Errorf("device %s: can not start %d threads", d.Name(), threads)
		}
		C.ggml_backend_cpu_set_n_threads(b, C.int(threads))
		C.ggml_backend_cpu_set_threadpool(b, be.pool)
		C.inkling_cpu_set_abort_flag(b, be.flag)
	}
	return be, nil
}

// NewPlanner opens d for planning: what is declared on the backend is measured and
// never allocated, so that a model can be laid out that fits no memory of this
// machine. Writes to such tensors are dropped, and reads leave the destination
// as it is; graphs can be measured, and must not be allocated or computed.
func NewPlanner(d Device) (*Backend, error) {
	b, err := NewBackend(d, 1)
	if err != nil {
		return nil, err
	}
	b.plan, b.lacks = true, map[string]bool{}
	return b, nil
}

// Lacks lists the operations of the graphs measured on a planner that its device
// has no kernel for, in order of name.
func (b *Backend) Lacks() []string { return slices.Sorted(maps.Keys(b.lacks)) }

// Device returns the device that b computes on.
func (b *Backend) Device() Device { return b.dev }

// Interrupt makes the running graph, and every later one until Resume, stop
// with ErrInterrupted. CPU only: other devices finish the graph.
func (b *Backend) Interrupt() { C.inkling_flag_set(b.flag, 1) }

// Resume takes Interrupt back.
func (b *Backend) Resume() { C.inkling_flag_set(b.flag, 0) }

// Close frees the backend. No graph of it may be running, and neither
// Interrupt nor Resume may be called afterwards.
func (b *Backend) Close() {
	if b == nil || b.closed {
		return
	}
	b.closed = true
	C.ggml_backend_free(b.b)
	if b.pool != nil {
		C.ggml_threadpool_free(b.pool)
	}
	C.free(unsafePointer(b.flag))
}
