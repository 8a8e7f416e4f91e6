package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/gguf"
)

// show prints what the chat is about.
func (t *Chat) show(_ context.Context, what string) error {
	var text string
	var err error
	switch what {
	case "", "info":
		text = t.info()
	case "parameters":
		text = t.parameters()
	case "system":
		text = t.systemText()
	case "template":
		text, err = t.template()
	case "messages":
		text = transcript(t.conv.Messages)
	case "modelfile":
		if t.Stored == nil {
			err = errors.New("the model is a file, without a Modelfile")
		} else {
			text, err = t.Stored.Modelfile()
		}
	default:
		err = fmt.Errorf("/show %s: want info, parameters, system, template, messages or modelfile", what)
	}
	if err != nil {
		t.complain(err)
		return nil
	}
	fmt.Fprintln(t.Stdout, strings.TrimRight(terminal.Harmless(text), "\n"))
	return nil
}

func (t *Chat) info() string {
	c := t.Engine.Config()
	takes := "text"
	for _, k := range []struct {
		kind chat.Kind
		has  bool
	}{{chat.Image, t.Engine.HasImage()}, {chat.Audio, t.Engine.HasAudio()}, {chat.Video, t.Engine.HasVideo()}} {
		if k.has {
			takes += ", " + flags.KindNames[k.kind].Many
		}
	}
	return fmt.Sprintf("model         %s\nfile          %s\narchitecture  %s, %d layers of width %d\ncontext       %d tokens, of %d that the model allows\ntakes         %s",
		t.Model, t.Path, c.Arch, c.Layers, c.Embd, t.Engine.Context(), c.Context, takes)
}

// parameters has the names of Modelfiles.
func (t *Chat) parameters() string {
	s := t.Settings
	var b strings.Builder
	for _, p := range []struct {
		name  string
		value any
	}{
		{"temperature", s.Temperature},
		{"top_k", s.TopK},
		{"top_p", s.TopP},
		{"min_p", s.MinP},
		{"repeat_penalty", s.RepeatPenalty},
		{"repeat_last_n", s.RepeatLastN},
		{"presence_penalty", s.PresencePenalty},
		{"frequency_penalty", s.FrequencyPenalty},
		{"seed", s.Seed},
		{"num_predict", cmp.Or(t.Request.MaxTokens, -1)},
	} {
		fmt.Fprintf(&b, "%-18s %v\n", p.name, p.value)
	}
	for _, stop := range t.Request.Stop {
		fmt.Fprintf(&b, "%-18s %q\n", "stop", stop)
	}
	return b.String()
}

func (t *Chat) systemText() string {
	var texts []string
	for _, m := range t.conv.Messages {
		if m.Role == chat.System || m.Role == chat.Developer {
			texts = append(texts, conversation.Text(m))
		}
	}
	return cmp.Or(strings.Join(texts, "\n"), "(none)")
}

// template is the chat template of the model, in Jinja.
func (t *Chat) template() (string, error) {
	if t.Request.Raw {
		return "(none)", nil
	}
	if t.Stored != nil && t.Stored.Template != "" {
		return t.Stored.Template, nil
	}
	f, err := gguf.Open(t.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := f.StrOr("tokenizer.chat_template", "")
	return cmp.Or(text, "(none)"), err
}

// transcript is a conversation for people.
func transcript(messages []chat.Message) string {
	if len(messages) == 0 {
		return "(none)"
	}
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s: ", m.Role)
		var media []chat.Part
		for _, p := range m.Content {
			if p.Kind != chat.Text {
				media = append(media, p)
			}
		}
		if n := counted(media); n != "" {
			fmt.Fprintf(&b, "(%s) ", n)
		}
		b.WriteString(conversation.Text(m) + string(m.Result) + "\n")
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&b, "  calls %s %s\n", call.Name, terminal.CompactJSON(call.Arguments))
		}
	}
	return b.String()
}
