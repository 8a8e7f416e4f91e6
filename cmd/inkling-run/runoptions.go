package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// runOptions are the command line of run.
type runOptions struct {
	sessionOptions

	prompt   []string
	messages string // file with the conversation
	chat     bool   // no prompt, and a person to ask for one

	messagesName string // of the file that was read, for errors
}

// runOptionsFrom checks the command line.
func runOptionsFrom(c *cli.Context) (*runOptions, error) {
	if c.NArg() == 0 {
		return nil, usagef("no model; inkling-run run --help says more")
	}
	o := &runOptions{prompt: c.Args().Tail(), messages: c.String("messages")}
	o.sessionOptions = sessionOptions{
		stdin: c.App.Reader, stdout: c.App.Writer, stderr: c.App.ErrWriter,
		given: c.IsSet,
		model: c.Args().First(), attached: attachedParts(c),
		json: c.Bool("json"), showSpecial: c.Bool("show-special"), hideThinking: c.Bool("hide-thinking"),
		plain: c.Bool("no-markdown"), noHistory: c.Bool("no-history"), verbose: c.Bool("verbose"),
	}
	if err := errors.Join(o.checkPrompt(c), o.setEngine(c), o.setSampling(c), o.setRequest(c), o.setMedia(c), o.setTools(c)); err != nil {
		return nil, err
	}
	o.chat = len(o.prompt) == 0 && o.messages == "" && !o.json && !o.request.Raw && isTerminal(o.stdin) && isTerminal(o.stdout)
	return o, nil
}

// checkPrompt refuses options that contradict each other.
func (o *runOptions) checkPrompt(c *cli.Context) error {
	if c.IsSet("messages") && o.messages == "" {
		return usagef("--messages: no file")
	}
	for _, with := range []struct {
		flag string
		none []string // options that make no sense beside it
	}{
		{"messages", []string{"image", "audio", "video", "system", "raw"}},
		{"raw", []string{"image", "audio", "video", "system", "effort", "tools", "tool-exec"}},
		{"show-special", []string{"tool-exec"}},
	} {
		for _, other := range with.none {
			if c.IsSet(with.flag) && c.IsSet(other) {
				return usagef("--%s and --%s do not go together", with.flag, other)
			}
		}
	}
	if o.messages != "" && len(o.prompt) > 0 {
		return usagef("--messages and a prompt do not go together")
	}
	return nil
}

func (o *runOptions) setEngine(c *cli.Context) error {
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return usagef("--kv: %v", err)
	}
	for _, name := range []string{"threads", "ctx-size", "batch-size", "ubatch-size"} {
		if n := c.Int(name); c.IsSet(name) && n < 1 {
			return usagef("--%s %d: want at least 1", name, n)
		}
	}
	where, err := devicesFrom(c)
	if err != nil {
		return err
	}
	o.engine = engine.Options{
		Devices: where,
		MMProj:  c.String("mmproj"),
		Threads: c.Int("threads"),
		Context: c.Int("ctx-size"),
		Batch:   c.Int("batch-size"),
		UBatch:  c.Int("ubatch-size"),
		KV:      kv,
		NoMmap:  c.Bool("no-mmap"),
	}
	return setDraft(c, &o.engine)
}

// setSampling prepares what puts the given settings in place of the model's.
func (o *runOptions) setSampling(c *cli.Context) error {
	seed := uint64(c.Int64("seed"))
	if c.Int64("seed") < 0 {
		seed = uint64(rand.Uint32()) // small enough to be a number in any JSON reader
	}
	o.sampling = func(s engine.Sampling) engine.Sampling {
		for name, v := range map[string]*float32{
			"temp": &s.Temperature, "top-p": &s.TopP, "min-p": &s.MinP, "repeat-penalty": &s.RepeatPenalty,
			"presence-penalty": &s.PresencePenalty, "frequency-penalty": &s.FrequencyPenalty,
		} {
			if c.IsSet(name) {
				*v = float32(c.Float64(name))
			}
		}
		if c.IsSet("top-k") {
			s.TopK = c.Int("top-k")
		}
		s.Seed = seed
		return s
	}
	if err := o.sampling(engine.DefaultSampling()).Validate(); err != nil {
		return &usageError{err}
	}
	return nil
}

func (o *runOptions) setRequest(c *cli.Context) error {
	if _, err := chat.ParseEffort(c.String("effort")); err != nil {
		return usagef("--effort: %w", err)
	}
	n := c.Int("n")
	if n == 0 || n < -1 {
		return usagef("-n %d: want at least 1, or -1 for no limit", n)
	}
	bias, err := parseLogitBias(c.StringSlice("logit-bias"))
	if err != nil {
		return usagef("--logit-bias: %w", err)
	}
	o.request = engine.Request{
		Chat:          chat.Options{Effort: c.String("effort"), AddGenerationPrompt: true},
		Raw:           c.Bool("raw"),
		ParallelCalls: true,
		MaxTokens:     max(n, 0),
		Stop:          c.StringSlice("stop"),
		LogitBias:     bias,
		Load:          engine.LoadLocal("."),
		Local:         engine.LocalPaths("."),
	}
	if text := c.String("system"); text != "" {
		o.request.Conversation.Messages = []chat.Message{textMessage(chat.System, nil, text)}
	}
	if format := c.String("format"); format != "" {
		if o.request.Grammar, err = parseFormat(format); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
	}
	return nil
}

func (o *runOptions) setMedia(c *cli.Context) error {
	s, err := mediaSettingsFrom(c)
	if err != nil {
		return err
	}
	layout, patches, err := clipSettings(c)
	if err != nil {
		return err
	}
	o.request.Limits, o.request.Video, o.request.Video.Layout = s.limits, s.video, layout
	o.engine.ImageRescale, o.engine.MaxClipPatches = s.rescale, patches
	return nil
}

// setTools reads the options about tools.
func (o *runOptions) setTools(c *cli.Context) error {
	o.tools = toolOptions{
		exec: c.String("tool-exec"), yes: c.Bool("yes"), rounds: c.Int("tool-rounds"), timeout: c.Duration("tool-timeout"),
	}
	switch file := c.String("tools"); {
	case o.tools.rounds < 1:
		return usagef("--tool-rounds %d: want at least 1", o.tools.rounds)
	case o.tools.timeout <= 0:
		return usagef("--tool-timeout %s: want more than 0", o.tools.timeout)
	case c.IsSet("tool-exec") && strings.TrimSpace(o.tools.exec) == "":
		return usagef("--tool-exec: no command")
	case o.tools.exec != "" && file == "" && o.messages == "" && !isTerminal(o.stdin):
		return usagef("--tool-exec: no tools; --tools declares them")
	case o.tools.exec != "" && !o.tools.yes && !o.canAsk():
		return usagef("--tool-exec asks before each call, for which it needs a terminal; --yes carries them out without")
	case file != "":
		name, data, err := readInputFile(file, nil)
		if err != nil {
			return err
		}
		o.request.Conversation.Tools, err = parseTools(name, data)
		return err
	}
	return nil
}
