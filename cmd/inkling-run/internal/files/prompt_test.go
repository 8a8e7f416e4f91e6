package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadPrompt(t *testing.T) {
	text := func(s string) func(t *testing.T) io.Reader {
		return func(*testing.T) io.Reader { return strings.NewReader(s) }
	}
	null := func(t *testing.T) io.Reader { return openFile(t, os.DevNull) }
	for _, tc := range []struct {
		name  string
		args  []string
		stdin func(*testing.T) io.Reader
		asIs  bool
		want  string
	}{
		{"arguments", []string{"a", "b  c"}, null, false, "a b  c"},
		{"nothing", nil, null, false, ""},
		{"input", nil, text("a\nb\n"), false, "a\nb"},
		{"input before the arguments", []string{"c", "d"}, text("a\nb\r\n\n"), false, "a\nb\nc d"},
		{"input without text", []string{"c"}, text("\n"), false, "c"},
		{"as it is", []string{"c"}, text("a\n"), true, "a\nc"},
		{"file", []string{"c"}, func(t *testing.T) io.Reader {
			path := filepath.Join(t.TempDir(), "prompt")
			if err := os.WriteFile(path, []byte("a\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			return openFile(t, path)
		}, false, "a\nc"},
		{"pipe", []string{"c"}, func(t *testing.T) io.Reader {
			r, w := pipe(t)
			if _, err := w.WriteString("a\n"); err != nil {
				t.Fatal(err)
			}
			w.Close()
			return r
		}, false, "a\nc"},
		{"none", []string{"c"}, func(*testing.T) io.Reader { return nil }, false, "c"},
		{"closed", []string{"c"}, func(t *testing.T) io.Reader {
			r, _ := pipe(t)
			r.Close()
			return r
		}, false, "c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ReadPrompt(tc.args, tc.stdin(t), io.Discard, tc.asIs)
			if err != nil || got != tc.want {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestReadPromptInherited has a socket for standard input that nobody closes, as
// services hand it on.
func TestReadPromptInherited(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	done := make(chan string, 1)
	go func() {
		text, _ := ReadPrompt([]string{"hello"}, theirs, io.Discard, false)
		done <- text
	}()
	select {
	case text := <-done:
		if text != "hello" {
			t.Errorf("%q, want hello", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("waits for a socket")
	}
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
