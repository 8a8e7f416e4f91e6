package binding

// #include "heap.h"
import "C"

func init() { C.inkling_heap_return_blocks() }

// Heap is C's heap, which graphs, caches and the memory of results are taken from, but
// not mapped weights.
type Heap struct {
	Held int64 // bytes that malloc has from the system
	Used int64 // of them, what is allocated now
}

// ReadHeap looks at C's heap; it may be called from any goroutine. ok is false where the
// C library does not say, as outside of glibc.
func ReadHeap() (h Heap, ok bool) {
	var held, used C.size_t
	if !C.inkling_heap_bytes(&held, &used) {
		return Heap{}, false
	}
	return Heap{Held: int64(held), Used: int64(used)}, true
}
