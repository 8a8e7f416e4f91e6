package convert

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestTruncatedShard cuts a shard off after it was opened: an error that names it, and
// no fault of a page that is gone.
func TestTruncatedShard(t *testing.T) {
	dir, out := random(8).Write(t), t.TempDir()
	cut := false
	_, err := Run(t.Context(), Options{
		Dir: dir, OutDir: out, Name: "m", OutType: OutBF16, Only: []Kind{Text}, Workers: 1,
		Progress: func(Progress) {
			if !cut {
				cut = true
				if err := os.Truncate(dir+"/model.safetensors", 40<<10); err != nil {
					t.Error(err)
				}
			}
		},
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "model.safetensors: ") {
		t.Errorf("error %v, want io.ErrUnexpectedEOF of model.safetensors", err)
	}
	if left := filesIn(t, out); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
