package convert

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/inkling-go/inkling/internal/gguf"
)

// maxImatrixName bounds the name of a tensor in a legacy imatrix: ggml's have 63 bytes.
const maxImatrixName = 1024

// legacyReader reads the numbers of a file and keeps count of what is left of it.
type legacyReader struct {
	path string
	r    *bufio.Reader
	size int64
	off  int64
	err  error // the first
}

// fail makes a fault at the last number that was read the error.
func (r *legacyReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &FormatError{r.path, r.off, "no GGUF file, and as an imatrix of the older form: " + fmt.Sprintf(format, args...)}
	}
}

// bytes reads n bytes, nil after an error.
func (r *legacyReader) bytes(n int64, what string) []byte {
	if r.err == nil && (n < 0 || n > r.size-r.off) {
		r.fail("%s of %d bytes, the file has %d more", what, n, r.size-r.off)
	}
	if r.err != nil {
		return nil
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(r.r, p); err != nil {
		r.err = fmt.Errorf("%s: %w", r.path, err)
		return nil
	}
	r.off += n
	return p
}

// count reads a number from least to most, 0 after an error.
func (r *legacyReader) count(least, most int64, what string) int64 {
	p := r.bytes(4, what)
	if p == nil {
		return 0
	}
	n := int64(int32(binary.LittleEndian.Uint32(p)))
	if n < least || n > most {
		r.off -= 4
		r.fail("%s is %d, want %d to %d", what, n, least, most)
		return 0
	}
	return n
}

// readLegacyImatrix reads the form that llama-imatrix wrote before the GGUF one,
// commonly called imatrix.dat: a count of entries, and for each the length of a
// tensor's name, the name, the number of calls, the number of values, and the values
// times the number of calls as F32. Newer files end with the number of chunks and the
// name of the text. A stack of experts has the values of all of them in one entry.
func readLegacyImatrix(path string) (_ *Imatrix, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const minEntry = 4 + 1 + 4 + 4 + 4 // a name of one byte, one value
	r := &legacyReader{path: path, r: bufio.NewReaderSize(f, 1<<20), size: st.Size()}
	m := &Imatrix{file: filepath.Base(path), byName: make(map[string][][]float32)}
	for n := r.count(1, max(1, (r.size-4)/minEntry), "number of entries"); n > 0 && r.err == nil; n-- {
		r.entry(m)
	}
	if r.err == nil && r.off < r.size {
		m.chunks = uint64(r.count(0, math.MaxInt32, "number of chunks"))
		r.bytes(r.count(0, r.size, "length of the text's name"), "name of the text")
	}
	if r.err == nil && r.off < r.size {
		r.fail("%d bytes after the end", r.size-r.off)
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// entry reads the values for one tensor.
func (r *legacyReader) entry(m *Imatrix) {
	name := string(r.bytes(r.count(1, maxImatrixName, "length of a tensor's name"), "name of a tensor"))
	calls := r.count(0, math.MaxInt32, "number of calls")
	n := r.count(1, math.MaxInt32, "number of values")
	at := r.off
	p := r.bytes(4*n, "values")
	if r.err != nil {
		return
	}
	if _, again := m.byName[name]; again {
		r.off = at
		r.fail("tensor %s has two entries", name)
		return
	}
	values := make([]float32, n)
	if err := gguf.DecodeRows(gguf.F32, values, p); err != nil {
		r.err = fmt.Errorf("%s: %w", r.path, err)
		return
	}
	for i := range values {
		if calls > 0 {
			values[i] /= float32(calls)
		}
		if v := values[i]; !(v >= 0 && v <= math.MaxFloat32) {
			r.off = at + 4*int64(i)
			r.fail("tensor %s: importance of column %d is %v", name, i, v)
			return
		}
	}
	m.byName[name] = [][]float32{values}
}
