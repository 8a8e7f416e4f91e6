package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
)

// drawnBytes is about how much of a tensor is drawn; the rest repeats it. putBytes is
// how much is written at once.
const (
	drawnBytes = 1 << 20
	putBytes   = 16 << 20
)

// Fill returns what makes up weights for models.Params.Fill. Matrices are about as
// large as an initialiser makes them, so that activations stay finite; norms and
// scales are 1. The same seed gives the same weights. Routers are drawn to the last
// row, or experts would be alike; quantised tensors of the same form are the same,
// because quantising is what takes long.
func Fill(seed uint64) func(t gguf.TensorInfo, put func(data []byte, off int64)) error {
	quantised := map[form][]byte{}
	return func(t gguf.TensorInfo, put func([]byte, int64)) error {
		f := form{t.Type, t.Dims[0], min(rowsOf(t), drawnRows(t))}
		chunk := quantised[f]
		if chunk == nil {
			var err error
			if chunk, err = draw(t, seed); err != nil {
				return err
			}
			if binding.DType(t.Type).Quantisable() {
				quantised[f] = chunk
			}
		}
		for off := int64(0); off < t.Size; off += int64(len(chunk)) {
			put(chunk[:min(int64(len(chunk)), t.Size-off)], off)
		}
		return nil
	}
}

// form is what tensors that may be the same have in common.
type form struct {
	typ        gguf.Type
	cols, rows int64
}

func rowsOf(t gguf.TensorInfo) int64 { return t.Elems() / t.Dims[0] }

// drawnRows is the number of rows that are drawn of a tensor that has more.
func drawnRows(t gguf.TensorInfo) int64 {
	if strings.Contains(t.Name, "ffn_gate_inp") {
		return rowsOf(t)
	}
	return max(1, drawnBytes/(t.Size/rowsOf(t)))
}

// draw returns encoded rows of a tensor, all of them or some.
func draw(t gguf.TensorInfo, seed uint64) ([]byte, error) {
	cols := t.Dims[0]
	rows := rowsOf(t)
	rowBytes := t.Size / rows
	rows = min(rows, drawnRows(t))
	values := make([]float32, rows*cols)
	switch {
	case len(t.Dims) > 1 && (cols > 8 || rows == 1):
		random(values, seed, 1/math.Sqrt(float64(cols)))
	case len(t.Dims) > 1: // taps of a convolution
		random(values, seed, 0.1)
	case !strings.Contains(t.Name, "bias"):
		for i := range values {
			values[i] = 1
		}
	}
	data := make([]byte, rows*rowBytes)
	var err error
	if typ := binding.DType(t.Type); typ.Quantisable() {
		var importance []float32
		if typ.NeedsImatrix() {
			importance = alike(cols)
		}
		err = binding.Quantise(typ, data, values, cols, importance)
	} else {
		err = gguf.EncodeRows(t.Type, data, values)
	}
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", t.Type, err)
	}
	if n := min(putBytes, t.Size) / int64(len(data)); n > 1 { // fewer and longer writes
		data = bytes.Repeat(data, int(n))
	}
	return data, nil
}

// random draws from a normal distribution.
func random(values []float32, seed uint64, deviation float64) {
	r := rand.New(rand.NewPCG(seed, uint64(len(values))))
	for i := range values {
		values[i] = float32(deviation * r.NormFloat64())
	}
}

// alike is the importance of columns that are all alike.
func alike(n int64) []float32 {
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	return ones
}
