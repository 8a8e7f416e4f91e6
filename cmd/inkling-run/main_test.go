package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/tinymodel"
)

// models is a folder with the test checkpoints in f32: tiny-F32.gguf, trained,
// random-F32.gguf of half the width, which talks on until it is stopped, and
// kimi-F32.gguf, trained, each with its projector.
var models string

func TestMain(m *testing.M) {
	testscript.Main(withModels{m}, map[string]func(){"inkling-run": main})
}

// withModels converts the models before the tests run.
type withModels struct{ m *testing.M }

func (w withModels) Run() int {
	dir, err := os.MkdirTemp("", "inkling-run")
	if err == nil {
		defer os.RemoveAll(dir)
		models = dir
		err = convertModels()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.m.Run()
}

func convertModels() error {
	for name, c := range map[string]tinymodel.Checkpoint{"tiny": tinymodel.Inkling, "random": tinymodel.InklingRandom, "kimi": tinymodel.Kimi} {
		if _, err := tinymodel.Convert(filepath.Join("..", "..", "testdata", filepath.FromSlash(string(c))), models, name, convert.OutF32); err != nil {
			return err
		}
	}
	return nil
}

// command is the program as a process of its own: the test binary under another
// name.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"inkling-run"}, args...)
	return cmd
}
