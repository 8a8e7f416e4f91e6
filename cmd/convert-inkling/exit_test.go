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
// returns its exit status and what it says about it. interrupt, if it is not nil,
// says when it gets a ctrl-C.
func ends(t *testing.T, dir string, interrupt func() bool, args ...string) (status int, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Dir = append([]string{"convert-inkling"}, args...), dir
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if interrupt != nil {
		for !interrupt() && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	err = cmd.Wait()
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

// TestExitStatus is the table of docs/commands.md for this program.
func TestExitStatus(t *testing.T) {
	tiny, err := filepath.Abs("../../testdata/inkling-tiny-random/original")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		stderr string // is in the message
	}{
		{[]string{"--help"}, exitOK, ""},
		{[]string{tiny, "-o", "out", "--dry-run"}, exitOK, ""},

		{nil, exitUsage, "0 folders"},
		{[]string{"a", "b"}, exitUsage, "2 folders"},
		{[]string{""}, exitUsage, "name is empty"},
		{[]string{"a", "--walk"}, exitUsage, "-walk"},
		{[]string{"a", "--outtype", "q5"}, exitUsage, `"q5"`},
		{[]string{"a", "--outtype", ""}, exitUsage, "--outtype"},
		{[]string{"a", "--jobs", "0"}, exitUsage, "--jobs 0: want 1 to 1024"},
		{[]string{"a", "--jobs", "-1"}, exitUsage, "--jobs -1"},
		{[]string{"a", "--jobs", "100000"}, exitUsage, "--jobs 100000"},
		{[]string{"a", "--split-max-size", "nan"}, exitUsage, `"nan"`},
		{[]string{"a", "--split-max-size", "-5G"}, exitUsage, `"-5G"`},
		{[]string{"a", "--split-max-size", "1e99"}, exitUsage, `"1e99"`},
		{[]string{"a", "--name", "x/y"}, exitUsage, `"x/y"`},
		{[]string{"a", "--name", ""}, exitUsage, "--name"},
		{[]string{"a", "-o", ""}, exitUsage, "--output"},
		{[]string{"a", "--only", "sound"}, exitUsage, "--only sound"},
		{[]string{"a", "--only", ""}, exitUsage, "--only: the value is empty"},
		{[]string{"a", "--recipe", ""}, exitUsage, "--recipe: the value is empty"},
		{[]string{"a", "--imatrix", ""}, exitUsage, "--imatrix: the value is empty"},
		{[]string{"synth", "inkling-0.6b", "--layers", "-1"}, exitUsage, "--layers -1"},
		{[]string{"synth", "inkling-0.6b", "--seed", "x"}, exitUsage, `"x"`},

		{[]string{"nowhere"}, exitError, "nowhere: no such file"},
		{[]string{"."}, exitError, "config.json: no such file"},
		{[]string{tiny, "-o", "out", "--imatrix", "nowhere"}, exitError, "--imatrix: stat nowhere"},
		{[]string{tiny, "-o", "/dev/null/x"}, exitError, "not a directory"},
		{[]string{"synth", "nowhere.json"}, exitError, "nowhere.json"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			status, stderr := ends(t, t.TempDir(), nil, tt.args...)
			if status != tt.status || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit status %d, want %d; standard error %q, want %q", status, tt.status, stderr, tt.stderr)
			}
		})
	}
	t.Run("ctrl-C", func(t *testing.T) {
		dir := t.TempDir()
		begun := func() bool {
			found, err := filepath.Glob(filepath.Join(dir, "out", "*.partial"))
			return err == nil && len(found) > 0
		}
		status, stderr := ends(t, dir, begun, "synth", "inkling-0.6b", "-o", "out", "--outtype", "q4_k_m", "--jobs", "1")
		if status != exitInterrupted || !strings.Contains(stderr, "interrupted") {
			t.Errorf("exit status %d, want %d: %s", status, exitInterrupted, stderr)
		}
	})
}

// TestOddFiles: what is no checkpoint and no matrix is told at once, by its name;
// nothing is waited for.
func TestOddFiles(t *testing.T) {
	tiny, err := filepath.Abs("../../testdata/inkling-tiny-random/original")
	if err != nil {
		t.Fatal(err)
	}
	for kind, create := range map[string]func(path string) error{
		"pipe":     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":   func(path string) error { return os.Mkdir(path, 0o700) },
		"device":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"empty":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"dangling": func(path string) error { return os.Symlink("nothing-here", path) },
		"loop":     func(path string) error { return os.Symlink(filepath.Base(path), path) },
	} {
		for place, args := range map[string][]string{
			"checkpoint": {"odd", "-o", "out"},
			"imatrix":    {tiny, "-o", "out", "--outtype", "q8_0", "--imatrix", "odd"},
			"recipe":     {tiny, "-o", "out", "--recipe", "odd"},
			"config":     {"synth", "odd", "-o", "out"},
			"in place":   {"m", "-o", "out"},
		} {
			t.Run(kind+"/"+place, func(t *testing.T) {
				dir, at := t.TempDir(), "odd"
				if place == "in place" { // of the checkpoint's own config
					at = "m/config.json"
					if err := os.Mkdir(filepath.Join(dir, "m"), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if err := create(filepath.Join(dir, at)); err != nil {
					t.Fatal(err)
				}
				status, stderr := ends(t, dir, nil, args...)
				if status != exitError || !strings.Contains(stderr, at) || strings.Count(stderr, "convert-inkling: ") != 1 {
					t.Errorf("exit status %d, standard error %q", status, stderr)
				}
			})
		}
	}
}
