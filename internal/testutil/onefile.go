package testutil

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/gguf"
)

// OneFile copies an Inkling text file with its layers for multi-token prediction,
// which are in a file of their own, behind its blocks: as llama.cpp's converters do
// it for other models, and Mesh-LLM for this one. Both are of F32. It returns the
// path of the copy.
func OneFile(t testing.TB, text, mtp string) string {
	t.Helper()
	open := func(path string) *gguf.File {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	const arch = "inkling."
	var blocks, depths int64
	var heads []int32
	var sliding []bool
	for _, f := range []*gguf.File{open(text), open(mtp)} {
		n, err := f.Int(arch + "block_count")
		if err != nil {
			t.Fatal(err)
		}
		kv, err := f.Ints(arch + "attention.head_count_kv")
		if err != nil {
			t.Fatal(err)
		}
		pattern, err := f.Bools(arch + "attention.sliding_window_pattern")
		if err != nil {
			t.Fatal(err)
		}
		blocks, depths = blocks+n, n
		for _, n := range kv {
			heads = append(heads, int32(n))
		}
		sliding = append(sliding, pattern...)
	}
	var more []Tensor
	Rewrite(t, mtp, nil, func(x Tensor) []Tensor {
		number, rest, _ := strings.Cut(strings.TrimPrefix(x.Name, "blk."), ".")
		i, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("%s: tensor %s is in no block", mtp, x.Name)
		}
		more = append(more, Tensor{fmt.Sprintf("blk.%d.%s", blocks-depths+i, rest), x.Dims, x.Values})
		return []Tensor{x}
	})
	return Rewrite(t, text, map[string]any{
		arch + "block_count":                      uint32(blocks),
		arch + "nextn_predict_layers":             uint32(depths),
		arch + "attention.head_count_kv":          heads,
		arch + "attention.sliding_window_pattern": sliding,
	}, func(x Tensor) []Tensor {
		if x.Name == "output_norm.weight" {
			return append([]Tensor{x}, more...)
		}
		return []Tensor{x}
	})
}
