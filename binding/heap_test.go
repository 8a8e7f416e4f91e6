//go:build cgo

package binding_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestHeapReturned: what graphs took on many threads is given back when they are
// closed, and not kept by the heap of every thread.
func TestHeapReturned(t *testing.T) {
	if _, ok := binding.ReadHeap(); !ok {
		t.Skip("this C library does not say what its heap holds")
	}
	const child = "INKLING_TEST_HEAP_CHILD"
	if os.Getenv(child) == "" { // other tests have left heaps of threads behind
		cmd := exec.Command(os.Args[0], "-test.run=^TestHeapReturned$", "-test.v")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "MALLOC_") || strings.HasPrefix(v, "GLIBC_TUNABLES=")
		}), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return
	}
	be := cpu(t)
	const (
		threads = 8
		nodes   = 10000 // some 4 MB of tensor structs
	)
	for range 3 { // glibc by itself maps no blocks of this size any more then
		be.NewGraph(nodes).Close()
	}
	before, _ := binding.ReadHeap()
	for range threads {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and the thread ends with the goroutine
			g := be.NewGraph(nodes)
			if h, _ := binding.ReadHeap(); h.Used < before.Used+nodes*300 {
				t.Errorf("with a graph of %d nodes %d bytes are in use, %d before", nodes, h.Used, before.Used)
			}
			g.Close()
		}()
		<-done
	}
	after, _ := binding.ReadHeap()
	if kept := after.Held - after.Used; kept > 2<<20 {
		t.Errorf("the heap keeps %d bytes that are not in use", kept)
	}
}
