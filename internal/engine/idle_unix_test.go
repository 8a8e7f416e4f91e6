//go:build unix

package engine

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// TestIdle: an engine without work, or with a task that waits for its caller,
// takes no processor time.
func TestIdle(t *testing.T) {
	e := openWith(t, Options{Parallel: 2})
	g := newGate()
	r := endless(e)
	r.OnToken = g.onToken
	ctx, cancel := context.WithCancel(context.Background())
	stuck := start(ctx, e, r)
	<-g.reached
	for !e.stuck() {
		time.Sleep(time.Millisecond)
	}
	const pause = 300 * time.Millisecond
	before := processorTime(t)
	time.Sleep(pause)
	if spent := processorTime(t) - before; spent > pause/2 {
		t.Errorf("%v of processor time in %v", spent, pause)
	}
	cancel()
	close(g.open)
	<-stuck
}

// processorTime is what the process has taken of all cores.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
