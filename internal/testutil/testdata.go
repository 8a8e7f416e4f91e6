package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Testdata returns the path of a file or folder below the module's testdata,
// whichever package the test is in. The test ends if there is no such file.
func Testdata(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd() // go test starts a test in its package's folder
	if err != nil {
		t.Fatal(err)
	}
	root, err := moduleRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(append([]string{root, "testdata"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// moduleRoot is the nearest folder at or above dir that holds a go.mod.
func moduleRoot(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}
