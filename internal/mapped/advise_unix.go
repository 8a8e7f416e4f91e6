//go:build linux || darwin || freebsd || netbsd || openbsd

package mapped

import "golang.org/x/sys/unix"

// madvise passes a on to the system. b starts on a page boundary.
func madvise(b []byte, a advice) {
	flag := unix.MADV_NORMAL
	switch a {
	case willNeed:
		flag = unix.MADV_WILLNEED
	case dontNeed:
		flag = unix.MADV_DONTNEED
	case sequential:
		flag = unix.MADV_SEQUENTIAL
	}
	_ = unix.Madvise(b, flag) // a hint: see File.advise
}
