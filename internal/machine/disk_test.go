package machine

import (
	"path/filepath"
	"testing"
)

func TestFreeSpace(t *testing.T) {
	dir := t.TempDir()
	n, ok := FreeSpace(dir)
	if !ok {
		t.Skip("the system does not say")
	}
	if n <= 0 {
		t.Errorf("%d bytes, but there is a folder", n)
	}
	if n, ok := FreeSpace(filepath.Join(dir, "none")); ok {
		t.Errorf("%d bytes in a folder that does not exist", n)
	}
}
