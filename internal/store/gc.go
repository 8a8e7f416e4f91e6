package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// GCOptions say what a collection removes.
type GCOptions struct {
	DryRun bool
	// Partial is how long a file that is being fetched must have been left alone
	// before it is given up; until then a pull goes on with it.
	Partial time.Duration
}

// Removed is one file or folder that a collection removed, or would.
type Removed struct {
	Path  string
	Bytes int64 // that the disk gets back
}

// GC removes what no model refers to and no process works on: blobs, what is left
// of broken pulls and of killed processes, and stale links. If any manifest cannot
// be read it removes nothing, since the files of that model would go.
func (s *Store) GC(ctx context.Context, o GCOptions) ([]Removed, error) {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := s.lock(ctx, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c := &collection{s: s, o: o, blobs: map[string]bool{}, links: map[string]bool{}}
	if err := s.each(c.mark); err != nil {
		return nil, fmt.Errorf("nothing is removed: %w; rm removes the model", err)
	}
	for _, sweep := range []func(context.Context) error{c.sweepLinks, c.sweepBlobs, c.sweepWork, c.sweepManifests} {
		if err := sweep(ctx); err != nil {
			return c.removed, err
		}
	}
	return c.removed, nil
}

// collection is one run of GC, with the store's lock held exclusively.
type collection struct {
	s       *Store
	o       GCOptions
	blobs   map[string]bool // file names that manifests refer to
	links   map[string]bool // folders of the models
	removed []Removed
}

func (c *collection) mark(n Name, m *manifest) error {
	dir, err := c.s.dirOf(n, m)
	if err != nil {
		return err
	}
	c.links[dir] = true
	for _, f := range m.Files {
		c.blobs[filepath.Base(c.s.blobPath(f.Digest))] = true
	}
	return nil
}

func (c *collection) sweepBlobs(ctx context.Context) error {
	return eachEntry(ctx, filepath.Join(c.s.dir, "blobs"), func(path string, st fs.FileInfo) error {
		name, age := filepath.Base(path), time.Since(st.ModTime())
		switch {
		case c.blobs[name], strings.HasSuffix(name, partialSuffix) && age < c.o.Partial:
			return nil
		case strings.HasPrefix(name, "."): // a journal that is being written, or was
			if age < journalAge {
				return nil
			}
		case strings.HasSuffix(name, journalSuffix): // goes with its partial file
			if _, err := os.Stat(strings.TrimSuffix(path, journalSuffix) + partialSuffix); err == nil {
				return nil
			}
		}
		gone, err := c.remove(path, st.Size())
		if err != nil || !gone || c.o.DryRun || !strings.HasSuffix(name, partialSuffix) {
			return err
		}
		return removeIfThere(journalPath(path))
	})
}

// journalAge is how old a journal without its name must be for its writer to be
// gone: that takes no time.
const journalAge = time.Minute

// sweepWork removes the folders of processes that are gone.
func (c *collection) sweepWork(ctx context.Context) error {
	return eachEntry(ctx, filepath.Join(c.s.dir, "work"), func(path string, _ fs.FileInfo) error {
		n, err := treeSize(path)
		if err != nil {
			return err
		}
		_, err = c.remove(path, n)
		return err
	})
}

// sweepLinks removes folders of links that no manifest asks for. The disk gets
// nothing back by that.
func (c *collection) sweepLinks(ctx context.Context) error {
	return c.sweepTree(ctx, filepath.Join(c.s.dir, "models"), 5)
}

// sweepTree goes down to folders of links and removes those that are stale, and
// folders above them that are empty then.
func (c *collection) sweepTree(ctx context.Context, dir string, depth int) error {
	if c.links[dir] {
		return nil
	}
	if depth == 0 {
		c.removed = append(c.removed, Removed{dir, 0})
		if c.o.DryRun {
			return nil
		}
		return os.RemoveAll(dir)
	}
	err := eachEntry(ctx, dir, func(path string, st fs.FileInfo) error {
		if !st.IsDir() {
			return nil // not ours
		}
		return c.sweepTree(ctx, path, depth-1)
	})
	if err == nil && !c.o.DryRun {
		_ = os.Remove(dir) // unless there are other models
	}
	return err
}

// sweepManifests removes what is left of manifests whose writer was killed. The
// lock says that nobody is writing one.
func (c *collection) sweepManifests(ctx context.Context) error {
	root := filepath.Join(c.s.dir, "manifests")
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), ".") {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		_, err = c.remove(path, st.Size())
		return err
	})
}

// remove removes a file or a folder unless a process holds its lock, and reports
// whether it did, or would.
func (c *collection) remove(path string, bytes int64) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if free, err := tryLock(f, true); err != nil || !free {
		return false, err
	}
	c.removed = append(c.removed, Removed{path, bytes})
	if c.o.DryRun {
		return true, nil
	}
	return true, os.RemoveAll(path)
}

// eachEntry calls do with what is in a folder, which need not exist.
func eachEntry(ctx context.Context, dir string, do func(path string, st fs.FileInfo) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = do(filepath.Join(dir, e.Name()), st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func treeSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err == nil {
			n += st.Size()
		}
		return err
	})
	return n, err
}

// release removes the links of a model that is gone or has been replaced, and
// those of its files that no other model has. The store's lock is held
// exclusively. The store is consistent with or without it.
func (s *Store) release(n Name, old *manifest) error {
	c := &collection{s: s, blobs: map[string]bool{}, links: map[string]bool{}}
	if err := s.each(c.mark); err != nil {
		return nil // GC tells about it
	}
	keep := ""
	for dir := range c.links {
		if filepath.Dir(dir) == filepath.Join(s.dir, "models", n.path()) {
			keep = filepath.Base(dir)
		}
	}
	if err := s.unlink(n, keep); err != nil || old == nil {
		return err
	}
	return c.removeUnmarked(old.Files)
}

// discard removes the blobs of files unless a model or another command has them.
func (s *Store) discard(files []File) error {
	unlock, err := s.lock(context.Background(), true)
	if err != nil {
		return err
	}
	defer unlock()
	c := &collection{s: s, blobs: map[string]bool{}, links: map[string]bool{}}
	if err := s.each(c.mark); err != nil {
		return nil // GC tells about it
	}
	return c.removeUnmarked(files)
}

// removeUnmarked removes the blobs of files but for those that models have.
func (c *collection) removeUnmarked(files []File) error {
	for _, f := range files {
		path := c.s.blobPath(f.Digest)
		if c.blobs[filepath.Base(path)] {
			continue
		}
		if _, err := c.remove(path, f.Size); err != nil {
			return err
		}
	}
	return nil
}
