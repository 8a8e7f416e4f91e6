//go:build !linux

package bench

// threadTime is the processor time of the calling thread, which only Linux gives.
func threadTime() (seconds float64, ok bool) { return 0, false }
