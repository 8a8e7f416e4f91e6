package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "history")
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	h.Add("one")
	h.Add("")
	h.Add("two\x1b[2J")
	h.Add("two[2J") // again
	h.Add(strings.Repeat("x", historyLine+1))
	h.paused = true
	h.Add("y")
	h.paused = false
	h.Add("three")
	if d := cmp.Diff([]string{"three", "two[2J", "one"}, []string{h.At(0), h.At(1), h.At(2)}); d != "" || h.Len() != 3 {
		t.Errorf("%d lines (-want +got):\n%s", h.Len(), d)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", st.Mode(), err)
	}
	again, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h.lines, again.lines); d != "" {
		t.Errorf("after reading (-want +got):\n%s", d)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var text strings.Builder
	for i := range historyLines + 5 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); h.Len() != historyLines || got != historyLines {
		t.Errorf("%d lines, and %d in the file, want %d", h.Len(), got, historyLines)
	}
	if got := h.At(h.Len() - 1); got != "line 5" {
		t.Errorf("the oldest line is %q", got)
	}
	h.Add("new")
	if h.Len() != historyLines || h.At(0) != "new" {
		t.Errorf("%d lines after one more, the last is %q", h.Len(), h.At(0))
	}
}

// TestHistoryWithout goes on without a file that can not be one.
func TestHistoryWithout(t *testing.T) {
	h, err := OpenHistory(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("%v for a folder", err)
	}
	h.Add("x")
	if h.Len() != 1 {
		t.Error("a line is lost")
	}
	if h, err := OpenHistory(""); err != nil || h.Path != "" {
		t.Errorf("%v, path %q", err, h.Path)
	}
}
