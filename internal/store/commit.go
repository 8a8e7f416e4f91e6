package store

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// commit gives a model its name, in place of the one that may have it. Its files
// have been checked, and their blobs are held.
func (s *Store) commit(ctx context.Context, n Name, m *manifest) (*Model, error) {
	m.Version, m.Name, m.Modified = manifestVersion, n.String(), time.Now().UTC().Truncate(time.Second)
	unlock, err := s.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.put(n, m); err != nil {
		return nil, err
	}
	return s.model(m)
}

// put links the files and writes the manifest, with the store's lock held
// exclusively.
func (s *Store) put(n Name, m *manifest) error {
	old, err := readManifest(s.manifestPath(n), n.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		old = nil // damaged, and about to be replaced
	}
	if err := s.link(n, m); err != nil {
		return err
	}
	if err := s.writeManifest(n, m); err != nil {
		return err
	}
	return s.release(n, old)
}
