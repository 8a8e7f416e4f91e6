package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
func (t *talk) set(_ context.Context, argument string) error {
	name, value, _ := strings.Cut(argument, " ")
	value = strings.TrimSpace(value)
	switches := map[string]func(){
		"verbose":    func() { t.verbose, t.quiet = true, false },
		"quiet":      func() { t.verbose, t.quiet = false, true },
		"markdown":   func() { t.plain = false },
		"nomarkdown": func() { t.plain = true },
		"history":    func() { t.lines.history.path = t.openHistory().path },
		"nohistory":  func() { t.lines.history.path = "" },
		"noformat":   func() { t.request.Grammar = nil },
		"nothink":    func() { t.request.Chat.Effort, t.hideThinking = "none", true },
	}
	var err error
	switch change, ok := switches[name]; {
	case argument == "":
		fmt.Fprintln(t.stdout, settingsHelp)
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
func (t *talk) setParameter(text string) error {
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
	s := storedSampling(p, t.settings)
	if p.Seed != nil && *p.Seed >= 0 {
		s.Seed = uint64(*p.Seed)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	t.settings = s
	if p.NumPredict != nil {
		t.request.MaxTokens = max(*p.NumPredict, 0) // below 0: no limit
	}
	if p.Stop != nil {
		t.request.Stop = p.Stop
	}
	return nil
}

// setSystem puts a system message in place of the one that there is; an empty one
// takes it away.
func (t *talk) setSystem(text string) {
	for _, c := range []*chat.Conversation{&t.beginning, &t.conv} {
		rest := c.Messages
		for len(rest) > 0 && (rest[0].Role == chat.System || rest[0].Role == chat.Developer) {
			rest = rest[1:]
		}
		c.Messages = slices.Clone(rest)
		if text != "" {
			c.Messages = append([]chat.Message{textMessage(chat.System, nil, text)}, rest...)
		}
	}
}

// setThink sees to it that the model thinks, as much as before /set nothink or as
// it does by itself unless a level is given.
func (t *talk) setThink(level string) error {
	if level == "" {
		level = t.effort
		if n, err := chat.ParseEffort(level); err == nil && n == 0 {
			level = ""
		}
	}
	if _, err := chat.ParseEffort(level); err != nil {
		return err
	}
	t.effort, t.request.Chat.Effort, t.hideThinking = level, level, false
	return nil
}

// setEffort is /effort.
func (t *talk) setEffort(_ context.Context, level string) error {
	if level == "" {
		t.say("effort: %s", t.effortName())
		return nil
	}
	if _, err := chat.ParseEffort(level); err != nil {
		t.complain(err)
		return nil
	}
	t.effort, t.request.Chat.Effort = level, level
	t.say("effort: %s", level)
	return nil
}

func (t *talk) effortName() string {
	if t.request.Chat.Effort == "" {
		return "high"
	}
	return t.request.Chat.Effort
}

func (t *talk) setFormat(value string) error {
	if value == "" {
		return errors.New("/set format: want json or a file with a JSON schema or a grammar")
	}
	g, err := parseFormat(typedPath(value))
	if err != nil {
		return err
	}
	t.request.Grammar = g
	return nil
}
