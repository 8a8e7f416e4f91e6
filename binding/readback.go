package binding

// #include "readback.h"
import "C"

import (
	"sync"
	"unsafe"
)

// Results of windowFrom values and more are read in pieces of windowHalf through pinned
// memory; for less the stops in between cost more than they save. A piece is copied on by
// several processors, of which one alone is slower than the bus.
const (
	windowFrom  = 64 << 10
	windowHalf  = 256 << 10
	windowShare = 64 << 10
)

// Read is t.Floats, faster where t is a large result that lies on a GPU of b.
func (b *Backend) Read(t *Tensor, dst []float32) {
	if len(dst) >= windowFrom && !t.planned() && t.Type() == F32 && t.Contiguous() && int64(len(dst)) <= t.Elems() {
		for _, p := range b.Parts() {
			if w := p.window(t); w != nil {
				p.readThrough(w, t, dst)
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
		b.through = C.inkling_window_new(b.b, 4*windowHalf)
	}
	return b.through
}

// readThrough copies the first values of t to dst: the device fills one half of w while the
// host empties the other.
func (b *Backend) readThrough(w *C.struct_inkling_window, t *Tensor, dst []float32) {
	halves := unsafe.Slice((*float32)(unsafe.Pointer(w.base)), 2*windowHalf)
	fetch := func(half, from int) (n int) {
		if n = min(len(dst)-from, windowHalf); n > 0 {
			C.inkling_window_fetch(w, b.b, t.c(), C.int(half), C.size_t(4*from), C.size_t(4*n))
		}
		return n
	}
	half, have := 0, fetch(0, 0)
	for done := 0; done < len(dst); half = 1 - half {
		C.ggml_backend_synchronize(b.b)
		next := fetch(1-half, done+have)
		copyOn(dst[done:done+have], halves[half*windowHalf:])
		done, have = done+have, next
	}
}

// copyOn copies len(dst) values of src.
func copyOn(dst, src []float32) {
	var shares sync.WaitGroup
	for len(dst) > windowShare {
		to, from := dst[:windowShare], src
		shares.Go(func() { copy(to, from) })
		dst, src = dst[windowShare:], src[windowShare:]
	}
	copy(dst, src)
	shares.Wait()
}
