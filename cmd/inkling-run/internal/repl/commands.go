package repl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
)

// chatCommand is what a line that begins with a slash does.
type chatCommand struct {
	names    string // separated by spaces
	argument string // "" for none; in brackets if it may be left out
	help     string
	do       func(t *Chat, ctx context.Context, argument string) error
}

// chatCommands returns the commands in the order of their help.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"/image", "FILE", "put a picture before the next message", attachCommand(chat.Image)},
		{"/audio", "FILE", "put a sound before it", attachCommand(chat.Audio)},
		{"/video", "FILE", "put a video or a folder of numbered pictures before it\nor paste the path of one of them on a line of its own", attachCommand(chat.Video)},
		{"/set", "NAME VALUE", "change a setting; /set alone lists them", (*Chat).set},
		{"/show", "[WHAT]", "info, parameters, system, template, messages or modelfile", (*Chat).show},
		{"/effort", "LEVEL", "how long to think: none to max, or 0 to 0.99", (*Chat).setEffort},
		{"/tools", "FILE", "tell the model of tools; /tools off forgets them", (*Chat).setToolsFile},
		{"/retry", "", "answer the last message again", (*Chat).retry},
		{"/undo", "", "forget the last message and its answer", (*Chat).undo},
		{"/save", "FILE", "write the conversation as JSON, as --messages takes it", (*Chat).save},
		{"/load", "FILE", "go on with a conversation from a file", (*Chat).loadFile},
		{"/clear", "", "forget the conversation", (*Chat).clear},
		{"/? /help", "", "this list", (*Chat).help},
		{"/bye /exit", "", "leave, as ctrl-D does", func(*Chat, context.Context, string) error { return errLeave }},
	}
}

const chatKeys = `"""           begins and ends a message of several lines
ctrl-C        stops an answer; at the prompt it clears the line
up, down      earlier lines`

// command carries out what begins with a slash.
func (t *Chat) command(ctx context.Context, text string) error {
	end := strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' })
	if end < 0 {
		end = len(text)
	}
	name, argument := text[:end], strings.TrimSpace(text[end:])
	list := chatCommands()
	i := slices.IndexFunc(list, func(c chatCommand) bool { return slices.Contains(strings.Fields(c.names), name) })
	if i < 0 {
		fmt.Fprintf(t.Stderr, "%s is no command; /? lists them\n", terminal.OneLine(name))
		return nil
	}
	if c := list[i]; c.argument == "" && argument != "" {
		fmt.Fprintf(t.Stderr, "%s takes nothing behind it\n", name)
		return nil
	}
	return list[i].do(t, ctx, argument)
}

func (t *Chat) help(context.Context, string) error {
	for _, c := range chatCommands() {
		head := strings.TrimSpace(strings.ReplaceAll(c.names, " ", ", ") + " " + c.argument)
		for line := range strings.SplitSeq(c.help, "\n") {
			fmt.Fprintf(t.Stdout, "%-16s%s\n", head, line)
			head = ""
		}
	}
	fmt.Fprintln(t.Stdout, chatKeys)
	return nil
}

func attachCommand(kind chat.Kind) func(*Chat, context.Context, string) error {
	return func(t *Chat, ctx context.Context, argument string) error {
		if argument == "" {
			fmt.Fprintf(t.Stderr, "/%s: no file\n", kind)
			return nil
		}
		t.attach(ctx, kind, typedPath(argument))
		return nil
	}
}

func (t *Chat) clear(context.Context, string) error {
	t.conv, t.pending, t.Used = t.beginning, nil, 0
	t.say("the conversation begins anew")
	return nil
}

// lastQuestion is the index of the last message of the user, -1 without one.
func (t *Chat) lastQuestion() int {
	for i, m := range slices.Backward(t.conv.Messages) {
		if m.Role == chat.User {
			return i
		}
	}
	return -1
}

func (t *Chat) retry(ctx context.Context, _ string) error {
	i := t.lastQuestion()
	if i < 0 {
		fmt.Fprintln(t.Stderr, "/retry: there is no message to answer")
		return nil
	}
	t.Settings.Seed++ // the same one would give the same answer
	conv := t.conv
	conv.Messages = slices.Clip(conv.Messages[:i+1])
	return t.turn(ctx, conv)
}

func (t *Chat) undo(context.Context, string) error {
	i := t.lastQuestion()
	if i < 0 {
		fmt.Fprintln(t.Stderr, "/undo: there is no message to forget")
		return nil
	}
	t.say("forgotten: %.60s", terminal.OneLine(conversation.Text(t.conv.Messages[i])))
	t.conv.Messages, t.Used = t.conv.Messages[:i], 0
	return nil
}

// setToolsFile declares the tools in a file.
func (t *Chat) setToolsFile(_ context.Context, file string) error {
	switch file {
	case "":
		if len(t.conv.Tools) == 0 {
			t.say("no tools; /tools FILE declares them")
			return nil
		}
		names, err := chat.ToolNames(t.conv.Tools)
		if err != nil {
			t.complain(err)
			return nil
		}
		t.say("tools: %s", strings.Join(names, ", "))
		return nil
	case "off":
		t.conv.Tools, t.beginning.Tools = nil, nil
		t.say("no tools")
		return nil
	}
	name, data, err := files.Read(typedPath(file), nil)
	if err != nil {
		t.complain(err)
		return nil
	}
	tools, err := conversation.ParseTools(name, data)
	if err != nil {
		t.complain(err)
		return nil
	}
	t.conv.Tools, t.beginning.Tools = tools, tools
	who := "you are asked for the results of calls"
	if t.Tools.Exec != "" {
		who = "calls are carried out by --tool-exec"
	}
	t.say("%d tools; %s", len(tools), who)
	return nil
}
