package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
)

// partialSuffix ends the name of a file that is being written.
const partialSuffix = ".partial"

// Writer writes one GGUF file, version 3, alignment 32. The order of calls is
// Set and AddTensor as often as needed, WriteTensor once per tensor in the order
// of AddTensor, Commit. The data streams through: a Writer holds the header and
// one buffer, whatever the size of the tensors.
//
// The file appears under its name only in Commit; until then it is path.partial.
// Call Abort on every other way out, which is safe to defer:
//
//	w, err := gguf.Create(path)
//	if err != nil { ... }
//	defer w.Abort()
//
// Data that does not come in the order of the tensors is written by Begin and
// WriteAt instead of WriteTensor.
//
// An error of WriteTensor or of the file is final: all later calls but Abort
// return it. A Writer is not safe for concurrent use, but for WriteAt and ReadAt.
type Writer struct {
	path string
	file *os.File // nil after Commit and Abort
	buf  *bufio.Writer
	err  error // final

	pairs    []byte // encoded
	nPairs   int
	seen     map[string]bool // keys
	tensors  []TensorInfo    // Offset is from the start of the data
	names    map[string]bool
	dataSize int64 // of all tensors, with padding
	written  int   // tensors whose data is in the file
	started  bool  // header is in the file

	dataStart int64          // offset of the data, once started
	counts    []atomic.Int64 // bytes written of each tensor, after Begin
}

// errClosed is what a Writer returns after Commit or Abort.
var errClosed = errors.New("writer is closed")

// Create starts a file, truncating what an earlier attempt left in path.partial.
// An existing file at path stays until Commit replaces it. It is an error if
// another process is at work on the same file.
func Create(path string) (*Writer, error) {
	f, err := Claim(path+partialSuffix, true)
	if err != nil {
		return nil, err
	}
	return newWriter(path, f), nil
}

func newWriter(path string, f *os.File) *Writer {
	return &Writer{
		path:  path,
		file:  f,
		buf:   bufio.NewWriterSize(f, 1<<20),
		seen:  make(map[string]bool),
		names: make(map[string]bool),
	}
}

// ready returns the final error, or that the header is already in the file.
func (w *Writer) ready() error {
	switch {
	case w.err != nil:
		return w.err
	case w.file == nil:
		return errClosed
	case w.started:
		return errors.New("the header is already written")
	}
	return nil
}

// Set adds a key. v is a uint8 to uint64, int8 to int64, float32, float64, bool,
// string, or a slice of one of them; it is encoded at once, so the caller may
// reuse it. A key that is already set is an error.
func (w *Writer) Set(key string, v any) error {
	err := w.ready()
	switch {
	case err != nil:
	case key == "" || len(key) > maxKey:
		err = fmt.Errorf("key of %d bytes, want 1 to %d", len(key), maxKey)
	case w.seen[key]:
		err = errors.New("already set")
	case key == keyAlignment && v != uint32(defaultAlignment):
		err = fmt.Errorf("is %v, the writer aligns to uint32 %d", v, defaultAlignment)
	}
	if err == nil {
		// On an error the length of w.pairs is what it was.
		b := appendString(w.pairs, key)
		if b, err = appendValue(b, v); err == nil {
			w.pairs = b
			w.seen[key] = true
			w.nPairs++
			return nil
		}
	}
	return fmt.Errorf("%s: key %q: %w", w.path, key, err)
}

// AddTensor declares the next tensor. dims are in ggml order, ne0 first.
func (w *Writer) AddTensor(name string, t Type, dims []int64) error {
	err := w.ready()
	if err == nil {
		err = checkName(name)
	}
	if err == nil && w.names[name] {
		err = errors.New("already added")
	}
	var size int64
	if err == nil {
		size, err = tensorBytes(t, dims)
	}
	if err == nil && w.dataSize > 1<<62-size {
		err = errors.New("file too large")
	}
	if err != nil {
		return fmt.Errorf("%s: tensor %q: %w", w.path, name, err)
	}
	w.names[name] = true
	w.tensors = append(w.tensors, TensorInfo{
		Name: name, Type: t, Dims: slices.Clone(dims), Offset: w.dataSize, Size: size,
	})
	w.dataSize = roundUp(w.dataSize+size, defaultAlignment)
	return nil
}

// WriteTensor writes the data of the next tensor, which must be the one called
// name. fill writes exactly the tensor's bytes to the writer it is given.
func (w *Writer) WriteTensor(name string, fill func(w io.Writer) error) error {
	if err := w.writeTensor(name, fill); err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("%s: tensor %q: %w", w.path, name, err)
		}
		return w.err
	}
	return nil
}

func (w *Writer) writeTensor(name string, fill func(w io.Writer) error) error {
	if err := w.start(); err != nil {
		return err
	}
	if w.counts != nil {
		return errors.New("WriteTensor after Begin")
	}
	if w.written == len(w.tensors) {
		return errors.New("all tensors are written")
	}
	t := w.tensors[w.written]
	if t.Name != name {
		return fmt.Errorf("out of order, want %q", t.Name)
	}
	lw := &limitedWriter{w: w.buf, left: t.Size}
	if err := fill(lw); err != nil {
		return err
	}
	if lw.left != 0 {
		return fmt.Errorf("%d bytes written, want %d", t.Size-lw.left, t.Size)
	}
	if err := w.pad(t.Size); err != nil {
		return err
	}
	w.written++
	return nil
}

// limitedWriter passes on exactly left bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, fmt.Errorf("%d bytes more than its shape holds", int64(len(p))-l.left)
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	return n, err
}

// start writes the header unless that is done.
func (w *Writer) start() error {
	switch {
	case w.err != nil:
		return w.err
	case w.file == nil:
		return errClosed
	case w.started:
		return nil
	}
	w.started = true
	le := binary.LittleEndian
	b := append([]byte(magic), make([]byte, 0, 20)...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint64(b, uint64(len(w.tensors)))
	b = le.AppendUint64(b, uint64(w.nPairs))
	var infos []byte
	for _, t := range w.tensors {
		infos = appendString(infos, t.Name)
		infos = le.AppendUint32(infos, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			infos = le.AppendUint64(infos, uint64(d))
		}
		infos = le.AppendUint32(infos, uint32(t.Type))
		infos = le.AppendUint64(infos, uint64(t.Offset))
	}
	size := int64(len(b) + len(w.pairs) + len(infos))
	if size > maxHeader {
		return fmt.Errorf("header of %d bytes, want at most %d", size, maxHeader)
	}
	for _, part := range [][]byte{b, w.pairs, infos} {
		if _, err := w.buf.Write(part); err != nil {
			return err
		}
	}
	w.pairs = nil
	w.dataStart = roundUp(size, defaultAlignment)
	return w.pad(size)
}

// pad writes zeros after n bytes, up to the alignment.
func (w *Writer) pad(n int64) error {
	var zeros [defaultAlignment]byte
	_, err := w.buf.Write(zeros[:roundUp(n, defaultAlignment)-n])
	return err
}

// Commit checks that all tensors are written, forces the file to the disk and
// gives it its name.
func (w *Writer) Commit() error {
	if err := w.commit(); err != nil {
		if w.err == nil {
			w.err = fmt.Errorf("%s: %w", w.path, err)
		}
		return w.err
	}
	return nil
}

func (w *Writer) commit() error {
	if err := w.start(); err != nil { // a file without tensors has its header written here
		return err
	}
	if w.counts != nil {
		if err := w.complete(); err != nil {
			return err
		}
	} else if n := len(w.tensors) - w.written; n > 0 {
		return fmt.Errorf("%d tensors are not written, first %q", n, w.tensors[w.written].Name)
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	// The name first: with the file its lock is let go. Windows renames closed files only.
	if runtime.GOOS == "windows" {
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	if err := os.Rename(w.path+partialSuffix, w.path); err != nil {
		return err
	}
	f := w.file
	w.file = nil
	if runtime.GOOS != "windows" {
		if err := f.Close(); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(w.path))
}

// Abort closes and removes the partial file. It does nothing after a successful
// Commit and after another Abort.
func (w *Writer) Abort() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	if runtime.GOOS == "windows" { // removes closed files only
		_ = f.Close() // fails if Commit got as far as closing; the data is not wanted
		return os.Remove(w.path + partialSuffix)
	}
	defer f.Close() // last, since its lock goes with it
	return os.Remove(w.path + partialSuffix)
}

// syncDir makes a rename in dir survive a power failure. Windows has no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
