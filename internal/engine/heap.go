package engine

import "github.com/inkling-go/inkling/binding"

// Heap is C's heap, of all engines of the process; ok is false where the C library does
// not say. It may be called from any goroutine.
func Heap() (h binding.Heap, ok bool) { return binding.ReadHeap() }
