//go:build cgo

package binding_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// inOwnHeap reports whether the test is a process of its own, whose heap no other test
// has left traces in and no setting of the user changes. If not it runs it as one.
func inOwnHeap(t *testing.T) bool {
	t.Helper()
	if _, ok := binding.ReadHeap(); !ok {
		t.Skip("this C library does not say what its heap holds")
	}
	const child = "INKLING_TEST_HEAP_CHILD"
	if os.Getenv(child) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MALLOC_") || strings.HasPrefix(v, "GLIBC_TUNABLES=")
	}), child+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return false
}

// onThreads runs f in turns on n threads, all of which live until the last has ended.
func onThreads(n int, f func(i int)) {
	var alive sync.WaitGroup
	end := make(chan struct{})
	for i := range n {
		done := make(chan struct{})
		alive.Go(func() {
			runtime.LockOSThread() // of this goroutine alone
			f(i)
			close(done)
			<-end
		})
		<-done
	}
	close(end)
	alive.Wait()
}

// TestHeapReturnsBlocks: what threads had of C's heap is given back when it is freed.
func TestHeapReturnsBlocks(t *testing.T) {
	if !inOwnHeap(t) {
		return
	}
	const threads, size = 16, 4 << 20
	be := cpu(t)
	before, _ := binding.ReadHeap()
	onThreads(threads, func(int) {
		m := be.NewMemory(1)
		defer m.Close()
		if _, err := m.New("x", binding.F32, size/4); err != nil {
			t.Error(err)
		}
		if err := m.Alloc(); err != nil {
			t.Error(err)
		}
		if h, _ := binding.ReadHeap(); h.Used < before.Used+size {
			t.Errorf("with a tensor of %d bytes %d are in use, %d before", size, h.Used, before.Used)
		}
	})
	after, _ := binding.ReadHeap()
	if kept := after.Held - after.Used; kept > threads/4*size {
		t.Errorf("%d bytes are held and not in use, as of %d tensors or more of %d", kept, threads/4, threads)
	}
}
