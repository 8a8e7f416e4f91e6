//go:build cgo

package binding_test

import (
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestGraphMemory: graphs that are built in turns on many threads, some large and some
// small, take the memory of those before, and Close of the backend gives it back.
func TestGraphMemory(t *testing.T) {
	if !inOwnHeap(t) {
		return
	}
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	const (
		threads = 16
		large   = 10000       // tensors
		size    = large * 300 // bytes that their structs have at least
		most    = 20 << 20    // pieces of 8, 4 and less MiB, and what malloc takes for a thread
	)
	before, _ := binding.ReadHeap()
	onThreads(threads, func(i int) {
		g := be.NewGraph(large - 100*i)
		if h, _ := binding.ReadHeap(); h.Used < before.Used+size {
			t.Errorf("with a graph of %d tensors %d bytes are in use, %d before", large-100*i, h.Used, before.Used)
		}
		g.Close()
		be.NewGraph(100).Close()
	})
	after, _ := binding.ReadHeap()
	if grown := after.Held - before.Held; grown > most {
		t.Errorf("after graphs on %d threads %d bytes more are held, want %d at most", threads, grown, most)
	}
	late := be.NewGraph(large)
	be.Close()
	late.Close()
	if left, _ := binding.ReadHeap(); left.Used-before.Used > size/2 {
		t.Errorf("after the backend was closed %d bytes more are in use", left.Used-before.Used)
	}
}
