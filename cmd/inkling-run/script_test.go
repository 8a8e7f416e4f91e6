package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
	"github.com/inkling-go/inkling/internal/gguf"
)

// TestScripts runs testdata/script. The scripts find the checkpoints for tests in
// $TESTDATA and the converted ones in $MODELS, and have commands of their own:
//
//	fails N CMD ARGS...   run a command that must end with this exit status and one line on standard error
//	cut FILE N            take N bytes off the end
//	gguf FILE ARCH        make a file of this architecture, without tensors
//	count N PATTERN       check that so many files match
//	prompt A B            check that two outputs of run --json have the same prompt
//	expand FILE...        put the values of $VARIABLES into files
//	damage CACHE          take the text file from each entry, and leave a partial one beside it
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TESTDATA", root)
			env.Setenv("MODELS", models)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("INKLING_HOME", filepath.Join(env.WorkDir, "store"))
			hub := startHub()
			env.Defer(hub.Close)
			env.Setenv("HF_ENDPOINT", hub.URL)
			env.Setenv("INKLING_HOST", hub.URL)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fails": fails, "cut": cut, "gguf": makeGGUF, "count": count, "damage": damage, "expand": expand, "prompt": samePrompt,
		},
	})
}

func fails(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("error %v, want exit status %d", err, want)
	}
	if got := exit.ExitCode(); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	var lines []string
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		// Plain go test builds without SIMD.
		if !strings.HasPrefix(line, "warning: built without ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "inkling-run: ") || !strings.HasSuffix(lines[0], "\n") {
		ts.Fatalf("standard error is not one line of the program's: %q", lines)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output of a failure: %q", out)
	}
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(len(ts.ReadFile(args[0]))-n)))
}

func makeGGUF(ts *testscript.TestScript, _ bool, args []string) {
	w, err := gguf.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(w.Set("general.architecture", args[1]))
	ts.Check(w.Commit())
}

func count(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	found, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(found) != want {
		ts.Fatalf("%d files match %s, want %d: %q", len(found), args[1], want, found)
	}
}

func samePrompt(ts *testscript.TestScript, neg bool, args []string) {
	var prompts [2][]int32
	for i, file := range args {
		var r session.Result
		if err := json.Unmarshal([]byte(ts.ReadFile(file)), &r); err != nil || len(r.PromptTokenIDs) == 0 {
			ts.Fatalf("%s: no result with a prompt: %v", file, err)
		}
		prompts[i] = r.PromptTokenIDs
	}
	if slices.Equal(prompts[0], prompts[1]) == neg {
		ts.Fatalf("prompts %v", prompts)
	}
}

func damage(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
	ts.Check(err)
	for _, entry := range entries {
		text, err := filepath.Glob(filepath.Join(entry, "tiny-*"))
		ts.Check(err)
		for _, path := range text {
			ts.Check(os.Remove(path))
		}
		ts.Check(os.Mkdir(entry+".partial", 0o777))
		ts.Check(os.WriteFile(filepath.Join(entry+".partial", "tiny-BF16.gguf.partial"), []byte("x"), 0o666))
	}
}

func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		text := os.Expand(ts.ReadFile(file), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o666))
	}
}
