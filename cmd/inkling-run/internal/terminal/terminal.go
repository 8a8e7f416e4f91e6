// Package terminal is what the program does with a terminal: styles, a line that is written
// over, lines that a person edits, and their history.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// ANSI sequences for text that is not the answer.
const (
	DimOn  = "\x1b[2m"
	DimOff = "\x1b[0m"
)

// eraseLine returns to the beginning of the line and empties it.
const eraseLine = "\r\x1b[K"

// Is reports whether a stream of the program is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// obeys reports whether a stream is a terminal that knows escape sequences.
func obeys(w any) bool { return Is(w) && os.Getenv("TERM") != "dumb" }

// Styled reports whether text on a stream may be dim, bold or coloured. See
// https://no-color.org for the variable.
func Styled(w any) bool { return obeys(w) && os.Getenv("NO_COLOR") == "" }

// Dim writes a line, dim on a terminal.
func Dim(w io.Writer, line string) {
	if Is(w) {
		line = Harmless(line)
	}
	if Styled(w) {
		line = DimOn + line + DimOff
	}
	fmt.Fprintln(w, line)
}

// Columns is the width of a terminal in cells.
func Columns(w any) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// Harmless takes out of a text what a terminal would not print but obey: control
// characters but for line ends and tabs, and those that change the direction of
// the text around them.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s)
}

// CompactJSON is JSON on one line, for people.
func CompactJSON(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return OneLine(string(data))
	}
	return Harmless(b.String())
}

// StatusLine is a line on a terminal that is written over, and gone in the end.
type StatusLine struct {
	w     io.Writer
	on    bool // w is a terminal
	shown string
}

// NewStatusLine returns a line that stays empty where w is no terminal.
func NewStatusLine(w io.Writer) *StatusLine { return &StatusLine{w: w, on: obeys(w)} }

// Show puts a text in place of the line. Of one that is too long the end is shown.
func (l *StatusLine) Show(text string) {
	if !l.on {
		return
	}
	text = strings.ReplaceAll(Harmless(text), "\t", " ")
	width := Columns(l.w) - 1 // a full line would scroll
	if over := runewidth.StringWidth(text) - width; over > 0 {
		text = runewidth.TruncateLeft(text, over+1, "…")
	}
	if text == l.shown {
		return
	}
	l.shown = text
	if Styled(l.w) {
		text = DimOn + text + DimOff
	}
	_, _ = io.WriteString(l.w, eraseLine+text) // it informs, and that is all
}

// Clear takes the line away.
func (l *StatusLine) Clear() {
	if l.shown != "" {
		l.shown = ""
		_, _ = io.WriteString(l.w, eraseLine)
	}
}

// maxMessage bounds a message that quotes its cause.
const maxMessage = 2000

// OneLine joins the lines of a message, which are several errors that happened
// together, writes out control characters, and cuts what is too long to read.
func OneLine(msg string) string {
	msg = strings.Join(strings.FieldsFunc(msg, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, msg)
}
