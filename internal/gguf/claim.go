package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrBusy is wrapped by the error for a file that another process is writing.
var ErrBusy = errors.New("another process is writing it")

// Claim opens a partial file, or a file that belongs to one, for one writer at a
// time: created empty, or as it is. The lock goes with the file when it is
// closed, by whatever end the process meets. Give the file its name, or remove
// it, before that.
func Claim(path string, create bool) (*os.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	for {
		f, err := os.OpenFile(path, flags, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		// Its last owner may have given it its name, or removed it, before we had the lock.
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			if create {
				err = f.Truncate(0)
			}
			if err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.Close()
			return nil, err
		}
		f.Close()
	}
}
