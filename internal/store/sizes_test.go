package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSizes refuses files that are too large: a manifest and a journal of holes only, and a Modelfile.
func TestSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest")
	check(t, os.WriteFile(path, nil, 0o600))
	if err := os.Truncate(path, maxManifest+1); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	if _, err := readManifest(path, "x/latest"); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("manifest: error %v", err)
	}
	if j, err := readJournal(path, 1000); j != nil || err != nil {
		t.Errorf("journal: %v, %v; want none", j, err)
	}
	if _, err := ParseModelfile(strings.NewReader("FROM x\nSYSTEM " + strings.Repeat("a", maxManifest))); err == nil || !strings.Contains(err.Error(), "16777216") {
		t.Errorf("Modelfile: error %v", err)
	}
}
