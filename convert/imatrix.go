package convert

import (
	"fmt"
	"math"
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

// ReadImatrix reads an importance matrix in the GGUF form of llama.cpp's
// llama-imatrix.
func ReadImatrix(path string) (*Imatrix, error) {
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
		seen := false
		for j := range row {
			if count > 0 {
				row[j] /= count
			}
			if !(row[j] >= 0 && row[j] <= math.MaxFloat32) {
				return nil, fmt.Errorf("tensor %s: importance of column %d is %v", sums.Name, j, row[j])
			}
			seen = seen || row[j] > 0
		}
		if !seen || count <= 0 {
			row = slices.Repeat([]float32{1}, int(cols))
		}
		matrices = append(matrices, row)
	}
	return matrices, nil
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
