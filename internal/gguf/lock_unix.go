//go:build unix && !solaris && !aix

package gguf

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file's lock, or fails with ErrBusy.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}
