package gguf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenAbsent(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "x.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestBytesOfForeignTensor(t *testing.T) {
	f, err := Open("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, ti := range map[string]TensorInfo{
		"part":          {Part: 1, Size: 1},
		"part below 0":  {Part: -1, Size: 1},
		"offset":        {Offset: 1 << 40, Size: 1},
		"offset < 0":    {Offset: -1, Size: 1},
		"size":          {Offset: 1, Size: 1<<63 - 1},
		"size below 0":  {Offset: 1, Size: -1},
		"end by a byte": {Offset: 6752 - 4, Size: 5},
	} {
		if b := f.Bytes(ti); b != nil {
			t.Errorf("%s: %d bytes, want none", name, len(b))
		}
		f.Prefetch(ti) // must not fault either
		f.Release(ti)
	}
}

func TestClose(t *testing.T) {
	f, err := Open("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	ti, _ := f.Tensor("blk.1.f16.weight")
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if b := f.Bytes(ti); b != nil {
		t.Errorf("%d bytes after Close", len(b))
	}
	if s, err := f.Str("general.architecture"); err != nil || s != "golden" {
		t.Errorf("Str after Close: %q, %v", s, err)
	}
}

// TestRelease checks that released pages read as before.
func TestRelease(t *testing.T) {
	f, err := Open("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, want := range goldenTensors {
		ti, _ := f.Tensor(want.Name)
		f.Prefetch(ti)
		f.Release(ti)
		if string(f.Bytes(ti)) != string(goldenData(i)) {
			t.Errorf("%s: other data after Release", ti.Name)
		}
	}
}

// FuzzOpen opens any bytes: an error or a file whose every tensor and key is readable.
func FuzzOpen(f *testing.F) {
	golden, err := os.ReadFile("testdata/ggml.gguf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add(golden[:len(golden)-1])
	f.Add(file(0, 0).b)
	f.Add(file(1, 1).str("general.alignment").u32(4).u32(64).tensor("a", 0, 0, 2, 2).align(64).pad(16).b)
	f.Add(file(0, 1).str("a").u32(9).u32(8).u64(2).str("x").str("yz").b)
	f.Add(file(0, 1).str("split.count").u32(2).u8(2).u8(0).b)
	f.Add(file(0, 2).str("split.count").u32(2).u8(2).u8(0).str("split.no").u32(2).u8(1).u8(0).b)
	path := filepath.Join(f.TempDir(), "x.gguf") // one for each process of the fuzzer
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := Open(path)
		if err != nil {
			var format *FormatError
			var unsupported *UnsupportedError
			if !errors.As(err, &format) && !errors.As(err, &unsupported) {
				t.Fatalf("error %v is of neither type", err)
			}
			return
		}
		defer g.Close()
		for _, ti := range g.Tensors() {
			if got := int64(len(g.Bytes(ti))); got != ti.Size || got == 0 {
				t.Errorf("tensor %q: %d bytes, want %d", ti.Name, got, ti.Size)
			}
		}
		for _, k := range g.Keys() {
			if v, ok := g.Value(k); !ok || v == nil {
				t.Errorf("key %q has no value", k)
			}
		}
	})
}
