package convert

import (
	"fmt"
	"os"
	"path/filepath"
)

// SpaceError reports a disk without room for the outputs.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

// Error returns the folder and both numbers.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: the outputs take %d bytes, the disk has %d free", e.Dir, e.Need, e.Free)
}

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
	if free, ok := freeSpace(d); ok && need > free {
		return &SpaceError{dir, need, free}
	}
	return nil
}
