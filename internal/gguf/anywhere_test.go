package gguf

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// declare declares two tensors.
func declare(t *testing.T, w *Writer) {
	t.Helper()
	for _, err := range []error{
		w.Set("general.architecture", "x"),
		w.AddTensor("a", F32, []int64{3}),
		w.AddTensor("b", F32, []int64{256, 64}),
		w.Begin(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteAt writes tensors in pieces, out of order and from several goroutines: the
// file is the one that is written in order.
func TestWriteAt(t *testing.T) {
	dir := t.TempDir()
	a, b := bytes.Repeat([]byte{1, 2, 3, 4}, 3), bytes.Repeat([]byte{5, 6, 7, 8}, 256*64)
	w, err := Create(filepath.Join(dir, "anywhere.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	declare(t, w)
	var wg sync.WaitGroup
	for off := len(b) - 4096; off >= 0; off -= 4096 {
		wg.Go(func() {
			if err := w.WriteAt(1, b[off:off+4096], int64(off)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := w.Commit(); err == nil {
		t.Fatal("committed without the first tensor")
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}

	if w, err = Create(filepath.Join(dir, "anywhere.gguf")); err != nil {
		t.Fatal(err)
	}
	declare(t, w)
	if err := errors.Join(w.WriteAt(1, b, 0), w.WriteAt(0, a, 0), w.Commit()); err != nil {
		t.Fatal(err)
	}
	in, err := Create(filepath.Join(dir, "order.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(p []byte) func(io.Writer) error {
		return func(dst io.Writer) error { _, err := dst.Write(p); return err }
	}
	if err := errors.Join(in.Set("general.architecture", "x"), in.AddTensor("a", F32, []int64{3}), in.AddTensor("b", F32, []int64{256, 64}),
		in.WriteTensor("a", put(a)), in.WriteTensor("b", put(b)), in.Commit()); err != nil {
		t.Fatal(err)
	}
	got, err1 := os.ReadFile(filepath.Join(dir, "anywhere.gguf"))
	want, err2 := os.ReadFile(filepath.Join(dir, "order.gguf"))
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(got, want) {
		t.Errorf("files differ (%v)", err)
	}
}

// TestReopen goes on with a file that was closed incomplete.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	if _, err := Reopen(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: error %v", err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	declare(t, w)
	if err := errors.Join(w.WriteAt(0, []byte("abcdefghijkl"), 0), w.Close(), w.Abort()); err != nil {
		t.Fatal(err)
	}
	if w, err = Reopen(path); err != nil {
		t.Fatal(err)
	}
	declare(t, w)
	p := make([]byte, 4)
	if err := w.ReadAt(0, p, 4); err != nil || string(p) != "efgh" {
		t.Errorf("read %q (%v), want efgh", p, err)
	}
	w.Kept(0, 12)
	if err := errors.Join(w.WriteAt(1, make([]byte, 4*256*64), 0), w.Commit()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if a, _ := f.Tensor("a"); string(f.Bytes(a)) != "abcdefghijkl" {
		t.Errorf("tensor a is %q", f.Bytes(a))
	}
}

func TestWriteAtRefuses(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "x.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.WriteAt(0, []byte{1}, 0); err == nil {
		t.Error("written before Begin")
	}
	declare(t, w)
	for _, tc := range []struct {
		name   string
		tensor int
		n      int
		off    int64
	}{
		{"past the end", 0, 4, 9}, {"before the start", 0, 4, -4}, {"no such tensor", 2, 4, 0}, {"too long", 0, 13, 0}, {"overflow", 0, 4, 1<<63 - 1},
	} {
		if err := w.WriteAt(tc.tensor, make([]byte, tc.n), tc.off); err == nil {
			t.Errorf("%s: no error", tc.name)
		}
		if err := w.ReadAt(tc.tensor, make([]byte, tc.n), tc.off); err == nil {
			t.Errorf("%s: no error of reading", tc.name)
		}
	}
	if err := w.WriteTensor("a", func(io.Writer) error { return nil }); err == nil {
		t.Error("WriteTensor after Begin")
	}
}
