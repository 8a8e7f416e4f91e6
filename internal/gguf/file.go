package gguf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/internal/mapped"
)

// File is an open GGUF model: one file, or all the parts of a split one.
// Its methods may be called from several goroutines; Close may not be called
// while another one runs.
type File struct {
	path    string
	parts   []*mapped.File
	keys    []string
	values  map[string]value
	tensors []TensorInfo
	byName  map[string]int // index into tensors
}

// Open maps the file at path read-only and checks its header; the data of the
// tensors is not touched. If path is one part of a split model, all parts are
// opened. A broken file is a [FormatError], a file of another version, byte order
// or tensor type an [UnsupportedError], a missing part wraps fs.ErrNotExist; each
// error names the file.
func Open(path string) (*File, error) {
	m, h, err := openPart(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, parts: []*mapped.File{m}}
	s, err := h.split(path)
	if err == nil && s.count > 1 {
		h, err = f.openSplit(s, h)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.keys, f.values, f.tensors = h.keys, h.values, h.tensors
	f.byName = make(map[string]int, len(f.tensors))
	for i, t := range f.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

// openPart maps one file and reads its header.
func openPart(path string) (*mapped.File, *header, error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(m.Bytes())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	return m, h, nil
}

// Close unmaps the file. Slices from [File.Bytes] and [File.Parts] are invalid
// afterwards; keys and values stay valid. A second Close does nothing.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.parts {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Path returns the path given to [Open].
func (f *File) Path() string { return f.path }

// Tensors returns the tensors in file order, part after part.
func (f *File) Tensors() []TensorInfo { return slices.Clone(f.tensors) }

// Tensor returns the tensor called name.
func (f *File) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return f.tensors[i], true
}

// Bytes returns the data of a tensor of this file, Size bytes of the mapping. It
// must not be written to. It is nil after Close and for a tensor of another file.
func (f *File) Bytes(t TensorInfo) []byte {
	m := f.part(t)
	if m == nil {
		return nil
	}
	return m.Bytes()[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// Prefetch tells the system that the tensor's data is needed soon.
func (f *File) Prefetch(t TensorInfo) {
	if m := f.part(t); m != nil {
		m.Prefetch(t.Offset, t.Size)
	}
}

// Release tells the system that the tensor's data is not needed soon, which takes
// its pages out of the process's resident memory. Its bytes stay readable.
func (f *File) Release(t TensorInfo) {
	if m := f.part(t); m != nil {
		m.Release(t.Offset, t.Size)
	}
}

// part returns the mapping that holds all of t, nil if there is none.
func (f *File) part(t TensorInfo) *mapped.File {
	if t.Part < 0 || t.Part >= len(f.parts) {
		return nil
	}
	m := f.parts[t.Part]
	size := int64(len(m.Bytes()))
	if t.Offset < 0 || t.Size < 0 || t.Offset > size || t.Size > size-t.Offset {
		return nil
	}
	return m
}

// Parts returns the mapping of each file, in order; one for a model that is not split.
func (f *File) Parts() [][]byte {
	out := make([][]byte, len(f.parts))
	for i, m := range f.parts {
		out[i] = m.Bytes()
	}
	return out
}
