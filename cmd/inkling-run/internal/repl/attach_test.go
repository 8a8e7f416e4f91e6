package repl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
)

func TestTypedPath(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for in, want := range map[string]string{
		"a.png":           "a.png",
		"my picture.png":  "my picture.png",
		`my\ picture.png`: "my picture.png",
		`'my picture'`:    "my picture",
		`"~/a.png"`:       "~/a.png",
		`'`:               `'`,
		`'a`:              `'a`,
		"~/a b.png":       "/home/me/a b.png",
		"~":               "~",
		"http://x/~/a":    "http://x/~/a",
	} {
		if got := typedPath(in); got != want {
			t.Errorf("typedPath(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPathKind: what is taken for a medium when its path stands alone on a line.
func TestPathKind(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("clip/f1.jpg", "")
	write("notes/a.txt", "")
	for _, c := range []struct {
		path   string
		want   chat.Kind
		medium bool
	}{
		{write("a.PNG", ""), chat.Image, true},
		{write("a.wav", ""), chat.Audio, true},
		{write("a.tar.mkv", ""), chat.Video, true},
		{write("png", "\x89PNG\r\n\x1a\n"), chat.Text, false},
		{write("empty", ""), chat.Text, false},
		{filepath.Join(dir, "clip"), chat.Video, true},
		{filepath.Join(dir, "notes"), chat.Video, false},
		{filepath.Join(dir, "f%03d.png"), chat.Text, false},
		{filepath.Join(dir, "nowhere.png"), chat.Text, false},
	} {
		if got, ok := pathKind(c.path); ok != c.medium || ok && got != c.want {
			t.Errorf("%s: %v %v, want %v %v", c.path, got, ok, c.want, c.medium)
		}
	}
	t.Chdir(dir)
	if _, ok := pathKind("clip"); ok {
		t.Error("a word that is the name of a folder was taken for a video")
	}
	if _, ok := pathKind(""); ok {
		t.Error("an empty line was taken for a medium")
	}
}
