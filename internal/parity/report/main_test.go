package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/parity"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	lines, more := filepath.Join(dir, "lines"), filepath.Join(dir, "more")
	for path, device := range map[string]string{lines: "CPU", more: "GPU0"} {
		if err := parity.Append(path, parity.Comparison{Package: "binding/op", Test: "TestFold", Name: "fold", Device: device, Measure: parity.ErrorOf}); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "report.md")
	if err := run("abc1234", "2026-02-03", out, []string{lines, more}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{out: "| Fold | fold | GPU0 |", filepath.Join(dir, "report.svg"): "<svg"} {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s does not contain %q", path, want)
		}
	}
}

func TestRunErrors(t *testing.T) {
	dir := t.TempDir()
	empty, broken := filepath.Join(dir, "empty"), filepath.Join(dir, "broken")
	for path, text := range map[string]string{empty: "", broken: "{\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		empty:                         "no comparisons",
		broken:                        "broken: line 1",
		filepath.Join(dir, "missing"): "no such file",
	} {
		out := filepath.Join(dir, "report.md")
		if err := run("", "", out, []string{path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", path, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a report was written", path)
		}
	}
}
