package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/machine"
)

// The store is the user's own: models may be gated, system messages private.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// partialSuffix ends the names of files that are not complete.
const partialSuffix = ".partial"

// Store is a folder of models. Its methods may be called from any goroutine, and
// from several processes at once.
type Store struct {
	dir string
	hub hub

	free func(dir string) (bytes int64, known bool) // space on the disk
}

// Open returns the store in a folder; "" means the one that the environment
// variable INKLING_HOME names, or else .inkling in the user's home. The folder is
// created when something is put into it.
func Open(dir string) (*Store, error) {
	if dir = cmp.Or(dir, os.Getenv("INKLING_HOME")); dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("no folder for models: %w; set INKLING_HOME", err)
		}
		dir = filepath.Join(home, ".inkling")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("the folder of models, %s, is a file; set INKLING_HOME to a folder", dir)
	}
	return &Store{dir: dir, hub: hubFromEnvironment(), free: machine.FreeSpace}, nil
}

// Dir is the folder of the store.
func (s *Store) Dir() string { return s.dir }

func (s *Store) mkdir(dir string) error { return os.MkdirAll(dir, dirMode) }

func (s *Store) manifestPath(n Name) string { return filepath.Join(s.dir, "manifests", n.path()) }

// Resolve finds a model by its name and sees to it that its files are in place. A
// name that the store does not have is a [NotFoundError].
func (s *Store) Resolve(name string) (*Model, error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	m, err := s.manifest(n)
	if err != nil {
		return nil, err
	}
	if err := s.linked(n, m); err == nil {
		return s.model(m)
	}
	unlock, err := s.lock(context.Background(), false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m, err = s.manifest(n); err != nil { // it may have been replaced meanwhile
		return nil, err
	}
	if err := s.link(n, m); err != nil {
		return nil, err
	}
	return s.model(m)
}

// manifest reads the manifest of a model.
func (s *Store) manifest(n Name) (*manifest, error) {
	m, err := readManifest(s.manifestPath(n), n.path())
	if errors.Is(err, fs.ErrNotExist) {
		near, err := s.near(n)
		if err != nil {
			return nil, err
		}
		return nil, &NotFoundError{Name: n.String(), Near: near}
	}
	return m, err
}

// model is what a manifest says, with paths.
func (s *Store) model(c *manifest) (*Model, error) {
	digest, err := c.digest()
	if err != nil {
		return nil, err
	}
	n, err := ParseName(c.Name)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Name: n.String(), Params: c.Params, System: c.System, Template: c.Template, Messages: c.Messages, License: c.License,
		Digest: digest, Modified: c.Modified, Source: c.Source, Details: c.Details, Files: c.Files,
	}
	dir := s.linkDir(n, m.ID())
	for _, f := range c.Files {
		m.Size += f.Size
		path := map[Role]*string{RoleModel: &m.Model, RoleMMProj: &m.MMProj, RoleMTP: &m.MTP}[f.Role]
		if *path == "" {
			*path = filepath.Join(dir, f.Name)
		}
	}
	return m, nil
}

// List returns all models, the newest first. With an error come those that are
// sound.
func (s *Store) List() ([]*Model, error) {
	var models []*Model
	bad := s.each(func(_ Name, c *manifest) error {
		m, err := s.model(c)
		if err == nil {
			models = append(models, m)
		}
		return err
	})
	slices.SortStableFunc(models, func(a, b *Model) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Name, b.Name))
	})
	return models, bad
}

// each calls do with every manifest, in order of the names, and joins the errors
// of those that cannot be read.
func (s *Store) each(do func(Name, *manifest) error) error {
	root := filepath.Join(s.dir, "manifests")
	var bad []error
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // no store yet, or a model that was just removed
			return nil
		}
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		place, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		m, err := readManifest(path, place)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			var n Name
			if n, err = ParseName(m.Name); err == nil {
				err = do(n, m)
			}
		}
		if err != nil {
			bad = append(bad, err)
		}
		return nil
	})
	return errors.Join(append(bad, err)...)
}

// Delete removes a model, and the files that no other model shares with it.
func (s *Store) Delete(name string) error {
	n, err := ParseName(name)
	if err != nil {
		return err
	}
	unlock, err := s.lock(context.Background(), true)
	if err != nil {
		return err
	}
	defer unlock()
	path := s.manifestPath(n)
	old, err := readManifest(path, n.path())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.manifest(n) // says which names are near
		return err
	}
	// A manifest that cannot be read is removed all the same: nothing else would.
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	s.removeEmpty("manifests", n)
	return s.release(n, old)
}

// Copy gives a model a second name, in place of the model that may have it. The
// files are shared.
func (s *Store) Copy(from, to string) error {
	src, err := ParseName(from)
	if err != nil {
		return err
	}
	dst, err := ParseName(to)
	if err != nil {
		return err
	}
	if src.path() == dst.path() {
		return fmt.Errorf("%s and %s are the same name", from, to)
	}
	unlock, err := s.lock(context.Background(), true)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.manifest(src)
	if err != nil {
		return err
	}
	m.Name = dst.String()
	return s.put(dst, m)
}
