package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// linkDir is where the files of a model have their names. The ID keeps the files
// of a model apart from those of the one that it replaced, which another process
// may be about to open.
func (s *Store) linkDir(n Name, id string) string {
	return filepath.Join(s.dir, "models", n.path(), id)
}

// dirOf is linkDir of a manifest.
func (s *Store) dirOf(n Name, m *manifest) (string, error) {
	digest, err := m.digest()
	if err != nil {
		return "", err
	}
	return s.linkDir(n, (&Model{Digest: digest}).ID()), nil
}

// linked checks that every file of a model has its name.
func (s *Store) linked(n Name, m *manifest) error {
	dir, err := s.dirOf(n, m)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		blob, err := s.blob(f)
		if err != nil {
			return err
		}
		there, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		if !os.SameFile(blob, there) {
			return fmt.Errorf("%s is not a link to %s", filepath.Join(dir, f.Name), f.Digest)
		}
	}
	return nil
}

// blob checks that the content of a file is in the store.
func (s *Store) blob(f File) (fs.FileInfo, error) {
	st, err := os.Stat(s.blobPath(f.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: its content %s is missing in the store; pull or create the model again", f.Name, f.Digest)
	}
	if err == nil && st.Size() != f.Size {
		err = fmt.Errorf("%s: %s has %d bytes, want %d; remove it, and pull or create the model again", f.Name, s.blobPath(f.Digest), st.Size(), f.Size)
	}
	return st, err
}

// link gives the files of a model their names, with the store's lock held. Other
// processes may do the same at the same time.
func (s *Store) link(n Name, m *manifest) error {
	dir, err := s.dirOf(n, m)
	if err != nil {
		return err
	}
	if err := s.mkdir(dir); err != nil {
		return err
	}
	for _, f := range m.Files {
		blob, err := s.blob(f)
		if err != nil {
			return err
		}
		if err := linkFile(s.blobPath(f.Digest), filepath.Join(dir, f.Name), blob); err != nil {
			return err
		}
	}
	return nil
}

// linkFile makes a hard link, or a symbolic one where the disk has no hard links.
func linkFile(blob, path string, want fs.FileInfo) error {
	for range 2 {
		err := os.Link(blob, path)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Symlink(blob, path)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(there, want) {
			return nil
		}
		if err := removeIfThere(path); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: another program puts files there", path)
}

// removeEmpty removes the folders above a name's place that hold nothing more.
func (s *Store) removeEmpty(below string, n Name) {
	place := filepath.Dir(n.path())
	for place != "." && os.Remove(filepath.Join(s.dir, below, place)) == nil {
		place = filepath.Dir(place)
	}
}

// unlink removes the links of a model, of all that had its name if keep is "", or
// all but those of one ID.
func (s *Store) unlink(n Name, keep string) error {
	dir := filepath.Join(s.dir, "models", n.path())
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if keep != "" && strings.EqualFold(e.Name(), keep) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if keep == "" && os.Remove(dir) == nil {
		s.removeEmpty("models", n)
	}
	return nil
}
