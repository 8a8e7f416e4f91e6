package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

const chatHelp = `/image FILE   put a picture before the next message
/audio FILE   put a sound before it
/video FILE   put a video or a folder of numbered pictures before it
              or paste the path of one of them on a line of its own
/clear        forget the conversation
/bye          leave, as ctrl-D does
ctrl-C        stops an answer; at the prompt it clears the line`

// talk is a conversation with a person at a terminal.
type talk struct {
	*session
	conv    chat.Conversation
	pending []chat.Part // media for the next message
}

func newChat(s *session) *talk {
	return &talk{session: s, conv: s.request.Conversation, pending: s.attached}
}

// loop answers messages until the person leaves.
func (t *talk) loop(ctx context.Context) error {
	// runOptionsFrom has seen that both are terminals.
	lines := newLineReader(t.stdin.(*os.File), t.stdout.(*os.File))
	dim(t.stdout, "/? lists the commands, ctrl-D leaves")
	for {
		text, err := lines.read(ctx)
		if errors.Is(err, errCtrlC) {
			fmt.Fprintln(t.stdout)
			dim(t.stdout, "ctrl-D or /bye leaves")
			continue
		}
		if err != nil {
			fmt.Fprintln(t.stdout) // the prompt's line
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		text = t.takeMedia(ctx, strings.TrimSpace(text))
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
	case "/image", "/audio", "/video":
		kind := map[string]chat.Kind{"/image": chat.Image, "/audio": chat.Audio, "/video": chat.Video}[name]
		if argument == "" {
			fmt.Fprintf(t.stderr, "%s: no file\n", name)
			return
		}
		t.attach(ctx, kind, typedPath(argument))
	default:
		fmt.Fprintf(t.stderr, "%s is no command; /? lists them\n", name)
	}
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
