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
)

const chatHelp = `/image FILE   put a picture before the next message
/clear        forget the conversation
/bye          leave, as ctrl-D does
ctrl-C        stops an answer; at the prompt it leaves`

// talk is a conversation with a person at a terminal.
type talk struct {
	*session
	conv    chat.Conversation
	pending []chat.Part // media for the next message
}

func newChat(s *session) *talk {
	return &talk{session: s, conv: s.request.Conversation, pending: s.images}
}

// loop answers messages until the person leaves.
func (t *talk) loop(ctx context.Context) error {
	// runOptionsFrom has seen that both are terminals.
	lines := newLineReader(t.stdin.(*os.File), t.stdout.(*os.File))
	dim(t.stdout, "/? lists the commands, ctrl-D leaves")
	for {
		text, err := lines.read(ctx)
		if err != nil {
			fmt.Fprintln(t.stdout) // the prompt's line
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		text = strings.TrimSpace(text)
		command, argument, _ := strings.Cut(text, " ")
		switch {
		case text == "":
		case command == "/bye" || command == "/exit":
			return nil
		case strings.HasPrefix(text, "/") && !strings.Contains(text, "\n"):
			t.command(ctx, command, strings.TrimSpace(argument))
		default:
			if err := t.turn(ctx, text); err != nil {
				return err
			}
		}
	}
}

// command carries out what begins with a slash.
func (t *talk) command(ctx context.Context, name, argument string) {
	switch name {
	case "/?", "/help":
		fmt.Fprintln(t.stdout, chatHelp)
	case "/clear":
		t.conv, t.pending = t.request.Conversation, nil
		dim(t.stdout, "the conversation begins anew")
	case "/image":
		if err := t.attach(ctx, argument); err != nil {
			fmt.Fprintf(t.stderr, "%s\n", oneLine(err.Error()))
			return
		}
		dim(t.stdout, fmt.Sprintf("pictures for the next message: %d", len(t.pending)))
	default:
		fmt.Fprintf(t.stderr, "%s is no command; /? lists them\n", name)
	}
}

// attach keeps a picture for the next message, after a look whether it is there.
func (t *talk) attach(ctx context.Context, path string) error {
	if path == "" {
		return errors.New("/image: no file")
	}
	if !t.eng.HasImage() {
		return errors.New("/image: the model has no projector for pictures")
	}
	path = typedPath(path)
	err := interruptible(ctx, func(ctx context.Context) error {
		_, _, err := t.request.Load(ctx, path)
		return err
	})
	if err != nil {
		return err
	}
	t.pending = append(t.pending, chat.Part{Kind: chat.Image, Source: path})
	return nil
}

// typedPath is a path as typed, or dragged onto the terminal, without what a
// shell would take away: quotes, backslashes before spaces, ~.
func typedPath(s string) string {
	if q := s[0]; len(s) > 1 && (q == '\'' || q == '"') && s[len(s)-1] == q {
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

// turn answers a message. Errors about the message are printed and leave the
// conversation as it was; what is returned ends the chat.
func (t *talk) turn(ctx context.Context, text string) error {
	conv := t.conv
	conv.Messages = append(slices.Clip(conv.Messages), textMessage(chat.User, t.pending, text))
	t.pending = nil
	var res *engine.Result
	err := interruptible(ctx, func(ctx context.Context) (err error) {
		res, err = t.answer(ctx, conv)
		return err
	})
	if ctx.Err() != nil {
		return err
	}
	switch {
	case errors.Is(err, errInterrupted):
		// What there is of the answer stays in the conversation.
	case errors.Is(err, engine.ErrContextFull):
		fmt.Fprintf(t.stderr, "%s; /clear begins anew\n", oneLine(err.Error()))
		return nil
	case err != nil:
		fmt.Fprintln(t.stderr, oneLine(err.Error()))
		return nil
	}
	fmt.Fprintln(t.stdout)
	if res == nil || res.Text == "" && res.Reasoning == "" && len(res.ToolCalls) == 0 {
		return nil
	}
	m := textMessage(chat.Assistant, nil, res.Text)
	m.Reasoning, m.ToolCalls = res.Reasoning, res.ToolCalls
	conv.Messages = append(conv.Messages, m)
	t.conv = conv
	return nil
}
