package media

import (
	"runtime"
	"sync"
)

// inParts calls do for parts of 0..n-1 that lie side by side, on at most GOMAXPROCS
// goroutines, and returns when all have ended. No part is smaller than least, which is
// worth a goroutine: less than two of them stay on the caller's.
func inParts(n, least int, do func(first, end int)) {
	parts := max(min(runtime.GOMAXPROCS(0), n/least), 1)
	var others sync.WaitGroup
	for i := 1; i < parts; i++ {
		others.Go(func() { do(i*n/parts, (i+1)*n/parts) })
	}
	do(0, n/parts)
	others.Wait()
}
