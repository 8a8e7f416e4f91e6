package gguf

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Reopen is [Create] for a file that an earlier attempt left incomplete: the data
// in path.partial is kept. The caller declares the same keys and tensors again, says
// with [Writer.Kept] which bytes are good, and writes the others by
// [Writer.WriteAt]. Without such a file the error wraps fs.ErrNotExist.
func Reopen(path string) (*Writer, error) {
	f, err := Claim(path+partialSuffix, false)
	if err != nil {
		return nil, err
	}
	return newWriter(path, f), nil
}

// Begin writes the header and gives the file its full length, for data that comes
// by [Writer.WriteAt] instead of WriteTensor. The gaps between tensors are zeros.
func (w *Writer) Begin() error {
	err := w.ready()
	if err == nil {
		w.counts = make([]atomic.Int64, len(w.tensors))
		err = w.start()
	}
	if err == nil {
		err = w.buf.Flush()
	}
	if err == nil {
		err = w.file.Truncate(w.dataStart + w.dataSize)
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", w.path, err)
	}
	return err
}

// WriteAt writes p at byte off of the data of tensor i, counted in the order of
// AddTensor. Every byte is written once, in any order and from any goroutine, after
// [Writer.Begin]. An error of the file is returned and leaves the rest to the caller.
func (w *Writer) WriteAt(i int, p []byte, off int64) error {
	at, err := w.place(i, int64(len(p)), off)
	if err == nil {
		_, err = w.file.WriteAt(p, at)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	if len(p) >= minWriteback {
		startWriteback(w.file, at, int64(len(p)))
	}
	w.counts[i].Add(int64(len(p)))
	return nil
}

// minWriteback is the least that is worth a request of its own to the disk.
const minWriteback = 256 << 10

// ReadAt reads bytes that were written before, by this Writer or the one whose file
// was reopened.
func (w *Writer) ReadAt(i int, p []byte, off int64) error {
	at, err := w.place(i, int64(len(p)), off)
	if err == nil {
		_, err = w.file.ReadAt(p, at)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	return nil
}

// Kept counts n bytes of tensor i as written: they are in a reopened file.
func (w *Writer) Kept(i int, n int64) { w.counts[i].Add(n) }

// place returns the offset in the file of bytes [off, off+n) of tensor i.
func (w *Writer) place(i int, n, off int64) (int64, error) {
	switch {
	case w.file == nil:
		return 0, errClosed
	case w.counts == nil || i < 0 || i >= len(w.tensors):
		return 0, fmt.Errorf("tensor %d of %d before Begin or not declared", i, len(w.tensors))
	}
	if t := w.tensors[i]; off < 0 || n > t.Size-off {
		return 0, fmt.Errorf("tensor %q: bytes %d to %d of %d", t.Name, off, off+n, t.Size)
	}
	return w.dataStart + w.tensors[i].Offset + off, nil
}

// complete checks that WriteAt has written every tensor.
func (w *Writer) complete() error {
	for i := range w.counts {
		if n, t := w.counts[i].Load(), w.tensors[i]; n != t.Size {
			return fmt.Errorf("tensor %q: %d bytes written, want %d", t.Name, n, t.Size)
		}
	}
	return nil
}

// Close closes the partial file and leaves it where it is, for [Reopen]. It does
// nothing after Commit and Abort.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.buf.Flush(), w.file.Close())
	w.file = nil
	return err
}

// Path returns the name that the file gets in Commit.
func (w *Writer) Path() string { return w.path }
