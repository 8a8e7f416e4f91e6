package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// runFlags returns the options of run.
func runFlags() []cli.Flag {
	const theModels = "the model's"
	return slices.Concat(attachFlags(), mediaFlags(), layoutFlags(), draftFlags(), deviceFlags(), []cli.Flag{
		&cli.StringFlag{Name: "system", Usage: "system message `TEXT`"},
		&cli.StringFlag{Name: "effort", Usage: "how long to think: `LEVEL` none, minimal, low, medium, high, xhigh, max, or a number from 0 to 0.99", DefaultText: "high"},
		&cli.StringFlag{Name: "messages", Usage: "the conversation in JSON `FILE`, a list of messages or an object with messages and tools, in place of a prompt; paths in it count from its folder"},
		&cli.BoolFlag{Name: "raw", Usage: "take the prompt as it is, without a chat template; special tokens in it count"},

		&cli.IntFlag{Name: "n", Aliases: []string{"max-tokens"}, Value: -1, Usage: "generate at most `N` tokens", DefaultText: "until the model stops"},
		&cli.Float64Flag{Name: "temp", Usage: "temperature `X`; 0 always takes the likeliest token", DefaultText: theModels},
		&cli.IntFlag{Name: "top-k", Usage: "sample from the `K` likeliest tokens, 0 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "top-p", Usage: "sample from the likeliest tokens that have probability `P` together, 1 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "min-p", Usage: "sample from tokens with at least `P` times the likeliest one's probability, 0 for all", DefaultText: theModels},
		&cli.Float64Flag{Name: "repeat-penalty", Usage: "weaken the last 64 tokens by factor `X`, 1 for off", DefaultText: theModels},
		&cli.Int64Flag{Name: "seed", Value: -1, Usage: "`N` for random numbers; the same one gives the same answer", DefaultText: "a new one each time"},

		&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "compute with `N` threads", DefaultText: "one per core"},
		&cli.IntFlag{Name: "ctx-size", Aliases: []string{"c"}, Usage: "room for `N` tokens of prompt and answer", DefaultText: fmt.Sprintf("the model's, at most %d", engine.DefaultContext)},
		&cli.IntFlag{Name: "batch-size", Aliases: []string{"b"}, Usage: "upper bound `N` of --ubatch-size", DefaultText: "2048"},
		&cli.IntFlag{Name: "ubatch-size", Usage: "compute `N` tokens of the prompt at a time", DefaultText: "512"},
		&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
		&cli.BoolFlag{Name: "no-mmap", Usage: "copy the weights into memory and do not map the file"},
		&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` for media, or off", DefaultText: "the one beside the model"},

		&cli.BoolFlag{Name: "json", Usage: "print the whole result as one JSON object"},
		&cli.BoolFlag{Name: "show-special", Usage: "print every token that the model makes, special ones too"},
		&cli.BoolFlag{Name: "hide-thinking", Usage: "do not print what the model thinks"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print speeds, a terminal or not, and memory to standard error"},
	})
}

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

	json, showSpecial, hideThinking, verbose bool
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
		json: c.Bool("json"), showSpecial: c.Bool("show-special"), hideThinking: c.Bool("hide-thinking"), verbose: c.Bool("verbose"),
	}
	o.attached = attachedParts(c)
	if err := errors.Join(o.checkPrompt(c), o.setEngine(c), o.setSampling(c), o.setRequest(c), o.setMedia(c)); err != nil {
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
		{"raw", []string{"image", "audio", "video", "system", "effort"}},
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
	o.request = engine.Request{
		Chat:          chat.Options{Effort: c.String("effort"), AddGenerationPrompt: true},
		Raw:           c.Bool("raw"),
		ParallelCalls: true,
		MaxTokens:     max(n, 0),
		Load:          engine.LoadLocal("."),
		Local:         engine.LocalPaths("."),
	}
	if text := c.String("system"); text != "" {
		o.request.Conversation.Messages = []chat.Message{textMessage(chat.System, nil, text)}
	}
	return nil
}

// textMessage is a message with media and a text, either of which may be missing.
func textMessage(role string, media []chat.Part, text string) chat.Message {
	m := chat.Message{Role: role, Content: slices.Clone(media), List: len(media) > 0}
	if text != "" {
		m.Content = append(m.Content, chat.Part{Kind: chat.Text, Text: text})
	}
	return m
}

// readInput completes the request: with the prompt of the command line and
// standard input, or with the file of messages.
func (o *runOptions) readInput() error {
	if o.messages != "" {
		return o.readMessages()
	}
	text, err := readPrompt(o.prompt, o.stdin, o.stderr, o.request.Raw)
	if err != nil {
		return err
	}
	if text == "" && len(o.attached) == 0 {
		return usagef("no prompt, neither as argument nor by standard input; a chat needs a terminal to read from and to write to")
	}
	if o.request.Raw {
		o.request.Prompt = text
		return nil
	}
	conv := &o.request.Conversation
	conv.Messages = append(conv.Messages, textMessage(chat.User, o.attached, text))
	return nil
}

func (o *runOptions) readMessages() error {
	f, err := os.Open(o.messages)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := readBounded(o.messages, f)
	if err != nil {
		return err
	}
	conv, err := chat.ParseMessages(data)
	if err == nil && len(conv.Messages) == 0 {
		err = errors.New("no messages")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.messages, err)
	}
	o.request.Conversation = conv
	dir := filepath.Dir(o.messages)
	o.request.Load, o.request.Local = engine.LoadLocal(dir), engine.LocalPaths(dir)
	return nil
}

// media is the first medium that the model is going to be given, if any.
func (o *runOptions) media() (chat.Part, bool) {
	parts := slices.Clone(o.attached)
	for _, m := range o.request.Conversation.Messages {
		parts = append(parts, m.Content...)
	}
	i := slices.IndexFunc(parts, func(p chat.Part) bool { return p.Kind != chat.Text })
	if i < 0 {
		return chat.Part{}, false
	}
	return parts[i], true
}

// describe names a medium for people; a data URL is not for them.
func describe(p chat.Part) string {
	if strings.HasPrefix(p.Source, "data:") {
		return p.Kind.String() + " in a data URL"
	}
	return cmp.Or(p.Source, p.Kind.String())
}
