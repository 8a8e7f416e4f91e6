package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// talk is a conversation with a person at a terminal.
type talk struct {
	*session
	beginning chat.Conversation // what /clear returns to
	conv      chat.Conversation
	pending   []chat.Part // media for the next message
	effort    string      // before /set nothink
}

// newChat begins a conversation; runOptionsFrom has seen that there is a terminal
// at both ends.
func newChat(s *session) *talk {
	s.chatting = true
	t := &talk{session: s, beginning: s.request.Conversation, conv: s.request.Conversation, pending: s.attached, effort: s.request.Chat.Effort}
	t.lines = newLineReader(s.stdin.(*os.File), s.stdout.(*os.File), t.openHistory())
	return t
}

// openHistory opens the history of all chats, unless it is not wanted.
func (t *talk) openHistory() *chatHistory {
	if t.noHistory {
		return &chatHistory{}
	}
	path, err := historyPath()
	if err != nil {
		t.complain(err)
	}
	h, err := openHistory(path)
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
func (t *talk) complain(err error) { fmt.Fprintln(t.stderr, oneLine(err.Error())) }

// say prints a line that is not the answer.
func (t *talk) say(format string, args ...any) { dim(t.stdout, fmt.Sprintf(format, args...)) }

// errLeave ends a chat.
var errLeave = errors.New("the user leaves")

// loop answers messages until the person leaves.
func (t *talk) loop(ctx context.Context) error {
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
func (t *talk) next(ctx context.Context) error {
	e, err := t.lines.read(ctx)
	switch {
	case err == nil:
	case errors.Is(err, errCtrlC):
		fmt.Fprintln(t.stdout)
		t.say("ctrl-D or /bye leaves")
		return nil
	case errors.Is(err, errLongMessage):
		t.complain(err)
		return nil
	default:
		fmt.Fprintln(t.stdout) // the prompt's line
		if errors.Is(err, io.EOF) {
			return errLeave
		}
		return err
	}
	text := t.takeMedia(ctx, strings.TrimSpace(e.text))
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && (e.block || !strings.Contains(text, "\n")):
		return t.command(ctx, text)
	}
	m := textMessage(chat.User, t.pending, text)
	t.pending = nil
	conv := t.conv
	conv.Messages = append(slices.Clip(conv.Messages), m)
	return t.turn(ctx, conv)
}

// turn answers a conversation. Errors about it are printed and leave the one that
// there was; what is returned ends the chat.
func (t *talk) turn(ctx context.Context, conv chat.Conversation) error {
	var answered chat.Conversation
	err := interruptible(ctx, func(ctx context.Context) (err error) {
		answered, _, err = t.converse(ctx, conv)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errInterrupted):
		// What there is of the answer stays in the conversation.
		dim(t.stdout, "(stopped)")
	case errors.Is(err, engine.ErrContextFull):
		fmt.Fprintf(t.stderr, "%s; this message is left out\n", oneLine(err.Error()))
		return nil
	case err != nil:
		t.complain(err)
		return nil
	}
	fmt.Fprintln(t.stdout)
	if n := len(answered.Messages); n > 0 && answered.Messages[n-1].Role != chat.User {
		t.conv = answered
	}
	return nil
}
