package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/inkling-go/inkling/internal/machine"
)

// SpaceError reports a disk without room for the outputs: found before anything is
// written, or when it became full.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes: still to be written, and free for them
	Err        error // of the write that failed; nil if none was tried
}

// Error returns the folder and both numbers.
func (e *SpaceError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: the disk is full: %d bytes are still to be written, %d are free", e.Dir, e.Need, e.Free)
	}
	return fmt.Sprintf("%s: the outputs take %d bytes, the disk has %d free", e.Dir, e.Need, e.Free)
}

// Unwrap returns the error of the write.
func (e *SpaceError) Unwrap() error { return e.Err }

// checkSpace refuses to begin what the disk of dir has no room for. The outputs of a
// run that is continued are there already.
func checkSpace(dir string, need int64, resumed bool) error {
	if resumed {
		return nil
	}
	d, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for { // the folder need not exist yet
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		d = filepath.Dir(d)
	}
	if free, ok := machine.FreeSpace(d); ok && need > free {
		return &SpaceError{Dir: dir, Need: need, Free: free}
	}
	return nil
}

// outOfSpace makes a SpaceError of a write that found the disk full, or the user's
// share of it used up. It is to be called while the incomplete files are there.
func (w *writing) outOfSpace(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	dir := filepath.Dir(w.outs[0].parts[0].path)
	free, _ := machine.FreeSpace(dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	return &SpaceError{Dir: dir, Need: w.progress.Total - w.progress.Done, Free: free, Err: err}
}
