package store

import "fmt"

// SpaceError is a disk without room for what is to be put into the store.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: %d bytes are needed, the disk has %d free; rm and gc make room, INKLING_HOME names another folder", e.Dir, e.Need, e.Free)
}

// checkSpace refuses to begin what the disk has no room for. The store's folder is
// there.
func (s *Store) checkSpace(need int64) error {
	if free, ok := s.free(s.dir); ok && need > free {
		return &SpaceError{s.dir, need, free}
	}
	return nil
}
