package bench

import "golang.org/x/sys/unix"

// threadTime is the processor time of the calling thread in seconds.
func threadTime() (seconds float64, ok bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0, false
	}
	return float64(t.Nano()) / 1e9, true
}
