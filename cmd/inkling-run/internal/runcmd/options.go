package runcmd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// options are the command line of run.
type options struct {
	session.Options

	prompt   []string
	messages string // file with the conversation
	chat     bool   // no prompt, and a person to ask for one

	messagesName string // of the file that was read, for errors
}

// optionsFrom checks the command line.
func optionsFrom(c *cli.Context) (*options, error) {
	if c.NArg() == 0 {
		return nil, usage.Errorf("no model; inkling-run run --help says more")
	}
	o := &options{prompt: c.Args().Tail(), messages: c.String("messages")}
	o.Options = session.Options{
		Stdin: c.App.Reader, Stdout: c.App.Writer, Stderr: c.App.ErrWriter,
		Given: c.IsSet,
		Model: c.Args().First(), Attached: flags.Attached(c),
		JSON: c.Bool("json"), ShowSpecial: c.Bool("show-special"), HideThinking: c.Bool("hide-thinking"),
		Plain: c.Bool("no-markdown"), NoHistory: c.Bool("no-history"), Verbose: c.Bool("verbose"),
	}
	if err := errors.Join(o.checkPrompt(c), o.setEngine(c), o.setSampling(c), o.setRequest(c), o.setMedia(c), o.setTools(c)); err != nil {
		return nil, err
	}
	o.chat = len(o.prompt) == 0 && o.messages == "" && !o.JSON && !o.Request.Raw && terminal.Is(o.Stdin) && terminal.Is(o.Stdout)
	return o, nil
}

// checkPrompt refuses options that contradict each other.
func (o *options) checkPrompt(c *cli.Context) error {
	if c.IsSet("messages") && o.messages == "" {
		return usage.Errorf("--messages: no file")
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
				return usage.Errorf("--%s and --%s do not go together", with.flag, other)
			}
		}
	}
	if o.messages != "" && len(o.prompt) > 0 {
		return usage.Errorf("--messages and a prompt do not go together")
	}
	return nil
}

func (o *options) setEngine(c *cli.Context) error {
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return usage.Errorf("--kv: %v", err)
	}
	if err := flags.CheckCounts(c, "threads", "ctx-size", "batch-size", "ubatch-size"); err != nil {
		return err
	}
	if err := flags.CheckValues(c, "mmproj", "mtp", "format", "tools", "device"); err != nil {
		return err
	}
	where, err := flags.DevicesFrom(c)
	if err != nil {
		return err
	}
	o.EngineOptions = engine.Options{
		Devices: where,
		MMProj:  c.String("mmproj"),
		Threads: c.Int("threads"),
		Context: c.Int("ctx-size"),
		Batch:   c.Int("batch-size"),
		UBatch:  c.Int("ubatch-size"),
		KV:      kv,
		NoMmap:  c.Bool("no-mmap"),
	}
	return flags.SetDraft(c, &o.EngineOptions)
}

// setSampling prepares what puts the given settings in place of the model's.
func (o *options) setSampling(c *cli.Context) error {
	seed := uint64(c.Int64("seed"))
	switch n := c.Int64("seed"); {
	case n < -1:
		return usage.Errorf("--seed %d: want 0 or more, or -1 for a new one each time", n)
	case n == -1:
		seed = uint64(rand.Uint32()) // small enough to be a number in any JSON reader
	}
	o.Sampling = func(s engine.Sampling) engine.Sampling {
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
	if err := o.Sampling(engine.DefaultSampling()).Validate(); err != nil {
		return &usage.Error{Err: err}
	}
	return nil
}

func (o *options) setRequest(c *cli.Context) error {
	if _, err := chat.ParseEffort(c.String("effort")); err != nil {
		return usage.Errorf("--effort: %w", err)
	}
	n := c.Int("n")
	if n == 0 || n < -1 {
		return usage.Errorf("-n %d: want at least 1, or -1 for no limit", n)
	}
	bias, err := parseLogitBias(c.StringSlice("logit-bias"))
	if err != nil {
		return usage.Errorf("--logit-bias: %w", err)
	}
	if slices.Contains(c.StringSlice("stop"), "") {
		return usage.Errorf("--stop: a text is empty")
	}
	o.Request = engine.Request{
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
		o.Request.Conversation.Messages = []chat.Message{conversation.TextMessage(chat.System, nil, text)}
	}
	if format := c.String("format"); format != "" {
		if o.Request.Grammar, err = flags.ReadFormat(format); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
	}
	return nil
}

func (o *options) setMedia(c *cli.Context) error {
	s, err := flags.MediaFrom(c)
	if err != nil {
		return err
	}
	layout, patches, err := flags.ClipFrom(c)
	if err != nil {
		return err
	}
	o.Request.Limits, o.Request.Video, o.Request.Video.Layout = s.Limits, s.Video, layout
	o.EngineOptions.ImageRescale, o.EngineOptions.MaxClipPatches = s.Rescale, patches
	return nil
}

// setTools reads the options about tools.
func (o *options) setTools(c *cli.Context) error {
	o.Tools = session.ToolOptions{
		Exec: c.String("tool-exec"), Yes: c.Bool("yes"), Rounds: c.Int("tool-rounds"), Timeout: c.Duration("tool-timeout"),
	}
	switch file := c.String("tools"); {
	case o.Tools.Rounds < 1:
		return usage.Errorf("--tool-rounds %d: want at least 1", o.Tools.Rounds)
	case o.Tools.Timeout <= 0:
		return usage.Errorf("--tool-timeout %s: want more than 0", o.Tools.Timeout)
	case c.IsSet("tool-exec") && strings.TrimSpace(o.Tools.Exec) == "":
		return usage.Errorf("--tool-exec: no command")
	case o.Tools.Exec != "" && file == "" && o.messages == "" && !terminal.Is(o.Stdin):
		return usage.Errorf("--tool-exec: no tools; --tools declares them")
	case o.Tools.Exec != "" && !o.Tools.Yes && !o.CanAsk():
		return usage.Errorf("--tool-exec asks before each call, for which it needs a terminal; --yes carries them out without")
	case file != "":
		name, data, err := files.Read(file, nil)
		if err != nil {
			return err
		}
		o.Request.Conversation.Tools, err = conversation.ParseTools(name, data)
		return err
	}
	return nil
}
