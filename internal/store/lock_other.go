//go:build !unix || solaris || aix

package store

import (
	"errors"
	"os"
)

// tryLock fails: without file locks processes would break each other's stores.
func tryLock(f *os.File, _ bool) (bool, error) {
	return false, &os.PathError{Op: "lock", Path: f.Name(), Err: errors.ErrUnsupported}
}
