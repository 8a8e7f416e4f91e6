package token

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTokenizerFileSize refuses a file that is too large before it is read. The file has holes only.
func TestTokenizerFileSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxTokenizerBytes+1); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBounded(path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "larger than 268435456 bytes") {
		t.Errorf("error %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes taken", got)
	}
}
