package convert

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fullDiskDir tells the child process of TestFullDisk where to mount its disk.
const fullDiskDir = "INKLING_TEST_DISK"

// TestFullDisk converts onto a disk of 8 MB, in a process with mounts of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskDir); dir != "" {
		fullDisk(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullDiskDir+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v:\n%s", err, text)
	case err != nil:
		t.Skip("no user namespaces here: ", err)
	case strings.Contains(string(text), "--- SKIP"):
		t.Skipf("no tmpfs here:\n%s", text)
	case !strings.Contains(string(text), "--- PASS: TestFullDisk/"):
		t.Errorf("the child ran no test:\n%s", text)
	}
}

func fullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("mount: ", err)
	}
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
