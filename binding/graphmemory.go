package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"math/bits"
	"unsafe"
)

// graphMemory keeps the memory of closed graphs for those that are built next, one piece
// of each power of two. Given back to malloc it would be cut up by what is small and
// stays; each thread that Go builds graphs on has a heap of malloc's besides, which keeps
// the most that it ever held; and mapping it anew costs more than building the graph.
type graphMemory struct {
	spare  [bits.UintSize]unsafe.Pointer // [k]: 1<<k bytes, or nil
	closed bool
}

// graphBytes is what the structs of a graph of n tensors, all of them nodes, take.
func graphBytes(n int) C.size_t {
	return C.size_t(n)*C.ggml_tensor_overhead() + C.ggml_graph_overhead_custom(C.size_t(n), false)
}

// take returns 1<<class bytes, size or more.
func (m *graphMemory) take(size C.size_t) (p unsafe.Pointer, class int) {
	class = bits.Len64(uint64(size) - 1)
	if p = m.spare[class]; p != nil {
		m.spare[class] = nil
		return p, class
	}
	return C.malloc(C.size_t(1) << class), class
}

// give takes back what take returned.
func (m *graphMemory) give(p unsafe.Pointer, class int) {
	if m.closed || m.spare[class] != nil {
		C.free(p)
		return
	}
	m.spare[class] = p
}

// free gives all of it to malloc, and what comes back later too.
func (m *graphMemory) free() {
	m.closed = true
	for class, p := range m.spare {
		C.free(p)
		m.spare[class] = nil
	}
}

// newContext makes a context for tensor structs in memory of at least size bytes.
func newContext(p unsafe.Pointer, size C.size_t) *C.struct_ggml_context {
	return C.ggml_init(C.struct_ggml_init_params{mem_size: size, mem_buffer: p, no_alloc: true})
}
