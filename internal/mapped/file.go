// Package mapped maps whole files read-only into memory.
//
// The weight formats (GGUF, safetensors) are read through it: a tensor is a
// slice of the mapping, nothing is copied, and a streaming reader gives pages
// back with [File.Release] so that its resident memory stays that of one tensor.
package mapped

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	mmap "github.com/edsrzf/mmap-go"
)

// ErrNotRegular reports a path that is no regular file (a folder, a device, a pipe).
var ErrNotRegular = errors.New("not a regular file")

// File is a read-only mapping of a file as long as it was at [Open].
// Truncating the file under the mapping makes later reads fault; formats
// therefore check every length against the mapping when they open it.
type File struct {
	path string
	data mmap.MMap // nil for an empty file, which no system maps, and after Close
}

// Open maps the file at path. Links are followed.
func Open(path string) (*File, error) {
	// Before opening: a pipe would wait for its other end.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "map", Path: path, Err: ErrNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the operation and the path
	}
	defer f.Close() // a mapping outlives its descriptor

	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "map", Path: path, Err: ErrNotRegular}
	}
	size := st.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("map %s: %d bytes do not fit the address space", path, size)
	}
	if size == 0 {
		return &File{path: path}, nil
	}
	data, err := mmap.MapRegion(f, int(size), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	return &File{path: path, data: data}, nil
}

// Path returns the path given to [Open].
func (f *File) Path() string { return f.path }

// Bytes returns the mapping. It must not be written to, nor used after [File.Close].
func (f *File) Bytes() []byte { return f.data }

// Close unmaps the file. Every slice of [File.Bytes] is invalid afterwards.
// A second Close does nothing.
func (f *File) Close() error {
	if f.data == nil {
		return nil
	}
	if err := f.data.Unmap(); err != nil {
		return &fs.PathError{Op: "unmap", Path: f.path, Err: err}
	}
	return nil
}

// Prefetch tells the system that bytes [off, off+n) are needed soon.
func (f *File) Prefetch(off, n int64) { f.advise(off, n, willNeed) }

// Release tells the system that bytes [off, off+n) are not needed soon: their
// pages leave this process's resident memory. Reading them again is allowed and
// goes back to the page cache or the disk.
func (f *File) Release(off, n int64) { f.advise(off, n, dontNeed) }

// Sequential tells the system that the file is read from start to end.
func (f *File) Sequential() { f.advise(0, int64(len(f.data)), sequential) }

type advice int

const (
	willNeed advice = iota
	dontNeed
	sequential
)

// advise gives advice on the pages of [off, off+n), clipped to the file. Advice never changes
// what a read returns, so errors of the system are dropped.
func (f *File) advise(off, n int64, a advice) {
	size := int64(len(f.data))
	if off < 0 || n <= 0 || off >= size {
		return
	}
	end := off + min(n, size-off)
	page := int64(os.Getpagesize())
	start := off / page * page
	if a == dontNeed {
		// A page that is shared with a neighbouring tensor stays.
		start = (off + page - 1) / page * page
		if end < size {
			end = end / page * page
		}
	}
	if start >= end {
		return
	}
	madvise(f.data[start:end], a)
}
