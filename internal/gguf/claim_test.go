//go:build unix

package gguf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOneWriter: a file has one writer at a time, and the one that comes too
// late leaves the first one's work alone.
func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	first, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Abort()
	if err := first.Set("general.architecture", "first"); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*Writer, error){"Create": Create, "Reopen": Reopen} {
		if w, err := open(path); !errors.Is(err, ErrBusy) {
			if err == nil {
				w.Abort()
			}
			t.Errorf("%s of a file that is being written: error %v, want %v", name, err, ErrBusy)
		}
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if arch, err := f.Str("general.architecture"); err != nil || arch != "first" {
		t.Errorf("the file holds %q, %v", arch, err)
	}
	// The lock went with the file.
	second, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("giving up the second one took the first one's file: %v", err)
	}
}
