package main

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFaultKilled kills conversions at random points. No output has its name before
// it is whole, and --resume comes to the same bytes.
func TestFaultKilled(t *testing.T) {
	checkpoint, err := filepath.Abs("../../testdata/inkling-tiny")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	convert := func(dir string, more ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd, stderr := exec.CommandContext(t.Context(), self), new(bytes.Buffer)
		cmd.Args = append([]string{"convert-inkling", checkpoint, "-o", dir, "--name", "m", "--outtype", "q8_0", "--jobs", "1"}, more...)
		cmd.Stderr = stderr
		return cmd, stderr
	}
	whole := t.TempDir()
	start := time.Now()
	if cmd, stderr := convert(whole); cmd.Run() != nil {
		t.Fatal(stderr)
	}
	took := time.Since(start)
	want := sums(t, whole)

	dir, killed := t.TempDir(), 0
	for range 8 {
		cmd, stderr := convert(dir, "--resume")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(took))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			if cmd.ProcessState.Exited() && !strings.Contains(stderr.String(), "already exists") {
				t.Fatalf("not killed: %v: %s", err, stderr)
			}
			killed++
		}
		for name, sum := range sums(t, dir) {
			if !strings.HasSuffix(name, ".partial") && sum != want[name] {
				t.Errorf("%s has its name and is not whole", name)
			}
		}
	}
	t.Logf("%d of 8 conversions of %s were killed", killed, took)
	if cmd, stderr := convert(dir, "--resume", "--force"); cmd.Run() != nil {
		t.Fatal(stderr)
	}
	got := sums(t, dir)
	if len(got) != len(want) {
		t.Errorf("%d files in the end, want %d", len(got), len(want))
	}
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s has other content after %d kills", name, killed)
		}
	}
}

// sums are the hashes of the files of a folder.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][32]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = sha256.Sum256(data)
	}
	return all
}
