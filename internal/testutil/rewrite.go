package testutil

import (
	"encoding/binary"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Tensor is one F32 tensor of a file that [Rewrite] writes.
type Tensor struct {
	Name   string
	Dims   []int64 // ne0 first
	Values []float32
}

// Rewrite copies a GGUF file of F32 tensors with other keys (nil deletes one) and with
// what change makes of each tensor, nil for no change. It returns the path of the copy,
// in a folder of its own.
func Rewrite(t testing.TB, src string, keys map[string]any, change func(Tensor) []Tensor) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := gguf.Open(src)
	must(err)
	defer f.Close()
	path := filepath.Join(t.TempDir(), "changed.gguf")
	w, err := gguf.Create(path)
	must(err)
	defer w.Abort()
	all := make(map[string]any)
	for _, k := range f.Keys() {
		all[k], _ = f.Value(k)
	}
	maps.Copy(all, keys)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if all[k] != nil {
			must(w.Set(k, all[k]))
		}
	}
	var out []Tensor
	for _, info := range f.Tensors() {
		x := Tensor{info.Name, info.Dims, make([]float32, info.Elems())}
		must(gguf.DecodeRows(info.Type, x.Values, f.Bytes(info)))
		if change == nil {
			out = append(out, x)
		} else {
			out = append(out, change(x)...)
		}
	}
	for _, x := range out {
		must(w.AddTensor(x.Name, gguf.F32, x.Dims))
	}
	for _, x := range out {
		must(w.WriteTensor(x.Name, func(w io.Writer) error { return binary.Write(w, binary.LittleEndian, x.Values) }))
	}
	must(w.Commit())
	return path
}
