package repl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
)

// attach keeps a medium for the next message, after a look whether it is there.
func (t *Chat) attach(ctx context.Context, kind chat.Kind, path string) {
	p, err := flags.MediaPart(kind, path)
	if err == nil {
		err = t.look(ctx, p)
	}
	if err != nil {
		fmt.Fprintln(t.Stderr, terminal.OneLine(err.Error()))
		return
	}
	t.pending = append(t.pending, p)
	terminal.Dim(t.Stdout, "before the next message: "+counted(t.pending))
}

// look finds out whether the model takes a medium and whether it can be read.
func (t *Chat) look(ctx context.Context, p chat.Part) error {
	takes := map[chat.Kind]func() bool{chat.Image: t.Engine.HasImage, chat.Audio: t.Engine.HasAudio, chat.Video: t.Engine.HasVideo}
	if !takes[p.Kind]() {
		return fmt.Errorf("%s: the model has no projector for %s", p.Source, flags.KindNames[p.Kind].Many)
	}
	if p.Kind == chat.Video { // a file may be larger than Load takes, or be a folder or a pattern
		if path, ok := t.Request.Local(p.Source); ok {
			if strings.ContainsRune(path, '%') {
				return nil
			}
			_, err := os.Stat(path)
			return err
		}
	}
	return interrupt.Run(ctx, func(ctx context.Context) error {
		_, _, err := t.Request.Load(ctx, p.Source)
		return err
	})
}

// takeMedia attaches the media whose paths stand alone on a line, and returns
// the other lines.
func (t *Chat) takeMedia(ctx context.Context, text string) string {
	var rest []string
	for line := range strings.Lines(text) {
		path := typedPath(strings.TrimSpace(line))
		if kind, ok := pathKind(path); ok {
			t.attach(ctx, kind, path)
			continue
		}
		rest = append(rest, line)
	}
	return strings.TrimSpace(strings.Join(rest, ""))
}

// pathKind is the kind of the medium at a path as it is pasted or dragged onto a
// terminal: a file whose name says what it is, or a folder of pictures, which
// has to look like a path.
func pathKind(path string) (chat.Kind, bool) {
	st, err := os.Stat(path)
	if err != nil {
		return chat.Text, false
	}
	if st.IsDir() {
		return chat.Video, strings.ContainsRune(path, filepath.Separator) && hasPictures(path)
	}
	kind, ok := flags.NameKind(path)
	return kind, ok && st.Mode().IsRegular()
}

// hasPictures reports whether a folder holds pictures.
func hasPictures(dir string) bool {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, f := range files {
		if kind, ok := flags.NameKind(f.Name()); ok && kind == chat.Image {
			return true
		}
	}
	return false
}

// typedPath is a path as typed, or dragged onto the terminal, without what a
// shell would take away: quotes, backslashes before spaces, ~.
func typedPath(s string) string {
	if len(s) > 1 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	s = strings.ReplaceAll(s, `\ `, " ")
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			s = filepath.Join(home, rest)
		}
	}
	return s
}

// counted says how many media of which kinds there are: "2 pictures, 1 sound".
func counted(parts []chat.Part) string {
	var out []string
	for _, kind := range []chat.Kind{chat.Image, chat.Audio, chat.Video} {
		n := 0
		for _, p := range parts {
			if p.Kind == kind {
				n++
			}
		}
		switch name := flags.KindNames[kind]; n {
		case 0:
		case 1:
			out = append(out, "1 "+name.One)
		default:
			out = append(out, fmt.Sprintf("%d %s", n, name.Many))
		}
	}
	return strings.Join(out, ", ")
}
