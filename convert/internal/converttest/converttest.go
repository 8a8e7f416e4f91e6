// Package converttest runs conversions for the tests of the architectures.
package converttest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/gguf"
)

// Run converts a checkpoint to a type under the name "m" into a new folder and returns
// the open outputs by kind.
func Run(t testing.TB, dir string, o convert.OutType) (map[convert.Kind]*gguf.File, convert.Report) {
	t.Helper()
	return RunWith(t, convert.Options{Dir: dir, OutType: o})
}

// RunWith is [Run] with other options.
func RunWith(t testing.TB, o convert.Options) (map[convert.Kind]*gguf.File, convert.Report) {
	t.Helper()
	o.OutDir, o.Name = t.TempDir(), "m"
	report, err := convert.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[convert.Kind]*gguf.File)
	for _, f := range report.Files {
		g, err := gguf.Open(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		files[f.Kind] = g
	}
	return files, report
}

// Refused converts a checkpoint that is refused, checks that nothing is left behind,
// and returns the error.
func Refused(t testing.TB, dir string) error {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := convert.Run(context.Background(), convert.Options{Dir: dir, OutDir: out})
	if err == nil {
		t.Fatal("converted, want an error")
	}
	if left, _ := filepath.Glob(out + "*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
	return err
}

// WantError checks the end of an error's text, which is all but the folder's name.
func WantError(t testing.TB, err error, want string) {
	t.Helper()
	if !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %q\nwant    %q", err, want)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
}

// Floats returns a tensor of an output as float32.
func Floats(t testing.TB, f *gguf.File, name string) []float32 {
	t.Helper()
	info, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s in %s", name, f.Path())
	}
	v := make([]float32, info.Elems())
	if err := gguf.DecodeRows(info.Type, v, f.Bytes(info)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Keys returns all keys of an output but those of the vocabulary.
func Keys(f *gguf.File) map[string]any {
	kv := make(map[string]any)
	for _, k := range f.Keys() {
		if !strings.HasPrefix(k, "tokenizer.") {
			kv[k], _ = f.Value(k)
		}
	}
	return kv
}
