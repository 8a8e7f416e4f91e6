package gguf

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zeros fills a tensor with n zero bytes.
func zeros(n int) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(make([]byte, n))
		return err
	}
}

func TestWriterRefuses(t *testing.T) {
	errFill := errors.New("source is gone")
	one := []int64{8} // a tensor of 8 bytes as I8
	tests := []struct {
		name string
		do   func(*Writer) error
		want string
	}{
		{"key empty", func(w *Writer) error { return w.Set("", uint8(1)) }, "key of 0 bytes"},
		{"key too long", func(w *Writer) error { return w.Set(strings.Repeat("k", 65536), uint8(1)) }, "key of 65536 bytes"},
		{"key twice", func(w *Writer) error {
			return errors.Join(w.Set("k", uint8(1)), w.Set("k", uint8(1)))
		}, `key "k": already set`},
		{"int", func(w *Writer) error { return w.Set("k", 1) }, "Go type int"},
		{"nil", func(w *Writer) error { return w.Set("k", nil) }, "Go type <nil>"},
		{"slice of slices", func(w *Writer) error { return w.Set("k", [][]int32{{1}}) }, "Go type [][]int32"},
		{"other alignment", func(w *Writer) error { return w.Set("general.alignment", uint32(64)) }, "uint32 32"},
		{"key after data", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.WriteTensor("a", zeros(8)), w.Set("k", uint8(1)))
		}, "header is already written"},

		{"name empty", func(w *Writer) error { return w.AddTensor("", I8, one) }, "empty tensor name"},
		{"name of 64 bytes", func(w *Writer) error { return w.AddTensor(strings.Repeat("n", 64), I8, one) }, "tensor name of 64 bytes"},
		{"tensor twice", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.AddTensor("a", I8, one))
		}, `tensor "a": already added`},
		{"5 dimensions", func(w *Writer) error { return w.AddTensor("a", I8, []int64{1, 1, 1, 1, 1}) }, "5 dimensions"},
		{"dimension 0", func(w *Writer) error { return w.AddTensor("a", I8, []int64{0}) }, "dimension 0 is 0"},
		{"shape overflows", func(w *Writer) error { return w.AddTensor("a", I8, []int64{1 << 32, 1 << 32}) }, "overflows"},
		{"rows of half a block", func(w *Writer) error { return w.AddTensor("a", Q8_0, []int64{48}) }, "multiple of q8_0's block"},
		{"type", func(w *Writer) error { return w.AddTensor("a", 4, one) }, "tensor type 4"},
		{"file too large", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, []int64{1 << 61}), w.AddTensor("b", I8, []int64{1 << 61}),
				w.AddTensor("c", I8, one))
		}, "file too large"},
		{"tensor after data", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.WriteTensor("a", zeros(8)), w.AddTensor("b", I8, one))
		}, "header is already written"},

		{"data of an unknown tensor", func(w *Writer) error { return w.WriteTensor("a", zeros(8)) }, "all tensors are written"},
		{"data out of order", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.AddTensor("b", I8, one), w.WriteTensor("b", zeros(8)))
		}, `out of order, want "a"`},
		{"data too short", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.WriteTensor("a", zeros(7)))
		}, "7 bytes written, want 8"},
		{"data too long", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.WriteTensor("a", zeros(9)))
		}, "1 bytes more than its shape holds"},
		{"source fails", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.WriteTensor("a", func(io.Writer) error { return errFill }))
		}, "source is gone"},
		{"commit without data", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.Commit())
		}, `1 tensors are not written, first "a"`},
		{"commit after an error", func(w *Writer) error {
			if w.AddTensor("a", I8, one) != nil || w.WriteTensor("a", zeros(9)) == nil {
				return nil
			}
			return w.Commit()
		}, "more than its shape holds"},
		{"data after abort", func(w *Writer) error {
			return errors.Join(w.AddTensor("a", I8, one), w.Abort(), w.WriteTensor("a", zeros(8)))
		}, "closed"},
		{"commit after abort", func(w *Writer) error { return errors.Join(w.Abort(), w.Commit()) }, "closed"},
		{"key after commit", func(w *Writer) error { return errors.Join(w.Commit(), w.Set("k", uint8(1))) }, "closed"},
		{"commit after commit", func(w *Writer) error { return errors.Join(w.Commit(), w.Commit()) }, "closed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.gguf")
			w, err := Create(path)
			if err != nil {
				t.Fatal(err)
			}
			err = tt.do(w)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "out.gguf") {
				t.Errorf("error %v, want it to name out.gguf and hold %q", err, tt.want)
			}
			if err := w.Abort(); err != nil {
				t.Errorf("Abort: %v", err)
			}
			if _, err := os.Stat(path + ".partial"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the partial file after Abort: %v", err)
			}
		})
	}
}

// TestWriterGoesOn checks that a refused key or tensor leaves the writer usable.
func TestWriterGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.gguf")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if w.Set("int", 1) == nil || w.AddTensor("bad", Q8_0, []int64{1}) == nil {
		t.Fatal("accepted")
	}
	err = errors.Join(w.Set("int", int32(1)), w.AddTensor("bad", I8, []int64{3}), w.WriteTensor("bad", zeros(3)), w.Commit())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Keys()) != 1 || len(f.Tensors()) != 1 {
		t.Errorf("keys %v, tensors %v", f.Keys(), f.Tensors())
	}
}

func TestWriterAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.gguf")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".partial", []byte("left by a crash, longer than what follows it"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("second Abort: %v", err)
	}
	if got := content(); got != "old" {
		t.Errorf("after Abort the file is %q", got)
	}

	if w, err = Create(path); err != nil {
		t.Fatal(err)
	}
	if got := content(); got != "old" {
		t.Errorf("before Commit the file is %q", got)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	// Magic, version 3, no tensors, no keys, padding to 32.
	if got, want := content(), "GGUF\x03"+strings.Repeat("\x00", 27); got != want {
		t.Errorf("after Commit the file is %q, want %q", got, want)
	}
	if _, err := os.Stat(path + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the partial file after Commit: %v", err)
	}
}

func TestCreateInAbsentFolder(t *testing.T) {
	if _, err := Create(filepath.Join(t.TempDir(), "no", "x.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}
