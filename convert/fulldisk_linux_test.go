package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

// TestFullDisk converts onto a disk of 8 MB, in a process with mounts of its own.
func TestFullDisk(t *testing.T) {
	if !testutil.Isolated(t, syscall.CLONE_NEWNS) {
		return
	}
	dir := testutil.SmallDisk(t, 8)
	src := random(64).Write(t)
	o := Options{Dir: src, OutDir: dir, Name: "m", OutType: OutF32, Only: []Kind{Text}, Workers: 1}

	t.Run("before", func(t *testing.T) {
		o := o
		o.Dir = random(256).Write(t)
		_, err := Run(context.Background(), o)
		wantSpaceError(t, err, false)
		if left := filesIn(t, dir); left != nil {
			t.Errorf("left behind: %v", left)
		}
	})
	// Somebody else fills the disk as soon as the conversion has begun.
	hog := filepath.Join(dir, "hog")
	fill := func(p Progress) {
		if p.Done > 0 {
			_ = os.WriteFile(hog, make([]byte, 8<<20), 0o666) // as much of it as there is room for
		}
	}
	t.Run("within", func(t *testing.T) {
		o := o
		o.Progress = fill
		_, err := Run(context.Background(), o)
		wantSpaceError(t, err, true)
		if left := filesIn(t, dir); !slices.Equal(left, []string{"hog"}) {
			t.Errorf("left behind: %v, want the hog", left)
		}
		if err := os.Remove(hog); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("resumed", func(t *testing.T) {
		o := o
		o.Progress, o.Keep = fill, true
		_, err := Run(context.Background(), o)
		wantSpaceError(t, err, true)
		left := filesIn(t, dir)
		if want := []string{"hog", "m-F32.gguf.partial", "m-F32.journal.partial"}; !slices.Equal(left, want) {
			t.Errorf("left behind: %v, want %v", left, want)
		}
		if err := os.Remove(hog); err != nil {
			t.Fatal(err)
		}
		o.Progress, o.Resume, o.Verify = nil, true, true
		report, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if report.Kept == 0 {
			t.Error("nothing was kept of the run that found the disk full")
		}
		if left, want := filesIn(t, dir), []string{"m-F32.gguf"}; !slices.Equal(left, want) {
			t.Errorf("files %v, want %v", left, want)
		}
	})
}

// wantSpaceError checks an error for its numbers. late: a write had failed.
func wantSpaceError(t *testing.T, err error, late bool) {
	t.Helper()
	var space *SpaceError
	if !errors.As(err, &space) {
		t.Fatalf("error %v, want a SpaceError", err)
	}
	if space.Need <= space.Free || errors.Is(err, syscall.ENOSPC) != late {
		t.Errorf("%v (of %v)", err, space.Err)
	}
}
