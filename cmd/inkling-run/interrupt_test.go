package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestInterrupt ends the program by a signal while it answers, and while it reads
// from a pipe that nobody closes.
func TestInterrupt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		signal os.Signal
		args   []string
		stdin  bool // leave it open
	}{
		{"answer", os.Interrupt, []string{filepath.Join(models, "random-F32.gguf"), "hello", "--show-special", "-t", "1"}, false},
		{"terminated", syscall.SIGTERM, []string{filepath.Join(models, "random-F32.gguf"), "hello", "--show-special", "-t", "1"}, false},
		{"standard input", os.Interrupt, []string{filepath.Join(models, "random-F32.gguf")}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := command(t, append([]string{"run"}, tc.args...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if tc.stdin {
				if _, err := cmd.StdinPipe(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.stdin {
				time.Sleep(time.Second) // until it reads, which nothing shows
			} else if _, err := io.ReadFull(stdout, make([]byte, 64)); err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			start := time.Now()
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stdout)
			took := time.Since(start)
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
				t.Errorf("%v, want exit status %d", err, exitInterrupted)
			}
			if took > time.Second {
				t.Errorf("took %v", took)
			}
			if !bytes.HasSuffix(stderr.Bytes(), []byte("inkling-run: interrupted\n")) {
				t.Errorf("standard error %q", &stderr)
			}
		})
	}
}
