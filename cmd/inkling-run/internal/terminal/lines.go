package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"golang.org/x/term"
)

// Prompts of the chat.
const (
	promptLine = ">>> "
	promptMore = "... " // within a paste or a block
)

// blockMark stands around a text of several lines.
const blockMark = `"""`

// maxMessageBytes bounds a message that is typed or pasted.
const maxMessageBytes = 16 << 20

// LineReader reads lines from a terminal, with editing. The terminal is raw only
// while a line is read, so that ctrl-C is a signal while an answer comes.
type LineReader struct {
	in, out *os.File
	term    *term.Terminal
	History *History
	ctrlC   bool // seen in what was read last
}

// Errors of reading that do not end a chat.
var (
	ErrCtrlC   = errors.New("ctrl-C") // the user pressed it
	ErrTooLong = fmt.Errorf("the message has more than %d MiB", maxMessageBytes>>20)
)

// NewLineReader reads from the terminal in and echoes to out. A History without a path
// keeps lines in memory only.
func NewLineReader(in, out *os.File, history *History) *LineReader {
	l := &LineReader{in: in, out: out, History: history}
	l.reset()
	return l
}

// reset begins with an empty line.
func (l *LineReader) reset() {
	l.term = term.NewTerminal(l, promptLine)
	l.term.History = l.History
}

// Read is one of the terminal's own two ends. The terminal makes io.EOF of
// ctrl-C and of ctrl-D; Read remembers which it was.
func (l *LineReader) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	l.ctrlC = bytes.IndexByte(p[:n], 0x03) >= 0
	return n, err
}

// Write is the other end, for the terminal alone: see Read.
func (l *LineReader) Write(p []byte) (int, error) { return l.out.Write(p) }

// Entry is what a person enters.
type Entry struct {
	Text  string
	Block bool // a part of it stood between block marks
}

// ReadEntry returns what the user enters: a line, all lines of a paste with what is
// typed after it, or those up to the second block mark. ctrl-C is ErrCtrlC, and
// what was typed is gone; ctrl-D on an empty line is io.EOF.
func (l *LineReader) ReadEntry(ctx context.Context) (e Entry, err error) {
	err = l.raw(ctx, func() (err error) {
		e, err = l.lines()
		return err
	})
	if err != nil {
		return Entry{}, err // e is not ours if the reading goes on
	}
	return e, nil
}

// Ask puts a question that is answered in a line, which the history does not keep.
func (l *LineReader) Ask(ctx context.Context, question string) (string, error) {
	l.History.paused = true
	defer func() { l.History.paused = false }()
	l.term.SetPrompt(question)
	defer func() { l.term.SetPrompt(promptLine) }()
	var line string
	err := l.raw(ctx, func() (err error) {
		line, err = l.term.ReadLine()
		return err
	})
	if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
		return "", err
	}
	return strings.TrimSpace(Harmless(line)), nil
}

// Confirm asks whether to do something; anything but yes is no.
func (l *LineReader) Confirm(ctx context.Context, question string) (bool, error) {
	answer, err := l.Ask(ctx, question+" [y/N] ")
	switch strings.ToLower(answer) {
	case "y", "yes":
		return true, err
	}
	return false, err
}

// raw reads from the terminal, which is raw until read returns.
func (l *LineReader) raw(ctx context.Context, read func() error) (err error) {
	state, err := term.MakeRaw(int(l.in.Fd()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, term.Restore(int(l.in.Fd()), state)) }()
	if w, h, err := term.GetSize(int(l.out.Fd())); err == nil && w > 0 {
		_ = l.term.SetSize(w, h) // it reports a failure to write, which the next write does too
	}
	l.term.SetBracketedPasteMode(true)
	defer l.term.SetBracketedPasteMode(false)
	err = interrupt.Run(ctx, func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- read() }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done(): // the read is left behind: the program must end then
			return ctx.Err()
		}
	})
	if errors.Is(err, io.EOF) && l.ctrlC {
		l.reset()
		err = ErrCtrlC
	}
	return err
}

// lines reads an entry.
func (l *LineReader) lines() (Entry, error) {
	defer l.term.SetPrompt(promptLine)
	var e Entry
	var lines []string
	size := 0
	for open := false; ; {
		line, err := l.term.ReadLine()
		pasted := errors.Is(err, term.ErrPasteIndicator)
		if err != nil && !pasted {
			return Entry{}, err
		}
		line = Harmless(line)
		if len(lines) == 0 && !pasted {
			line, open = opensBlock(line)
			e.Block = open
		}
		if open {
			if line, open = beforeMark(line); !open {
				pasted = false // the block's end is the entry's
			}
		}
		if size += len(line) + 1; size <= maxMessageBytes { // what is too long is read to its end
			lines = append(lines, line)
		}
		if !open && !pasted {
			if size > maxMessageBytes {
				return Entry{}, ErrTooLong
			}
			e.Text = strings.Join(lines, "\n")
			return e, nil
		}
		l.term.SetPrompt(promptMore)
	}
}

// opensBlock reports whether a line begins a block, and returns it without the
// mark: at its beginning, or behind a command.
func opensBlock(line string) (string, bool) {
	before, after, ok := strings.Cut(line, blockMark)
	if !ok || strings.TrimSpace(before) != "" && !strings.HasPrefix(before, "/") {
		return line, false
	}
	return before + after, true
}

// beforeMark is a line up to the mark that ends a block; open is whether there is
// none.
func beforeMark(line string) (before string, open bool) {
	before, _, ended := strings.Cut(line, blockMark)
	return before, !ended
}
