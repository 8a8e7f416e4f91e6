package binding

// #include "readback.h"
import "C"

import "unsafe"

// Results of windowFrom bytes and more are read in pieces of windowHalf through
// pinned memory; for less the stops in between cost more than they save.
const (
	windowFrom = 256 << 10
	windowHalf = 512 << 10
)

// Read is t.Floats, faster where t is a large result that lies on a GPU of b.
func (b *Backend) Read(t *Tensor, dst []float32) {
	if 4*len(dst) >= windowFrom && !t.planned() && t.Type() == F32 && t.Contiguous() && int64(len(dst)) <= t.Elems() {
		for _, p := range b.Parts() {
			if w := p.window(t); w != nil {
				C.inkling_read(p.b, t.c(), (*C.char)(unsafe.Pointer(&dst[0])), C.size_t(4*len(dst)), w)
				return
			}
		}
	}
	t.Floats(dst)
}

// window is b's pinned memory, nil if t does not lie on b or b has none.
func (b *Backend) window(t *Tensor) *C.struct_inkling_window {
	if b.dev.IsCPU() || !bool(C.inkling_lies_on(t.c(), b.b)) {
		return nil
	}
	if b.through == nil {
		b.through = C.inkling_window_new(b.b, windowHalf)
	}
	return b.through
}
