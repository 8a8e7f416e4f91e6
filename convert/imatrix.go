package convert

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
)

// Imatrix has the importance of the columns of weights: the mean square of what they
// were multiplied with over some text. A nil Imatrix has none.
type Imatrix struct {
	file   string                 // its name
	chunks uint64                 // of text
	byName map[string][][]float32 // for each matrix of a tensor, by the tensor's name
}

// Suffixes of the two tensors that a GGUF imatrix has for each tensor of the model.
const (
	imatrixSums   = ".in_sum2" // sums of squares, {columns, matrices}
	imatrixCounts = ".counts"  // tokens, {1, matrices}
)

// ReadImatrix reads an importance matrix as llama.cpp's llama-imatrix writes it: in
// GGUF form, or in the form before that.
func ReadImatrix(path string) (*Imatrix, error) {
	if is, err := isGGUF(path); err != nil {
		return nil, err
	} else if !is {
		return readLegacyImatrix(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if kind, err := f.StrOr("general.type", ""); err != nil || kind != "imatrix" {
		return nil, &UnsupportedError{path, fmt.Sprintf("general.type is %q, want an imatrix", kind)}
	}
	m := &Imatrix{file: filepath.Base(path), byName: make(map[string][][]float32)}
	if m.chunks, err = f.UintOr("imatrix.chunk_count", 0); err != nil {
		return nil, err
	}
	for _, sums := range f.Tensors() {
		name, ok := strings.CutSuffix(sums.Name, imatrixSums)
		if !ok {
			continue
		}
		if m.byName[name], err = readImportance(f, sums, name); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(m.byName) == 0 {
		return nil, &FormatError{path, -1, "no tensor *" + imatrixSums}
	}
	return m, nil
}

// isGGUF reports whether a file begins as a GGUF file does.
func isGGUF(path string) (is bool, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if !st.Mode().IsRegular() { // opening a pipe would wait for its other end
		return false, &FormatError{path, -1, "not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return string(magic[:]) == "GGUF", nil
}

// readImportance reads the importance for one tensor of the model. A matrix that saw
// no token, an expert that was never chosen, gets columns of equal importance.
func readImportance(f *gguf.File, sums gguf.TensorInfo, name string) ([][]float32, error) {
	counts, ok := f.Tensor(name + imatrixCounts)
	cols := sums.Dims[0]
	n := sums.Elems() / cols
	if !ok || sums.Type != gguf.F32 || counts.Type != gguf.F32 || counts.Elems() != n {
		return nil, fmt.Errorf("tensor %s: no tensor %s%s of %d F32 counts", sums.Name, name, imatrixCounts, n)
	}
	values, tokens := make([]float32, sums.Elems()), make([]float32, n)
	if err := gguf.DecodeRows(gguf.F32, values, f.Bytes(sums)); err != nil {
		return nil, err
	}
	if err := gguf.DecodeRows(gguf.F32, tokens, f.Bytes(counts)); err != nil {
		return nil, err
	}
	var matrices [][]float32
	for i, count := range tokens {
		row := values[int64(i)*cols:][:cols]
		for j := range row {
			if count > 0 {
				row[j] /= count
			} else {
				row[j] = 0
			}
			if !(row[j] >= 0 && row[j] <= math.MaxFloat32) {
				return nil, fmt.Errorf("tensor %s: importance of column %d is %v", sums.Name, j, row[j])
			}
		}
		matrices = append(matrices, orEqual(row))
	}
	return matrices, nil
}

// orEqual returns the importance of the columns of a matrix, or equal importance where
// there is none at all.
func orEqual(row []float32) []float32 {
	if slices.ContainsFunc(row, func(v float32) bool { return v > 0 }) {
		return row
	}
	return slices.Repeat([]float32{1}, len(row))
}

// split cuts what is in one piece for a stack of n matrices of cols columns, as in the
// form before GGUF; all else it returns as it is.
func split(list [][]float32, cols, n int64) [][]float32 {
	if len(list) != 1 || n < 2 || int64(len(list[0])) != n*cols {
		return list
	}
	var cut [][]float32
	for row := range slices.Chunk(list[0], int(cols)) {
		cut = append(cut, orEqual(row))
	}
	return cut
}

// of returns the importance for a tensor of the output; nil if its type has no use
// for it.
func (m *Imatrix) of(t Tensor, to gguf.Type) ([][]float32, error) {
	if ours(to) {
		return nil, nil
	}
	if m != nil {
		if list, ok := m.byName[t.Name]; ok {
			n := product(t.Dims[2:])
			list = split(list, t.Dims[0], n)
			if int64(len(list[0])) != t.Dims[0] || int64(len(list)) != n && len(list) != 1 {
				return nil, fmt.Errorf("%s: importance of tensor %s is for %d matrices of %d columns, want %d of %d",
					m.file, t.Name, len(list), len(list[0]), n, t.Dims[0])
			}
			return list, nil
		}
	}
	if binding.DType(to).NeedsImatrix() {
		return nil, fmt.Errorf("tensor %s: type %v needs an importance matrix that has the tensor", t.Name, to)
	}
	return nil, nil
}

// keys returns what the output says about the importance matrix, as llama.cpp's
// llama-quantize does.
func (m *Imatrix) keys() []KV {
	return []KV{
		{"quantize.imatrix.file", m.file},
		{"quantize.imatrix.entries_count", uint32(len(m.byName))},
		{"quantize.imatrix.chunks_count", uint32(min(m.chunks, math.MaxUint32))},
	}
}
