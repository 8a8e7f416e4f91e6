//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package mapped

// madvise does nothing: the system has no such call.
func madvise([]byte, advice) {}
