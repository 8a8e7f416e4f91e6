// Package repl is the chat with a person at a terminal: messages, and commands that begin
// with a slash.
package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// Chat is a conversation with a person at a terminal.
type Chat struct {
	*session.Session
	beginning chat.Conversation // what /clear returns to
	conv      chat.Conversation
	pending   []chat.Part // media for the next message
	effort    string      // before /set nothink
}

// New begins a conversation; the command has seen that there is a terminal
// at both ends.
func New(s *session.Session) *Chat {
	s.Chatting = true
	t := &Chat{Session: s, beginning: s.Request.Conversation, conv: s.Request.Conversation, pending: s.Attached, effort: s.Request.Chat.Effort}
	t.Lines = terminal.NewLineReader(s.Stdin.(*os.File), s.Stdout.(*os.File), t.openHistory())
	return t
}

// terminal.OpenHistory opens the history of all chats, unless it is not wanted.
func (t *Chat) openHistory() *terminal.History {
	if t.NoHistory {
		return &terminal.History{}
	}
	path, err := historyPath()
	if err != nil {
		t.complain(err)
	}
	h, err := terminal.OpenHistory(path)
	if err != nil {
		t.complain(err)
	}
	return h
}

// historyPath is where the history is kept: in the folder of the models.
func historyPath() (string, error) {
	s, err := store.Open("")
	if err != nil {
		return "", err
	}
	return filepath.Join(s.Dir(), "history"), nil
}

// complain prints an error that does not end the chat.
func (t *Chat) complain(err error) { fmt.Fprintln(t.Stderr, terminal.OneLine(err.Error())) }

// say prints a line that is not the answer.
func (t *Chat) say(format string, args ...any) { terminal.Dim(t.Stdout, fmt.Sprintf(format, args...)) }

// errLeave ends a chat.
var errLeave = errors.New("the user leaves")

// Loop answers messages until the person leaves.
func (t *Chat) Loop(ctx context.Context) error {
	t.say("/? lists the commands, ctrl-D leaves")
	for {
		err := t.next(ctx)
		switch {
		case err == nil:
		case errors.Is(err, errLeave):
			return nil
		default:
			return err
		}
	}
}

// next reads one entry and does what it says. Errors that do not end the chat are
// printed.
func (t *Chat) next(ctx context.Context) error {
	e, err := t.Lines.ReadEntry(ctx)
	switch {
	case err == nil:
	case errors.Is(err, terminal.ErrCtrlC):
		fmt.Fprintln(t.Stdout)
		t.say("ctrl-D or /bye leaves")
		return nil
	case errors.Is(err, terminal.ErrTooLong):
		t.complain(err)
		return nil
	default:
		fmt.Fprintln(t.Stdout) // the prompt's line
		if errors.Is(err, io.EOF) {
			return errLeave
		}
		return err
	}
	text := t.takeMedia(ctx, strings.TrimSpace(e.Text))
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && (e.Block || !strings.Contains(text, "\n")):
		return t.command(ctx, text)
	}
	m := conversation.TextMessage(chat.User, t.pending, text)
	t.pending = nil
	conv := t.conv
	conv.Messages = append(slices.Clip(conv.Messages), m)
	return t.turn(ctx, conv)
}

// turn answers a conversation. Errors about it are printed and leave the one that
// there was; what is returned ends the chat.
func (t *Chat) turn(ctx context.Context, conv chat.Conversation) error {
	var answered chat.Conversation
	err := interrupt.Run(ctx, func(ctx context.Context) (err error) {
		answered, _, err = t.Converse(ctx, conv)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, interrupt.Err):
		// What there is of the answer stays in the conversation.
		terminal.Dim(t.Stdout, "(stopped)")
	case errors.Is(err, engine.ErrContextFull):
		fmt.Fprintf(t.Stderr, "%s; this message is left out\n", terminal.OneLine(err.Error()))
		return nil
	case err != nil:
		t.complain(err)
		return nil
	}
	fmt.Fprintln(t.Stdout)
	if n := len(answered.Messages); n > 0 && answered.Messages[n-1].Role != chat.User {
		t.conv = answered
	}
	return nil
}
