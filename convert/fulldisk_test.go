package convert

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFullDiskInjected has the third write find the disk full.
func TestFullDiskInjected(t *testing.T) {
	src, arch, err := openSource(random(4).Write(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	plan, err := arch.Plan(src)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := Options{OutType: OutQ8_0, Workers: 1}
	out, err := newOutput(src, plan.Files[0], o, names{outDir: dir, model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriting(src, []output{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	writes, size := 0, int64(0)
	for _, x := range w.targets {
		x.write = func(p []byte, _ int64) error {
			if writes++; writes > 2 {
				return syscall.ENOSPC
			}
			size += int64(len(p))
			return nil
		}
	}
	err = w.outOfSpace(w.each(context.Background(), w.units, w.convert))
	var space *SpaceError
	if !errors.As(err, &space) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want a SpaceError of ENOSPC", err)
	}
	if want := w.progress.Total - size; space.Need != want || space.Dir != dir || size == 0 {
		t.Errorf("%d bytes needed in %s after %d, want %d in %s", space.Need, space.Dir, size, want, dir)
	}
	if err := w.outOfSpace(syscall.EIO); err != syscall.EIO {
		t.Errorf("another error became %v", err)
	}
	if left := filesIn(t, filepath.Join(dir)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
