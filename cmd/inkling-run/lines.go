package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Prompts of the chat.
const (
	promptLine = ">>> "
	promptMore = "... " // within a paste
)

// lineReader reads lines from a terminal, with editing. The terminal is raw only
// while a line is read, so that ctrl-C is a signal while an answer comes.
type lineReader struct {
	in, out *os.File
	term    *term.Terminal
	ctrlC   bool // seen in what was read last
}

// errCtrlC is what reading a line ends with when the user presses ctrl-C.
var errCtrlC = errors.New("ctrl-C")

func newLineReader(in, out *os.File) *lineReader {
	l := &lineReader{in: in, out: out}
	l.term = term.NewTerminal(l, promptLine)
	return l
}

// Read and Write are the terminal's own two ends. The terminal makes io.EOF of
// ctrl-C and of ctrl-D; Read remembers which it was.
func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	l.ctrlC = bytes.IndexByte(p[:n], 0x03) >= 0
	return n, err
}

func (l *lineReader) Write(p []byte) (int, error) { return l.out.Write(p) }

// read returns what the user enters: a line, or all lines of a paste with what
// is typed after it. ctrl-C is errCtrlC, and what was typed is gone; ctrl-D on
// an empty line is io.EOF.
func (l *lineReader) read(ctx context.Context) (_ string, err error) {
	state, err := term.MakeRaw(int(l.in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(l.in.Fd()), state)) }()
	if w, h, err := term.GetSize(int(l.out.Fd())); err == nil && w > 0 {
		_ = l.term.SetSize(w, h) // it reports a failure to write, which the next write does too
	}
	l.term.SetBracketedPasteMode(true)
	defer l.term.SetBracketedPasteMode(false)

	var text string
	err = abandonable(ctx, func(context.Context) (err error) {
		text, err = l.lines()
		return err
	})
	if errors.Is(err, io.EOF) && l.ctrlC {
		fresh := term.NewTerminal(l, promptLine)
		fresh.History = l.term.History
		l.term = fresh
		err = errCtrlC
	}
	if err != nil {
		return "", err // text is not ours if the reading goes on
	}
	return text, nil
}

func (l *lineReader) lines() (string, error) {
	defer l.term.SetPrompt(promptLine)
	var lines []string
	for {
		line, err := l.term.ReadLine()
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return "", err
		}
		lines = append(lines, line)
		if err == nil {
			return strings.Join(lines, "\n"), nil
		}
		l.term.SetPrompt(promptMore)
	}
}
