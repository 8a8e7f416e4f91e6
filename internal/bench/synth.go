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

// drawnBytes is about how much of a tensor is drawn; the rest repeats it.
const drawnBytes = 1 << 20

// Fill returns what makes up weights for models.Params.Fill. Matrices are about as
// large as an initialiser makes them, so that activations stay finite; norms and
// scales are 1. The same seed gives the same weights.
func Fill(seed uint64) func(t gguf.TensorInfo, put func(data []byte, off int64)) error {
	return func(t gguf.TensorInfo, put func([]byte, int64)) error {
		chunk, err := draw(t, seed)
		if err != nil {
			return err
		}
		for off := int64(0); off < t.Size; off += int64(len(chunk)) {
			put(chunk[:min(int64(len(chunk)), t.Size-off)], off)
		}
		return nil
	}
}

// draw returns encoded rows of a tensor, all of them or some.
func draw(t gguf.TensorInfo, seed uint64) ([]byte, error) {
	cols := t.Dims[0]
	rows := t.Elems() / cols
	rowBytes := t.Size / rows
	rows = min(rows, max(1, drawnBytes/rowBytes))
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
	if n := drawnBytes / len(data); n > 1 { // fewer and longer writes
		data = bytes.Repeat(data, n)
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
