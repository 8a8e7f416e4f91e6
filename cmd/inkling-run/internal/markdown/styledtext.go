package markdown

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// style is a set of ways to write text.
type style uint8

const (
	bold style = 1 << iota
	faint
	italic
	underlined
	struck
	code
)

// sequences are the ANSI parameters of the styles, in the order of their bits;
// code is cyan.
var sequences = [...]string{"1", "2", "3", "4", "9", "36"}

// span is text in one style.
type span struct {
	text  string
	style style
}

// ansi writes spans as a terminal wants them. Each line stands for itself, with
// nothing left on at its end.
func ansi(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		if s.style == 0 {
			b.WriteString(s.text)
			continue
		}
		var on []string
		for i, seq := range sequences {
			if s.style&(1<<i) != 0 {
				on = append(on, seq)
			}
		}
		b.WriteString("\x1b[" + strings.Join(on, ";") + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}

// spansWidth is the number of cells that spans take.
func spansWidth(spans []span) int {
	n := 0
	for _, s := range spans {
		n += runewidth.StringWidth(s.text)
	}
	return n
}

// wrap breaks spans into lines of at most width cells: at line ends, between
// words, and before and after wide characters, as in Chinese, between which no
// spaces stand. A word that is longer than a line is broken anywhere.
func wrap(spans []span, width int) [][]span {
	w := wrapper{width: max(width, 1)}
	for _, s := range spans {
		for i, line := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.endWord()
				w.endLine()
			}
			w.text(line, s.style)
		}
	}
	w.endWord()
	if len(w.line) > 0 || len(w.lines) == 0 {
		w.endLine()
	}
	return w.lines
}

// wrapper collects words, which may have several styles, into lines.
type wrapper struct {
	width int
	lines [][]span

	line, word         []span
	lineWide, wordWide int
	gap                []span // a space that is written if a word follows it on the line
}

func (w *wrapper) text(s string, st style) {
	for _, r := range s {
		n := runewidth.RuneWidth(r)
		switch {
		case r == ' ' || r == '\t':
			w.endWord()
			if w.lineWide > 0 {
				w.gap = []span{{" ", st}}
			}
			continue
		case n > 1 || n > 0 && w.wordWide+n > w.width:
			w.endWord()
		}
		w.word = appendText(w.word, string(r), st)
		w.wordWide += n
		if n > 1 {
			w.endWord()
		}
	}
}

func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	if w.lineWide > 0 && w.lineWide+len(w.gap)+w.wordWide > w.width {
		w.endLine()
	}
	w.flushWord()
}

func (w *wrapper) flushWord() {
	for _, s := range append(w.gap, w.word...) {
		w.line = appendText(w.line, s.text, s.style)
	}
	w.lineWide += len(w.gap) + w.wordWide
	w.gap, w.word, w.wordWide = nil, nil, 0
}

func (w *wrapper) endLine() {
	w.lines = append(w.lines, w.line)
	w.line, w.lineWide, w.gap = nil, 0, nil
}

// appendText adds text to the last span if the style is the same.
func appendText(spans []span, text string, st style) []span {
	if n := len(spans); n > 0 && spans[n-1].style == st {
		spans[n-1].text += text
		return spans
	}
	return append(spans, span{text, st})
}
