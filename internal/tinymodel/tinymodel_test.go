package tinymodel

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestFiles: tests that want a checkpoint at once share one conversion, each type
// has a folder of its own, and Main takes all of it away.
func TestFiles(t *testing.T) {
	var got [4]Files
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = KimiRandom.Files(t, "f32") })
	}
	wg.Wait()
	dir := filepath.Dir(got[0].Model)
	want := Files{
		Model:  filepath.Join(dir, "kimi-k25-tiny-random-F32.gguf"),
		MMProj: filepath.Join(dir, "mmproj-kimi-k25-tiny-random-F32.gguf"),
	}
	for _, f := range got {
		if d := cmp.Diff(want, f); d != "" {
			t.Errorf("files (-want +got):\n%s", d)
		}
	}
	for _, path := range []string{want.Model, want.MMProj} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if other := KimiRandom.Files(t, "q8_0"); filepath.Dir(other.Model) == dir {
		t.Errorf("q8_0 is in the folder of f32: %s", other.Model)
	}
	Main(noTests{})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: error %v, want it to be gone", dir, err)
	}
}

type noTests struct{}

func (noTests) Run() int { return 0 }
