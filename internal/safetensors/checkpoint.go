package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/inkling-go/inkling/internal/mapped"
)

// Checkpoint is an open checkpoint of one or more mapped files. Its methods may be
// called from several goroutines; Close may not be called while another one runs.
type Checkpoint struct {
	shards []string // file names, sorted
	files  map[string]*mapped.File
	opened map[string]*os.File // the same files, for readers
	names  []string            // shard after shard, in the order of the data
	byName map[string]Tensor
}

// OpenDir opens the checkpoint in dir: the shards of model.safetensors.index.json,
// or else model.safetensors, or else all *.safetensors. Files that the index does
// not list are left alone.
//
// A broken file or index is a [FormatError], an unknown dtype an
// [UnsupportedError], each listed shard that is absent a [MissingShardError] (all
// of them are in the error); a directory without a checkpoint wraps
// fs.ErrNotExist. Each error names the file.
func OpenDir(dir string) (*Checkpoint, error) {
	c, _, err := OpenDirOptional(dir, func(string) bool { return false })
	return c, err
}

// OpenDirOptional is [OpenDir] of a checkpoint that can do without some tensors: a
// shard of the index that is absent is no error if all of its tensors are optional.
// Such shards are returned, and their tensors are not in the checkpoint.
func OpenDirOptional(dir string, optional func(tensor string) bool) (*Checkpoint, []*MissingShardError, error) {
	path := filepath.Join(dir, IndexName)
	ix, err := readIndex(path)
	if err == nil {
		return openIndexed(dir, path, ix, optional)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	shards := []string{"model.safetensors"}
	if _, err := os.Stat(filepath.Join(dir, shards[0])); errors.Is(err, fs.ErrNotExist) {
		if shards, err = listShards(dir); err != nil {
			return nil, nil, err
		}
	}
	c, err := openShards(dir, shards)
	return c, nil, err
}

// listShards returns the names of dir's safetensors files, sorted.
func listShards(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var shards []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".safetensors" && !e.IsDir() {
			shards = append(shards, e.Name())
		}
	}
	if len(shards) == 0 {
		return nil, fmt.Errorf("%s: no .safetensors file: %w", dir, fs.ErrNotExist)
	}
	return shards, nil
}

// OpenFile opens a checkpoint of one file.
func OpenFile(path string) (*Checkpoint, error) {
	return openShards(filepath.Dir(path), []string{filepath.Base(path)})
}

// openIndexed opens the shards that the index at path lists and compares both.
func openIndexed(dir, path string, ix *index, optional func(tensor string) bool) (*Checkpoint, []*MissingShardError, error) {
	required := func(tensor string) bool { return !optional(tensor) }
	tensors := ix.byShard()
	var shards []string
	var absent []*MissingShardError
	var missing []error
	for _, shard := range slices.Sorted(maps.Keys(tensors)) {
		if _, err := os.Stat(filepath.Join(dir, shard)); !errors.Is(err, fs.ErrNotExist) {
			shards = append(shards, shard)
			continue
		}
		e := &MissingShardError{Shard: shard, Tensors: tensors[shard]}
		if slices.ContainsFunc(e.Tensors, required) {
			missing = append(missing, e)
		} else {
			absent = append(absent, e)
		}
	}
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("%s: %w", dir, errors.Join(missing...))
	}
	ix.drop(absent)
	c, err := openShards(dir, shards)
	if err != nil {
		return nil, nil, err
	}
	if err := c.matches(ix); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, absent, nil
}

// matches checks that the index and the shards name the same tensors.
func (c *Checkpoint) matches(ix *index) error {
	for _, name := range ix.names {
		t, ok := c.byName[name]
		if want := ix.shardOf[name]; !ok || t.Shard != want {
			return formatErrorf(0, "tensor %q is not in its shard %s", name, want)
		}
	}
	for _, name := range c.names {
		if _, ok := ix.shardOf[name]; !ok {
			return formatErrorf(0, "tensor %q of shard %s is not in the index", name, c.byName[name].Shard)
		}
	}
	return nil
}

// openShards opens the files called shards in dir.
func openShards(dir string, shards []string) (*Checkpoint, error) {
	c := &Checkpoint{
		shards: shards,
		files:  make(map[string]*mapped.File),
		opened: make(map[string]*os.File),
		byName: make(map[string]Tensor),
	}
	for _, shard := range shards {
		if err := c.add(filepath.Join(dir, shard), shard); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// add opens one shard.
func (c *Checkpoint) add(path, shard string) error {
	m, err := mapped.Open(path)
	if err != nil {
		return err
	}
	c.files[shard] = m
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	c.opened[shard] = f
	tensors, err := parseHeader(shard, m.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.Sequential()
	for _, t := range tensors {
		if other, dup := c.byName[t.Name]; dup {
			return fmt.Errorf("%s: %w", path, formatErrorf(0, "tensor %q is also in %s", t.Name, other.Shard))
		}
		c.byName[t.Name] = t
		c.names = append(c.names, t.Name)
	}
	return nil
}

// Close unmaps and closes the files. Slices from [Checkpoint.Bytes] and readers are
// invalid afterwards. A second Close does nothing.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, m := range c.files {
		errs = append(errs, m.Close())
	}
	for _, f := range c.opened {
		errs = append(errs, f.Close())
	}
	c.opened = nil
	return errors.Join(errs...)
}

// Shards returns the names of the files, sorted.
func (c *Checkpoint) Shards() []string { return slices.Clone(c.shards) }

// Names returns the names of all tensors in file order: shard after shard, within
// a shard by the place of the data.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Tensor returns the tensor called name.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Bytes returns the data of a tensor of this checkpoint, Size bytes of the mapping,
// little-endian and not aligned. It must not be written to. It is nil after Close
// and for a tensor of another checkpoint.
func (c *Checkpoint) Bytes(t Tensor) []byte {
	m := c.file(t)
	if m == nil {
		return nil
	}
	return m.Bytes()[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// Reader returns a reader of the data of a tensor of this checkpoint, nil for a tensor
// of another one. Reading from the file costs a copy and is still several times faster
// than touching each page of the mapping for the first time, which is an interrupt.
func (c *Checkpoint) Reader(t Tensor) *io.SectionReader {
	f := c.opened[t.Shard]
	if f == nil || c.file(t) == nil {
		return nil
	}
	return io.NewSectionReader(f, t.Offset, t.Size)
}

// Prefetch tells the system that the tensor's data is needed soon.
func (c *Checkpoint) Prefetch(t Tensor) {
	if m := c.file(t); m != nil {
		m.Prefetch(t.Offset, t.Size)
	}
}

// Release tells the system that the tensor's data is not needed soon, which takes
// its pages out of the process's resident memory. Its bytes stay readable.
func (c *Checkpoint) Release(t Tensor) {
	if m := c.file(t); m != nil {
		m.Release(t.Offset, t.Size)
	}
}

// file returns the mapping that holds all of t, nil if there is none.
func (c *Checkpoint) file(t Tensor) *mapped.File {
	m := c.files[t.Shard]
	if m == nil {
		return nil
	}
	size := int64(len(m.Bytes()))
	if t.Offset < 0 || t.Size < 0 || t.Offset > size || t.Size > size-t.Offset {
		return nil
	}
	return m
}
