package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/gguf"
)

// TestGGMLOpens has ggml's own reader open every kind of file of every output type,
// in one file and in several.
func TestGGMLOpens(t *testing.T) {
	for _, outType := range convert.OutTypes() {
		if outType == convert.OutNVFP4 {
			continue // a type that this ggml does not have
		}
		ggmlOpens(t, 3, "inkling-tiny-random", string(outType))
		ggmlOpens(t, 2, "kimi-k25-tiny-random", string(outType))
	}
	ggmlOpens(t, 6, "inkling-tiny-random", "q8_0", "--split-max-size", "1M")
}

// ggmlOpens converts a checkpoint and compares what ggml finds in each of n files, and
// maybe more, with what our own reader does.
func ggmlOpens(t *testing.T, n int, checkpoint, outType string, more ...string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"convert-inkling", filepath.Join("..", "..", "testdata", checkpoint, "original"), "-o", dir, "--outtype", outType}
	var stdout, stderr bytes.Buffer
	if status := run(append(args, more...), &stdout, &stderr); status != exitOK {
		t.Fatalf("%s to %s: status %d: %s", checkpoint, outType, status, &stderr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(files) < n {
		t.Fatalf("%s to %s: files %v (%v), want %d or more", checkpoint, outType, files, err, n)
	}
	for _, path := range files {
		keys, tensors, err := binding.OpenableGGUF(path)
		if err != nil {
			t.Errorf("%s to %s: %v", checkpoint, outType, err)
			continue
		}
		if len(more) > 0 {
			continue // our own reader sees the parts as one
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if keys != int64(len(f.Keys())) || tensors != int64(len(f.Tensors())) {
			t.Errorf("%s: ggml finds %d keys and %d tensors, want %d and %d", path, keys, tensors, len(f.Keys()), len(f.Tensors()))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
