package flags

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
)

func TestFileKind(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "clip"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want chat.Kind // chat.Text: none
	}{
		{write("a.PNG", ""), chat.Image},
		{write("a.wav", ""), chat.Audio},
		{write("a.tar.mkv", ""), chat.Video},
		{write("png", "\x89PNG\r\n\x1a\n"), chat.Image},
		{write("sound", "RIFF\x00\x00\x00\x00WAVE"), chat.Audio},
		{write("ogg", "OggS\x00"), chat.Audio},
		{write("video", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), chat.Video},
		{write("text", "hello"), chat.Text},
		{write("empty", ""), chat.Text},
		{filepath.Join(dir, "clip"), chat.Video},
		{filepath.Join(dir, "f%03d.png"), chat.Video},
		{filepath.Join(dir, "nowhere.png"), chat.Text},
	} {
		got, err := FileKind(c.path)
		if got != c.want || (err != nil) != (c.want == chat.Text) {
			t.Errorf("%s: %v, %v, want %v", c.path, got, err, c.want)
		}
	}
}
