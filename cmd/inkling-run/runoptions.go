package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// runOptions are the command line of run.
type runOptions struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	model    string // GGUF file, checkpoint folder, or name of a stored model
	prompt   []string
	messages string      // file with the conversation
	attached []chat.Part // media of the prompt
	chat     bool        // no prompt, and a person to ask for one

	stored *store.Model           // what the model's name stands for, set by openSession; nil for a path
	given  func(flag string) bool // whether an option is on the command line

	engine   engine.Options // Model is set by openSession
	request  engine.Request // what all requests have in common; the conversation is its beginning
	sampling func(engine.Sampling) engine.Sampling

	tools toolOptions

	messagesName string // of the file that was read, for errors

	json, showSpecial, hideThinking, plain, noHistory, verbose, quiet bool
}

// runOptionsFrom checks the command line.
func runOptionsFrom(c *cli.Context) (*runOptions, error) {
	if c.NArg() == 0 {
		return nil, usagef("no model; inkling-run run --help says more")
	}
	o := &runOptions{
		stdin: c.App.Reader, stdout: c.App.Writer, stderr: c.App.ErrWriter,
		given: c.IsSet,
		model: c.Args().First(), prompt: c.Args().Tail(), messages: c.String("messages"),
		json: c.Bool("json"), showSpecial: c.Bool("show-special"), hideThinking: c.Bool("hide-thinking"),
		plain: c.Bool("no-markdown"), noHistory: c.Bool("no-history"), verbose: c.Bool("verbose"),
	}
	o.attached = attachedParts(c)
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
