package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/store"
)

const settingsHelp = `parameter NAME VALUE   temperature, top_p, seed and so on, in the words of Modelfiles
system TEXT            what the model is; """ for several lines
think [LEVEL]          think before the answer; nothink: do not
format json|FILE       hold answers to JSON, to a schema or to a grammar; noformat
verbose, quiet         print speeds and memory, or nothing but answers
markdown, nomarkdown   lay answers out, or print them as they are written
history, nohistory     keep what is typed for other chats, or not`

// set changes a setting.
func (t *Chat) set(_ context.Context, argument string) error {
	name, value, _ := strings.Cut(argument, " ")
	value = strings.TrimSpace(value)
	switches := map[string]func(){
		"verbose":    func() { t.Verbose, t.Quiet = true, false },
		"quiet":      func() { t.Verbose, t.Quiet = false, true },
		"markdown":   func() { t.Plain = false },
		"nomarkdown": func() { t.Plain = true },
		"history":    func() { t.Lines.History.Path = t.openHistory().Path },
		"nohistory":  func() { t.Lines.History.Path = "" },
		"noformat":   func() { t.Request.Grammar = nil },
		"nothink":    func() { t.Request.Chat.Effort, t.HideThinking = "none", true },
	}
	var err error
	switch change, ok := switches[name]; {
	case argument == "":
		fmt.Fprintln(t.Stdout, settingsHelp)
		return nil
	case ok && value != "":
		err = fmt.Errorf("/set %s takes nothing behind it", name)
	case ok:
		change()
	case name == "parameter":
		err = t.setParameter(value)
	case name == "system":
		t.setSystem(value)
	case name == "think":
		err = t.setThink(value)
	case name == "format":
		err = t.setFormat(value)
	default:
		err = fmt.Errorf("/set %s: unknown; /set alone lists the settings", name)
	}
	if err != nil {
		t.complain(err)
		return nil
	}
	t.say("set")
	return nil
}

// atLoading are parameters that count when a model is loaded, and their options.
var atLoading = map[string]string{
	"num_ctx": "--ctx-size", "num_batch": "--batch-size", "num_thread": "--threads", "num_gpu": "--gpu-layers",
}

// setParameter sets a parameter in the words of a Modelfile.
func (t *Chat) setParameter(text string) error {
	name, value, _ := strings.Cut(text, " ")
	value = strings.TrimSpace(value)
	if option, ok := atLoading[name]; ok {
		return fmt.Errorf("%s counts when the model is loaded: %s", name, option)
	}
	if name == "" || value == "" {
		return errors.New("want /set parameter NAME VALUE; /show parameters lists them")
	}
	var p store.Params
	if err := p.Set(name, value); err != nil {
		return err
	}
	s := session.StoredSampling(p, t.Settings)
	if p.Seed != nil && *p.Seed >= 0 {
		s.Seed = uint64(*p.Seed)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	t.Settings = s
	if p.NumPredict != nil {
		t.Request.MaxTokens = max(*p.NumPredict, 0) // below 0: no limit
	}
	if p.Stop != nil {
		t.Request.Stop = p.Stop
	}
	return nil
}

// setSystem puts a system message in place of the one that there is; an empty one
// takes it away.
func (t *Chat) setSystem(text string) {
	for _, c := range []*chat.Conversation{&t.beginning, &t.conv} {
		rest := c.Messages
		for len(rest) > 0 && (rest[0].Role == chat.System || rest[0].Role == chat.Developer) {
			rest = rest[1:]
		}
		c.Messages = slices.Clone(rest)
		if text != "" {
			c.Messages = append([]chat.Message{conversation.TextMessage(chat.System, nil, text)}, rest...)
		}
	}
}

// setThink sees to it that the model thinks, as much as before /set nothink or as
// it does by itself unless a level is given.
func (t *Chat) setThink(level string) error {
	if level == "" {
		level = t.effort
		if n, err := chat.ParseEffort(level); err == nil && n == 0 {
			level = ""
		}
	}
	if _, err := chat.ParseEffort(level); err != nil {
		return err
	}
	t.effort, t.Request.Chat.Effort, t.HideThinking = level, level, false
	return nil
}

// setEffort is /effort.
func (t *Chat) setEffort(_ context.Context, level string) error {
	if level == "" {
		t.say("effort: %s", t.effortName())
		return nil
	}
	if _, err := chat.ParseEffort(level); err != nil {
		t.complain(err)
		return nil
	}
	t.effort, t.Request.Chat.Effort = level, level
	t.say("effort: %s", level)
	return nil
}

func (t *Chat) effortName() string {
	if t.Request.Chat.Effort == "" {
		return "high"
	}
	return t.Request.Chat.Effort
}

func (t *Chat) setFormat(value string) error {
	if value == "" {
		return errors.New("/set format: want json or a file with a JSON schema or a grammar")
	}
	g, err := flags.ReadFormat(typedPath(value))
	if err != nil {
		return err
	}
	t.Request.Grammar = g
	return nil
}
