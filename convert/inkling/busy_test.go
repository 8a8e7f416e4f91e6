package inkling

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
)

// TestBusy: a run that finds another one at work on the same outputs leaves
// them, and the other's journal, alone.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "x-F32.journal.partial")
	f, err := gguf.Claim(journal, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := convert.Options{Dir: testutil.Testdata(t, "inkling-tiny"), OutDir: dir, Name: "x", OutType: "f32", Keep: true}
	for _, o.Resume = range []bool{false, true} {
		if _, err := convert.Run(context.Background(), o); !errors.Is(err, gguf.ErrBusy) {
			t.Errorf("resume %v: error %v, want %v", o.Resume, err, gguf.ErrBusy)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 || files[0].Name() != filepath.Base(journal) {
			t.Errorf("resume %v: left %v, %v", o.Resume, files, err)
		}
	}
}
