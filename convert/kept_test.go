package convert

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
)

// TestKeepTowers converts a checkpoint to a second type: its mmproj file comes out as
// it is, and is kept unless a byte of it, or the checkpoint, has changed.
func TestKeepTowers(t *testing.T) {
	source := func() *checkpointtest.Checkpoint {
		c := random(2)
		x := c.Add("proj.c.weight", 8, 32)
		x.Data = slices.Repeat(checkpointtest.BF16(1, -2, 0.5, 3), 64)
		return c
	}
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, dir, mmproj string)
		kept   bool
	}{
		{"same", func(*testing.T, string, string) {}, true},
		{"changed data", func(t *testing.T, _, mmproj string) {
			flip(t, mmproj, -1)
		}, false},
		{"changed key", func(t *testing.T, _, mmproj string) {
			flip(t, mmproj, 40) // in the first key
		}, false},
		{"cut", func(t *testing.T, _, mmproj string) {
			if err := os.Truncate(mmproj, 100); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"another checkpoint", func(t *testing.T, dir, _ string) {
			flip(t, filepath.Join(dir, "model.safetensors"), -2)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, out := source().Write(t), t.TempDir()
			o := Options{Dir: dir, OutDir: out, Name: "m", OutType: OutBF16}
			if _, err := Run(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			mmproj := filepath.Join(out, "mmproj-m-BF16.gguf")
			tc.change(t, dir, mmproj)
			before, err := os.Stat(mmproj)
			if err != nil {
				t.Fatal(err)
			}
			o.OutType, o.DryRun = OutQ4_0, true
			if report, err := Run(context.Background(), o); err != nil || report.Files[1].Kept != tc.kept {
				t.Errorf("dry run: kept is %v (%v), want %v", report.Files[1].Kept, err, tc.kept)
			}
			o.DryRun = false
			report, err := Run(context.Background(), o)
			if !tc.kept {
				if !errors.Is(err, fs.ErrExist) {
					t.Errorf("error %v, want one that the file exists", err)
				}
				if left := filesIn(t, out); !slices.Equal(left, []string{"m-BF16.gguf", "mmproj-m-BF16.gguf"}) {
					t.Errorf("files %v", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if report.Files[0].Kept || !report.Files[1].Kept || report.Files[1].Path != mmproj {
				t.Errorf("report %+v", report.Files)
			}
			if after, err := os.Stat(mmproj); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("the file was written again (%v)", err)
			}
			if left := filesIn(t, out); !slices.Equal(left, []string{"m-BF16.gguf", "m-Q4_0.gguf", "mmproj-m-BF16.gguf"}) {
				t.Errorf("files %v", left)
			}
			// All of them again is still refused.
			if _, err := Run(context.Background(), o); !errors.Is(err, fs.ErrExist) {
				t.Errorf("error %v, want one that the file exists", err)
			}
		})
	}
}

// flip changes a byte of a file; from counts from the end if it is negative.
func flip(t *testing.T, path string, from int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if from < 0 {
		from += len(data)
	}
	data[from] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
