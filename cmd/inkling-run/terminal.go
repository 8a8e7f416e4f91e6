package main

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
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
)

// eraseLine returns to the beginning of the line and empties it.
const eraseLine = "\r\x1b[K"

// isTerminal reports whether a stream of the program is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// obeys reports whether a stream is a terminal that knows escape sequences.
func obeys(w any) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// styled reports whether text on a stream may be dim, bold or coloured. See
// https://no-color.org for the variable.
func styled(w any) bool { return obeys(w) && os.Getenv("NO_COLOR") == "" }

// dim writes a line, dim on a terminal.
func dim(w io.Writer, line string) {
	if isTerminal(w) {
		line = harmless(line)
	}
	if styled(w) {
		line = dimOn + line + dimOff
	}
	fmt.Fprintln(w, line)
}

// columns is the width of a terminal in cells.
func columns(w any) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// harmless takes out of a text what a terminal would not print but obey: control
// characters but for line ends and tabs, and those that change the direction of
// the text around them.
func harmless(s string) string {
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

// compact is JSON on one line, for people.
func compact(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return oneLine(string(data))
	}
	return harmless(b.String())
}

// statusLine is a line on a terminal that is written over, and gone in the end.
type statusLine struct {
	w     io.Writer
	on    bool // w is a terminal
	shown string
}

func newStatusLine(w io.Writer) *statusLine { return &statusLine{w: w, on: obeys(w)} }

// show puts a text in place of the line. Of one that is too long the end is shown.
func (l *statusLine) show(text string) {
	if !l.on {
		return
	}
	text = strings.ReplaceAll(harmless(text), "\t", " ")
	width := columns(l.w) - 1 // a full line would scroll
	if over := runewidth.StringWidth(text) - width; over > 0 {
		text = runewidth.TruncateLeft(text, over+1, "…")
	}
	if text == l.shown {
		return
	}
	l.shown = text
	if styled(l.w) {
		text = dimOn + text + dimOff
	}
	_, _ = io.WriteString(l.w, eraseLine+text) // it informs, and that is all
}

// clear takes the line away.
func (l *statusLine) clear() {
	if l.shown != "" {
		l.shown = ""
		_, _ = io.WriteString(l.w, eraseLine)
	}
}

// maxMessage bounds a message that quotes its cause.
const maxMessage = 2000

// oneLine joins the lines of a message, which are several errors that happened
// together, writes out control characters, and cuts what is too long to read.
func oneLine(msg string) string {
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
