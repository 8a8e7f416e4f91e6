package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/inkling-go/inkling/convert"
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
	for name, dir := range map[string]string{"tiny": "inkling-tiny", "random": "inkling-tiny-random/original", "kimi": "kimi-tiny"} {
		_, err := convert.Run(context.Background(), convert.Options{
			Dir: filepath.Join("..", "..", "testdata", dir), OutDir: models, Name: name, OutType: convert.OutF32,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// command is the program as a process of its own: the test binary under another
// name.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"inkling-run"}, args...)
	return cmd
}
