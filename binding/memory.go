package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Memory is a set of tensors that outlive graphs: weights, caches, states.
// Declare tensors with New, then give all of them memory by Alloc, or map
// weights where they lie by Map.
type Memory struct {
	be     *Backend
	ctx    *C.struct_ggml_context
	bufs   []C.ggml_backend_buffer_t
	blocks []unsafe.Pointer // of C memory that buffers lie in
	cap    int
	n      int
	size   int64
}

// NewMemory makes room for n tensor declarations on b's device.
func (b *Backend) NewMemory(n int) *Memory {
	return &Memory{be: b, ctx: C.inkling_context_new(C.size_t(n), 0), cap: n}
}

// New declares a tensor of one to four dimensions.
func (m *Memory) New(name string, t DType, ne ...int64) (*Tensor, error) {
	if m.n == m.cap {
		return nil, fmt.Errorf("tensor %q: more than the %d that were announced", name, m.cap)
	}
	x, err := newTensor(m.ctx, t, ne)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	m.n++
	return x.SetName(name), nil
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

// Alloc gives every tensor that has no memory yet a place on the device,
// filled with zero bytes. On the CPU pages are taken only when they are first
// written, so that a long cache costs what is used of it.
func (m *Memory) Alloc() error {
	if !m.unplaced() {
		return nil
	}
	if m.be.plan {
		return m.reserve()
	}
	outOfMemory := fmt.Errorf("device %s: %w", m.be.dev.Name(), ErrOutOfMemory)
	if !m.be.dev.IsCPU() {
		buf := C.ggml_backend_alloc_ctx_tensors(m.ctx, m.be.b)
		if buf == nil {
			return outOfMemory
		}
		C.ggml_backend_buffer_clear(buf, 0)
		m.bufs = append(m.bufs, buf)
		m.size += int64(C.ggml_backend_buffer_get_size(buf))
		return nil
	}
	size := C.ggml_backend_alloc_ctx_tensors_from_buft_size(m.ctx, C.ggml_backend_get_default_buffer_type(m.be.b))
	const align = 64 // of a cache line; at least what ggml wants
	block := C.calloc(1, size+align)
	if block == nil {
		return outOfMemory
	}
	m.blocks = append(m.blocks, block)
	at := unsafe.Add(block, (align-uintptr(block)%align)%align)
	buf := C.ggml_backend_cpu_buffer_from_ptr(at, size)
	if buf == nil {
		return outOfMemory
	}
	m.bufs = append(m.bufs, buf)
	m.size += int64(size)
	ta := C.ggml_tallocr_new(buf)
	for t := C.ggml_get_first_tensor(m.ctx); t != nil; t = C.ggml_get_next_tensor(m.ctx, t) {
		if t.data == nil && C.ggml_tallocr_alloc(&ta, t) != C.GGML_STATUS_SUCCESS {
			return outOfMemory
		}
	}
	return nil
}

// reserve counts what Alloc would take. ggml leaves tensors alone that are in a
// buffer and have no data yet: an empty one stands for the memory.
func (m *Memory) reserve() error {
	buft := C.ggml_backend_get_default_buffer_type(m.be.b)
	size := C.ggml_backend_alloc_ctx_tensors_from_buft_size(m.ctx, buft)
	buf := C.ggml_backend_buft_alloc_buffer(buft, 0)
	if buf == nil {
		return fmt.Errorf("device %s: can not be planned for", m.be.dev.Name())
	}
	m.bufs = append(m.bufs, buf)
	m.size += int64(size)
	for t := C.ggml_get_first_tensor(m.ctx); t != nil; t = C.ggml_get_next_tensor(m.ctx, t) {
		if t.data == nil && t.buffer == nil {
			t.buffer = buf
		}
	}
	return nil
}

func (m *Memory) unplaced() bool {
	for t := C.ggml_get_first_tensor(m.ctx); t != nil; t = C.ggml_get_next_tensor(m.ctx, t) {
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
// place for tensors: no copy is made. Only for CPU devices. data must not be
// Go memory.
func (m *Memory) Map(data []byte) (*Mapping, error) {
	if !m.be.dev.IsCPU() || len(data) == 0 || uintptr(unsafe.Pointer(&data[0]))%MapAlign != 0 {
		return nil, fmt.Errorf("device %s: these %d bytes can not be mapped", m.be.dev.Name(), len(data))
	}
	buf := C.ggml_backend_cpu_buffer_from_ptr(unsafe.Pointer(&data[0]), C.size_t(len(data)))
	if buf == nil {
		return nil, fmt.Errorf("device %s: these %d bytes can not be mapped", m.be.dev.Name(), len(data))
	}
	C.ggml_backend_buffer_set_usage(buf, C.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
	m.bufs = append(m.bufs, buf)
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
	return nil
}

// Size is the number of bytes that Alloc took; mapped bytes do not count.
func (m *Memory) Size() int64 { return m.size }

// Close frees the tensors and their memory.
func (m *Memory) Close() {
	if m == nil || m.ctx == nil {
		return
	}
	for _, b := range m.bufs {
		C.ggml_backend_buffer_free(b)
	}
	for _, b := range m.blocks {
		C.free(b)
	}
	C.ggml_free(m.ctx)
	m.bufs, m.blocks, m.ctx = nil, nil, nil
}
