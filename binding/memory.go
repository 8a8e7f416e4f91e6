package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Memory is a set of tensors that outlive graphs: weights, caches, states.
// Declare tensors with New or NewOn, then give all of them memory by Alloc, or
// map weights where they lie by Map.
type Memory struct {
	be      *Backend
	weights bool
	pools   []*pool
	host    []span // host memory that weights lie in
	pinned  []span
	cap     int
	n       int
}

// pool is the part of a Memory that is on one device.
type pool struct {
	be     *Backend
	ctx    *C.struct_ggml_context
	bufs   []C.ggml_backend_buffer_t
	blocks []unsafe.Pointer // of C memory that buffers lie in
	size   int64
}

// NewMemory makes room for n tensor declarations.
func (b *Backend) NewMemory(n int) *Memory { return &Memory{be: b, cap: n} }

// NewWeights is NewMemory for weights: of several devices, nodes run where their
// weights are.
func (b *Backend) NewWeights(n int) *Memory { return &Memory{be: b, cap: n, weights: true} }

// New declares a tensor of one to four dimensions on the main device.
func (m *Memory) New(name string, t DType, ne ...int64) (*Tensor, error) {
	return m.NewOn(m.be.home(), name, t, ne...)
}

// NewOn declares a tensor on one of the devices of the backend: be is one of its
// Parts, or nil for the main one.
func (m *Memory) NewOn(be *Backend, name string, t DType, ne ...int64) (*Tensor, error) {
	if m.n == m.cap {
		return nil, fmt.Errorf("tensor %q: more than the %d that were announced", name, m.cap)
	}
	if be == nil {
		be = m.be
	}
	x, err := newTensor(m.pool(be.home()).ctx, t, ne)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	m.n++
	return x.SetName(name), nil
}

// pool returns the part on the device of be, which it begins if there is none.
func (m *Memory) pool(be *Backend) *pool {
	for _, p := range m.pools {
		if p.be == be {
			return p
		}
	}
	p := &pool{be: be, ctx: C.inkling_context_new(C.size_t(m.cap), 0)}
	m.pools = append(m.pools, p)
	return p
}

// newTensor checks what ggml would assert: known type, one to four positive
// dimensions, whole blocks, and a size that fits 63 bits.
func newTensor(ctx *C.struct_ggml_context, t DType, ne []int64) (*Tensor, error) {
	if !t.Known() {
		return nil, fmt.Errorf("%s is not a type of this build's ggml", t)
	}
	if len(ne) < 1 || len(ne) > 4 {
		return nil, fmt.Errorf("%d dimensions, want 1 to 4", len(ne))
	}
	bytes := t.Size()
	for i, n := range ne {
		if n < 1 {
			return nil, fmt.Errorf("shape %v: dimension %d is not positive", ne, i)
		}
		if i == 0 {
			if n%t.BlockSize() != 0 {
				return nil, fmt.Errorf("shape %v: %d is not a multiple of the %d elements of a %s block", ne, n, t.BlockSize(), t)
			}
			n /= t.BlockSize()
		}
		if bytes > (1<<62)/n {
			return nil, fmt.Errorf("shape %v: too large", ne)
		}
		bytes *= n
	}
	return wrap(C.ggml_new_tensor(ctx, C.enum_ggml_type(t), C.int(len(ne)), (*C.int64_t)(unsafe.Pointer(&ne[0])))), nil
}

// Alloc gives every tensor that has no memory yet a place on its device, filled
// with zero bytes. On the CPU pages are taken only when they are first written,
// so that a long cache costs what is used of it.
func (m *Memory) Alloc() error {
	for _, p := range m.pools {
		if !p.unplaced() {
			continue
		}
		if m.be.plan {
			if err := p.reserve(m.weights); err != nil {
				return err
			}
			continue
		}
		if err := p.alloc(m.weights); err != nil {
			return err
		}
		if m.weights {
			buf := p.bufs[len(p.bufs)-1]
			C.ggml_backend_buffer_set_usage(buf, C.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
			if p.be.dev.IsCPU() {
				m.host = append(m.host, span{uintptr(C.ggml_backend_buffer_get_base(buf)), uintptr(C.ggml_backend_buffer_get_size(buf))})
			}
		}
	}
	return nil
}

func (p *pool) alloc(weights bool) error {
	if p.be.dev.IsCPU() {
		return p.allocHost(weights)
	}
	buf := C.ggml_backend_alloc_ctx_tensors(p.ctx, p.be.b)
	if buf == nil {
		return p.outOfMemory()
	}
	C.ggml_backend_buffer_clear(buf, 0)
	p.bufs = append(p.bufs, buf)
	p.size += int64(C.ggml_backend_buffer_get_size(buf))
	return nil
}

func (p *pool) outOfMemory() error {
	free, total := p.be.dev.Memory()
	size := C.ggml_backend_alloc_ctx_tensors_from_buft_size(p.ctx, C.ggml_backend_get_default_buffer_type(p.be.b))
	return fmt.Errorf("device %s: %w: %d MiB do not fit, %d of %d are free", p.be.dev.Name(), ErrOutOfMemory, int64(size)>>20, free>>20, total>>20)
}

// allocHost takes zeroed memory. Weights, all of which are read, lie in large pages
// if the system has them: a cache would lose its pages that are never written.
func (p *pool) allocHost(weights bool) error {
	size := C.ggml_backend_alloc_ctx_tensors_from_buft_size(p.ctx, C.ggml_backend_get_default_buffer_type(p.be.b))
	const align = 64 // of a cache line; at least what ggml wants
	block := C.calloc(1, size+align)
	if block == nil {
		return p.outOfMemory()
	}
	p.blocks = append(p.blocks, block)
	at := unsafe.Add(block, (align-uintptr(block)%align)%align)
	if weights {
		C.inkling_huge_pages(at, size)
	}
	buf := C.ggml_backend_cpu_buffer_from_ptr(at, size)
	if buf == nil {
		return p.outOfMemory()
	}
	p.bufs = append(p.bufs, buf)
	p.size += int64(size)
	ta := C.ggml_tallocr_new(buf)
	for t := C.ggml_get_first_tensor(p.ctx); t != nil; t = C.ggml_get_next_tensor(p.ctx, t) {
		if t.data == nil && C.ggml_tallocr_alloc(&ta, t) != C.GGML_STATUS_SUCCESS {
			return p.outOfMemory()
		}
	}
	return nil
}

// reserve counts what alloc would take. ggml leaves tensors alone that are in a
// buffer and have no data yet: an empty one stands for the memory.
func (p *pool) reserve(weights bool) error {
	buft := C.ggml_backend_get_default_buffer_type(p.be.b)
	size := C.ggml_backend_alloc_ctx_tensors_from_buft_size(p.ctx, buft)
	buf := C.ggml_backend_buft_alloc_buffer(buft, 0)
	if buf == nil {
		return fmt.Errorf("device %s: can not be planned for", p.be.dev.Name())
	}
	if weights && !p.be.dev.IsCPU() { // the scheduler, which forgets pins when it measures, leaves nodes where their weights are
		C.ggml_backend_buffer_set_usage(buf, C.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
	}
	p.bufs = append(p.bufs, buf)
	p.size += int64(size)
	p.be.planned.Memory += int64(size)
	for t := C.ggml_get_first_tensor(p.ctx); t != nil; t = C.ggml_get_next_tensor(p.ctx, t) {
		if t.data == nil && t.buffer == nil {
			t.buffer = buf
		}
	}
	return nil
}

func (p *pool) unplaced() bool {
	for t := C.ggml_get_first_tensor(p.ctx); t != nil; t = C.ggml_get_next_tensor(p.ctx, t) {
		if t.data == nil && t.buffer == nil {
			return true
		}
	}
	return false
}

// MapAlign is the alignment in bytes that ggml's CPU kernels want of a tensor's data.
const MapAlign = 32

// Mapping is host memory, such as a mapped file, that tensors can lie in.
type Mapping struct {
	m    *Memory
	buf  C.ggml_backend_buffer_t
	data []byte
}

// Map registers data, which must stay valid and unmoved until Close, as a
// place for tensors of the CPU: no copy is made. data must not be Go memory.
func (m *Memory) Map(data []byte) (*Mapping, error) {
	host := m.be.host()
	if host == nil || len(data) == 0 || uintptr(unsafe.Pointer(&data[0]))%MapAlign != 0 {
		return nil, fmt.Errorf("device %s: these %d bytes can not be mapped", m.be.dev.Name(), len(data))
	}
	buf := C.ggml_backend_cpu_buffer_from_ptr(unsafe.Pointer(&data[0]), C.size_t(len(data)))
	if buf == nil {
		return nil, fmt.Errorf("device %s: these %d bytes can not be mapped", m.be.dev.Name(), len(data))
	}
	C.ggml_backend_buffer_set_usage(buf, C.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
	p := m.pool(host)
	p.bufs = append(p.bufs, buf)
	return &Mapping{m, buf, data}, nil
}

// Place puts the tensor t at byte offset off of the mapping.
func (p *Mapping) Place(t *Tensor, off int64) error {
	if off < 0 || off%MapAlign != 0 || off+t.Bytes() > int64(len(p.data)) {
		return fmt.Errorf("tensor %q: %d bytes at offset %d do not fit the mapping of %d bytes", t.Name(), t.Bytes(), off, len(p.data))
	}
	if s := C.ggml_backend_tensor_alloc(p.buf, t.c(), unsafe.Pointer(&p.data[off])); s != C.GGML_STATUS_SUCCESS {
		return fmt.Errorf("tensor %q: can not be placed", t.Name())
	}
	if host := p.m.be.host(); host.plan {
		host.planned.Mapped += t.Bytes()
		return nil
	}
	p.m.host = append(p.m.host, span{uintptr(unsafe.Pointer(&p.data[off])), uintptr(t.Bytes())})
	return nil
}

// Size is the number of bytes that Alloc took; mapped bytes do not count.
func (m *Memory) Size() int64 {
	n := int64(0)
	for _, p := range m.pools {
		n += p.size
	}
	return n
}

// SizeOn is the part of Size that is on one device.
func (m *Memory) SizeOn(be *Backend) int64 {
	for _, p := range m.pools {
		if p.be == be.home() {
			return p.size
		}
	}
	return 0
}

// Close frees the tensors and their memory.
func (m *Memory) Close() {
	if m == nil {
		return
	}
	m.unpin()
	for _, p := range m.pools {
		for _, b := range p.bufs {
			C.ggml_backend_buffer_free(b)
		}
		for _, b := range p.blocks {
			C.free(b)
		}
		C.ggml_free(p.ctx)
	}
	m.pools = nil
}
