package inkling_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsSecurity: the tests that docs/security.md and docs/limits.md name exist, and so do the limits in the files that are given
// for them.
func TestDocsSecurity(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(text(t, path), -1) {
			tests[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	n := 0
	for _, page := range []string{"docs/security.md", "docs/limits.md"} {
		for _, m := range named.FindAllStringSubmatch(text(t, page), -1) {
			n++
			if !tests[m[1]] {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	if n < 150 {
		t.Errorf("%d tests named, want more", n)
	}

	limit := regexp.MustCompile("`(\\w+)` in \\[([^]]+)\\]")
	found := limit.FindAllStringSubmatch(text(t, "docs/limits.md"), -1)
	if len(found) < 30 {
		t.Errorf("%d limits named, want more", len(found))
	}
	for _, m := range found {
		source, err := os.ReadFile(m[2])
		if err != nil {
			t.Error(err)
		} else if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(source) {
			t.Errorf("docs/limits.md: %s has no %s", m[2], m[1])
		}
	}
}
