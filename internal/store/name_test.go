package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "https://mirror.example:8443")
	for _, tt := range []struct{ text, want, path string }{
		{"tiny", "tiny:latest", "local/library/tiny/latest"},
		{"Tiny:Q8_0", "Tiny:Q8_0", "local/library/tiny/q8_0"},
		{"me/tiny", "me/tiny:latest", "local/me/tiny/latest"},
		{"library/tiny", "tiny:latest", "local/library/tiny/latest"},
		{"localhost:5000/me/tiny:v1.5", "localhost:5000/me/tiny:v1.5", "localhost:5000/me/tiny/v1.5"},
		{"hf.co/Org/Repo-GGUF:Q4_K_M", "hf.co/Org/Repo-GGUF:Q4_K_M", "hf.co/org/repo-gguf/q4_k_m"},
		{"huggingface.co/o/r", "hf.co/o/r:latest", "hf.co/o/r/latest"},
		{"HF.co/o/r", "hf.co/o/r:latest", "hf.co/o/r/latest"},
		{"https://huggingface.co/o/r", "hf.co/o/r:latest", "hf.co/o/r/latest"},
		{"https://huggingface.co/o/r/tree/main", "hf.co/o/r:latest", "hf.co/o/r/latest"},
		{"https://hf.co/o/r:q8_0", "hf.co/o/r:q8_0", "hf.co/o/r/q8_0"},
		{"https://mirror.example:8443/o/r", "hf.co/o/r:latest", "hf.co/o/r/latest"},
		{"_x", "_x:latest", "local/library/_x/latest"},
	} {
		n, err := ParseName(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := n.String(); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.text, got, tt.want)
		}
		if got := n.path(); got != filepath.FromSlash(tt.path) {
			t.Errorf("%s lies at %s, want %s", tt.text, got, tt.path)
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%s read again is %v, %v", n, again, err)
		}
	}
}

func TestParseNameErrors(t *testing.T) {
	for _, text := range []string{
		"", ":", "a:", ":b", "/", "a/", "/a", "a//b", "a/b/c/d", "..", "../a", "a/../b", "hf.co/../r", "hf.co/o/..", ".a", "-a", "a b", "a\x00", "a\nb",
		`a\b`, "a:b:c", "a:..", "a:.b", "a:b/../c", "ä", "a@b", "o.x/r", strings.Repeat("a", 81), "a:" + strings.Repeat("b", 81),
		"https://huggingface.co/o", "https://huggingface.co/o/r/blob/main/x.gguf", "https:///o/r", "https://user@huggingface.co/o/r", "http://%zz/o/r",
	} {
		n, err := ParseName(text)
		var bad *NameError
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v, %v, want a NameError", text, n, err)
		}
	}
}

// FuzzParseName checks that no name leads out of its folder.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a", "a/b:c", "hf.co/o/r:Q8_0", "https://hf.co/o/r", "../../etc/passwd", "a:b:c/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseName(text)
		if err != nil {
			return
		}
		path := n.path()
		if !filepath.IsLocal(path) || strings.Count(filepath.ToSlash(path), "/") != 3 {
			t.Errorf("%q lies at %q", text, path)
		}
		for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
			if strings.HasPrefix(part, ".") {
				t.Errorf("%q has the part %q", text, part)
			}
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%q is %s, which is %v, %v", text, n, again, err)
		}
	})
}

func TestSafeName(t *testing.T) {
	for path, want := range map[string]string{
		"dir/m-Q4_K_M.gguf": "m-Q4_K_M.gguf",
		"M.GGUF":            "M.gguf",
		"no extension":      "no extension.gguf",
		".hidden.gguf":      "_hidden.gguf",
		"été(1).gguf":       "_t_1_.gguf",
		".gguf":             "_.gguf",
		"a\n.gguf":          "a_.gguf",
		strings.Repeat("x", 300) + "-00001-of-00002.gguf": strings.Repeat("x", 185) + "-00001-of-00002.gguf",
	} {
		got := safeName(path)
		if got != want || !fileName.MatchString(got) {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}
