package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ends runs the program as a process of its own, for half a minute at most, and
// returns its exit status and what it says about it.
func ends(t *testing.T, dir string, args ...string) (status int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := command(t, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "INKLING_HOME="+filepath.Join(dir, "store"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"INKLING_BACKENDS="+filepath.Join(dir, "modules")) // where none are
	var text bytes.Buffer
	cmd.Stderr = &text
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err := cmd.Run()
	stop()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%q: not within 30 s: %s", args, &text)
	case errors.As(err, &exit):
		return exit.ExitCode(), text.String()
	case err != nil:
		t.Fatal(err)
	}
	return 0, text.String()
}

// TestExitStatus is the table of docs/commands.md, but for 130, which TestInterrupt
// has: wrong usage is told before a file is looked at.
func TestExitStatus(t *testing.T) {
	tiny := filepath.Join(models, "tiny-F32.gguf")
	run := func(args ...string) []string { return append([]string{"run", "nowhere.gguf", "hi"}, args...) }
	for _, tt := range []struct {
		args   []string
		status int
		stderr string // is in the message
	}{
		{[]string{"--version"}, exitOK, ""},
		{[]string{"run", "--help"}, exitOK, ""},
		{[]string{"show", tiny}, exitOK, ""},

		{nil, exitUsage, "no command"},
		{[]string{"walk"}, exitUsage, "unknown command"},
		{[]string{"run"}, exitUsage, "no model"},
		{run("--walk"), exitUsage, "-walk"},
		{run("--temp", "nan"), exitUsage, "temperature NaN"},
		{run("--temp", "-1"), exitUsage, "temperature -1"},
		{run("--temp", "warm"), exitUsage, `"warm"`},
		{run("--top-p", "1.5"), exitUsage, "top-p 1.5"},
		{run("--top-k", "-5"), exitUsage, "top-k -5"},
		{run("--min-p", "2"), exitUsage, "min-p 2"},
		{run("--repeat-penalty", "inf"), exitUsage, "repeat-penalty +Inf"},
		{run("--presence-penalty", "nan"), exitUsage, "presence-penalty NaN"},
		{run("--frequency-penalty", "3"), exitUsage, "frequency-penalty 3"},
		{run("--seed", "-5"), exitUsage, "--seed -5"},
		{run("--logit-bias", "1=nan"), exitUsage, `"1=nan"`},
		{run("--logit-bias", "1=-inf"), exitUsage, `"1=-inf"`},
		{run("--logit-bias", "x=1"), exitUsage, `"x=1"`},
		{run("--stop", ""), exitUsage, "--stop: a text is empty"},
		{run("-n", "0"), exitUsage, "-n 0"},
		{run("--threads", "0"), exitUsage, "--threads 0"},
		{run("--threads", "100000"), exitUsage, "--threads 100000: this machine has"},
		{run("--ctx-size", "-1"), exitUsage, "--ctx-size -1"},
		{run("--ubatch-size", "0"), exitUsage, "--ubatch-size 0"},
		{run("--kv", "q5_k"), exitUsage, "q5_k"},
		{run("--effort", "5"), exitUsage, "--effort"},
		{run("--draft", "99"), exitUsage, `--draft "99"`},
		{run("--n-cpu-moe", "-1"), exitUsage, "--n-cpu-moe -1"},
		{run("--tensor-split", "1,x"), exitUsage, "--tensor-split 1,x"},
		{run("--image-rescale", "nan"), exitUsage, "--image-rescale NaN"},
		{run("--max-image-pixels", "-1"), exitUsage, "--max-image-pixels -1"},
		{run("--mmproj", ""), exitUsage, "--mmproj: the value is empty"},
		{run("--mtp", ""), exitUsage, "--mtp: the value is empty"},
		{run("--format", ""), exitUsage, "--format: the value is empty"},
		{[]string{"run", tiny, "hi", "--device", "zz"}, exitUsage, "this build has no zz devices"},
		{[]string{"run", tiny, "hi", "--device", ","}, exitUsage, "want auto, cpu, or GPUs"},
		{[]string{"serve", "--port", "x"}, exitUsage, "x"},
		{[]string{"serve", "--parallel", "100000000"}, exitUsage, "--parallel 100000000: want at most 1024"},
		{[]string{"serve", "--max-body", "99999999999999"}, exitUsage, "--max-body"},
		{[]string{"serve", "--keep-alive", "soon"}, exitUsage, "--keep-alive"},
		{[]string{"serve", "--client-timeout", "-1s"}, exitUsage, "--client-timeout"},
		{[]string{"bench", "m.gguf", "--threads", "100000"}, exitUsage, "--threads 100000"},
		{[]string{"eval", "m.gguf"}, exitUsage, "nothing to measure with"},
		{[]string{"show"}, exitUsage, "0 models"},
		{[]string{"rm", "a:b:c"}, exitUsage, "a:b:c"},

		{run(), exitError, "nowhere.gguf: no such file"},
		{[]string{"run", "nobody", "hi"}, exitError, "no such model"},
		{[]string{"run", tiny, "hi", "--ctx-size", "9000"}, exitError, "more than the 8192 positions"},
		{[]string{"run", tiny, "hi", "--logit-bias", "99999=1"}, exitError, "token 99999"},
		{[]string{"run", tiny, "hi", "--device", "cuda:0"}, exitError, `device "cuda:0"`},
		{[]string{"run", tiny, "hi", "--image", "nowhere.png"}, exitError, "nowhere.png"},
		{[]string{"show", "nowhere.gguf"}, exitError, "nowhere.gguf"},
		{[]string{"serve", "nowhere.gguf"}, exitError, "nowhere.gguf"},
		{[]string{"rm", "nobody"}, exitError, "nobody"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			status, stderr := ends(t, t.TempDir(), tt.args...)
			if status != tt.status || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit status %d, want %d; standard error %q, want %q", status, tt.status, stderr, tt.stderr)
			}
		})
	}
}

// TestOddFiles: what is no file of a model is told at once, by its name, wherever it
// is named; nothing is waited for.
func TestOddFiles(t *testing.T) {
	tiny := filepath.Join(models, "tiny-F32.gguf")
	odd := map[string]func(path string) error{
		"pipe":     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":   func(path string) error { return os.Mkdir(path, 0o700) },
		"device":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"empty":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"dangling": func(path string) error { return os.Symlink("nothing-here", path) },
		"loop":     func(path string) error { return os.Symlink(filepath.Base(path), path) },
	}
	for kind, create := range odd {
		for place, args := range map[string][]string{
			"model":       {"run", "odd", "hi", "-t", "1"},
			"mmproj":      {"run", tiny, "hi", "-t", "1", "--mmproj", "odd"},
			"mtp":         {"run", tiny, "hi", "-t", "1", "--mtp", "odd"},
			"served":      {"serve", "odd", "--port", "0"},
			"mtp, forced": {"run", tiny, "hi", "-t", "1", "--mtp", "odd", "--draft", "2"},
			"show":        {"show", "odd"},
			"tokenize":    {"tokenize", "odd", "hi"},
			"doctor":      {"doctor", "odd"},
			"bench":       {"bench", "odd"},
		} {
			t.Run(kind+"/"+place, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := create(filepath.Join(dir, "odd")); err != nil {
					t.Fatal(err)
				}
				status, stderr := ends(t, dir, args...)
				if status != exitError || !strings.Contains(stderr, "odd") || strings.Count(stderr, "inkling-run: ") != 1 {
					t.Errorf("exit status %d, standard error %q", status, stderr)
				}
				if kind == "dangling" && !strings.Contains(stderr, "nothing-here") && !strings.Contains(stderr, "no such file") {
					t.Errorf("says nothing of the link: %q", stderr)
				}
			})
		}
	}
}
