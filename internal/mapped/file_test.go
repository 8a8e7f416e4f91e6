package mapped

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// write makes a file of n bytes and returns its path and content.
func write(t *testing.T, n int) (string, []byte) {
	t.Helper()
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b
}

func TestOpen(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{0, 1, page - 1, page, page + 1, 5*page + 100} {
		path, want := write(t, n)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Bytes(), want) || f.Path() != path {
			t.Errorf("%d bytes: other content, or path %q", n, f.Path())
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Errorf("%d bytes: Close: %v", n, err)
			}
		}
		if f.Bytes() != nil {
			t.Errorf("%d bytes: content after Close", n)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, ErrNotRegular) {
		t.Errorf("folder: error %v, want ErrNotRegular", err)
	}
	if _, err := Open(filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: error %v, want fs.ErrNotExist", err)
	}
}

// TestAdvice checks that no range of bytes, inside the file or not, changes what
// is read or fails.
func TestAdvice(t *testing.T) {
	page := int64(os.Getpagesize())
	path, want := write(t, int(5*page+100))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(len(want))
	f.Sequential()
	for _, off := range []int64{-1, 0, 1, page - 1, page, page + 1, size - 1, size, 1 << 62} {
		for _, n := range []int64{-1, 0, 1, page - 1, page, page + 1, 3 * page, size, 1<<63 - 1} {
			f.Prefetch(off, n)
			f.Release(off, n)
			if !bytes.Equal(f.Bytes(), want) {
				t.Fatalf("other content after advice on %d bytes at %d", n, off)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Release(0, size) // no mapping: does nothing
}

// TestRelease checks that released pages leave the resident memory.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/self/statm")
	}
	const size = 64 << 20
	path, _ := write(t, size)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sum byte
	for i := 0; i < size; i += os.Getpagesize() {
		sum += f.Bytes()[i]
	}
	before := sharedPages(t)
	f.Release(0, size)
	if got := (before - sharedPages(t)) * os.Getpagesize(); got < size*9/10 {
		t.Errorf("%d bytes released of %d (sum %d)", got, size, sum)
	}
}

// sharedPages returns how many pages of mapped files are resident.
func sharedPages(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident, shared int
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		t.Fatal(err)
	}
	return shared
}
