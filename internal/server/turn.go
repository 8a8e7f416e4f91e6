package server

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// turn is a request in no protocol's words. Pointers that are nil stand for the
// model's own setting.
type turn struct {
	Model     string
	KeepAlive *time.Duration // how long the model stays afterwards

	Conversation chat.Conversation
	Raw          bool    // take Prompt as it is instead of the conversation
	Prompt       string  // of a raw request
	PromptIDs    []int32 // of a raw request, in place of Prompt

	Effort        string // see chat.ParseEffort
	ToolChoice    engine.ToolChoice
	ParallelCalls bool
	Format        format

	Sampling  sampling
	LogitBias map[int32]float32
	MaxTokens int // 0: until the model stops
	Stop      []string
	N         int // answers; 0: 1

	Logprobs    bool
	TopLogprobs int

	Words *strings.Replacer // what the protocol calls fields of OpenAI's API that the engine names; nil: the same
}

// named puts the field that an error of the engine names into the protocol's words.
func (t *turn) named(err error) error {
	var bad *engine.RequestError
	if t.Words == nil || !errors.As(err, &bad) {
		return err
	}
	return &engine.RequestError{Param: t.Words.Replace(bad.Param), Err: bad.Err}
}

// sampling is what a request says about sampling.
type sampling struct {
	Temperature, TopP, MinP, RepeatPenalty *float64
	PresencePenalty, FrequencyPenalty      *float64
	TopK, RepeatLastN                      *int
	Seed                                   *int64
}

// or returns s with what is missing taken from base.
func (s sampling) or(base sampling) sampling {
	return sampling{
		Temperature: cmp.Or(s.Temperature, base.Temperature), TopP: cmp.Or(s.TopP, base.TopP), MinP: cmp.Or(s.MinP, base.MinP),
		RepeatPenalty:   cmp.Or(s.RepeatPenalty, base.RepeatPenalty),
		PresencePenalty: cmp.Or(s.PresencePenalty, base.PresencePenalty), FrequencyPenalty: cmp.Or(s.FrequencyPenalty, base.FrequencyPenalty),
		TopK: cmp.Or(s.TopK, base.TopK), RepeatLastN: cmp.Or(s.RepeatLastN, base.RepeatLastN), Seed: cmp.Or(s.Seed, base.Seed),
	}
}

// over returns the settings of the model's file with these in their place.
func (s sampling) over(d engine.Sampling) engine.Sampling {
	for _, f := range []struct {
		to   *float32
		from *float64
	}{
		{&d.Temperature, s.Temperature},
		{&d.TopP, s.TopP},
		{&d.MinP, s.MinP},
		{&d.RepeatPenalty, s.RepeatPenalty},
		{&d.PresencePenalty, s.PresencePenalty},
		{&d.FrequencyPenalty, s.FrequencyPenalty},
	} {
		if f.from != nil {
			*f.to = float32(*f.from)
		}
	}
	if s.TopK != nil {
		d.TopK = *s.TopK
	}
	if s.RepeatLastN != nil {
		d.RepeatLastN = *s.RepeatLastN
	}
	d.Seed = uint64(rand.Uint32())
	if s.Seed != nil {
		d.Seed = uint64(*s.Seed)
	}
	return d
}

// eventKind is the kind of an event.
type eventKind int

// Kinds of events, in the order in which an answer has them.
const (
	started        eventKind = iota // the prompt is being computed: PromptTokens
	reasoningDelta                  // Text of the model's thinking
	contentDelta                    // Text of the answer, and Tokens if asked for
	toolCallStart                   // ID and Name of call number Call
	toolCallArgs                    // Text of its arguments, JSON
	toolCallEnd
	finished // Answer, and the Tokens since the last content
)

// event is something that happens to one of the answers.
type event struct {
	Kind   eventKind
	Choice int // number of the answer
	Text   string

	Call     int // number of the tool call in the answer
	ID, Name string

	PromptTokens int
	Tokens       []engine.Token // content tokens of which Text is made, with their log-probabilities
	Answer       *answer
}

// answer is a finished one.
type answer struct {
	*engine.Result
	ReasoningTokens int
	Tokens          []engine.Token // of the content, if log-probabilities were asked for
}

// usage counts the tokens of all answers; their prompt, which they share, once.
type usage struct {
	Prompt, Cached, Generated, Reasoning int
}

func usageOf(answers []*answer) usage {
	var u usage
	for i, a := range answers {
		if i == 0 {
			u.Prompt, u.Cached = a.PromptTokens, a.Cached
		}
		u.Generated += a.GeneratedTokens
		u.Reasoning += a.ReasoningTokens
	}
	return u
}

// acquire loads the model of a name, if it is not loaded. The caller gives it back
// by pool.release.
func (s *Server) acquire(ctx context.Context, name string) (*loaded, error) {
	m, err := s.catalog.resolve(name)
	if err != nil {
		return nil, err
	}
	return s.pool.acquire(ctx, m)
}

// generate computes the answers to a turn and calls emit, if it is not nil, with
// what happens to them, never twice at a time. An error of emit ends it.
func (s *Server) generate(ctx context.Context, t *turn, emit func(event) error) ([]*answer, error) {
	l, err := s.acquire(ctx, t.Model)
	if err != nil {
		return nil, err
	}
	defer s.pool.release(l, t.KeepAlive)
	return s.generateOn(ctx, l, t, emit)
}

// generateOn is generate on a model that the caller has acquired.
func (s *Server) generateOn(ctx context.Context, l *loaded, t *turn, emit func(event) error) ([]*answer, error) {
	if emit == nil {
		emit = func(event) error { return nil }
	}
	req, err := s.engineRequest(l, t)
	if err != nil {
		return nil, err
	}
	answers := make([]*answer, max(t.N, 1))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for i := range answers {
		r := *req
		r.Sampling.Seed += uint64(i)
		c := &choice{server: s, turn: t, model: l.Name, begin: time.Now(), emit: func(e event) error {
			mu.Lock()
			defer mu.Unlock()
			e.Choice = i
			return emit(e)
		}}
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = s.panicked(l.Name, p)
				}
			}()
			answers[i], err = c.run(ctx, l.eng, &r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, t.named(err)
	}
	return answers, nil
}

// engineRequest puts a turn into the engine's words.
func (s *Server) engineRequest(l *loaded, t *turn) (*engine.Request, error) {
	maxTokens, stop := l.limits(t.MaxTokens, t.Stop)
	r := &engine.Request{
		Conversation:  l.conversation(t.Conversation),
		Chat:          chat.Options{Effort: t.Effort, AddGenerationPrompt: true},
		Raw:           t.Raw,
		Prompt:        t.Prompt,
		PromptIDs:     t.PromptIDs,
		Sampling:      t.Sampling.or(l.sampling()).over(l.eng.Defaults()),
		MaxTokens:     maxTokens,
		Stop:          stop,
		LogitBias:     t.LogitBias,
		Logprobs:      t.Logprobs,
		TopLogprobs:   t.TopLogprobs,
		ToolChoice:    t.ToolChoice,
		ParallelCalls: t.ParallelCalls,
		Load:          s.media.load,
		Local:         s.media.local,
		Limits:        s.opt.Limits,
	}
	var err error
	r.Grammar, err = s.formats.grammar(&t.Format)
	return r, err
}

// choice is one of the answers while it is generated.
type choice struct {
	server *Server
	turn   *turn
	model  string
	emit   func(event) error

	begin     time.Time
	last      time.Time // of the last token
	started   bool
	calls     int
	reasoning int
	pending   []engine.Token // content tokens whose text has not come yet
	tokens    []engine.Token
}

func (c *choice) run(ctx context.Context, eng *engine.Engine, r *engine.Request) (*answer, error) {
	r.OnPrompt = func(_, total int) { _ = c.start(total) } // the next piece meets the same error
	r.OnToken, r.OnDelta = c.token, c.delta
	res, err := eng.Generate(ctx, r)
	if err != nil {
		if res != nil {
			c.server.metrics.answered(c.model, &answer{Result: res, ReasoningTokens: c.reasoning}, "error")
		}
		return nil, err
	}
	if err := c.start(res.PromptTokens); err != nil {
		return nil, err
	}
	a := &answer{Result: res, ReasoningTokens: c.reasoning, Tokens: append(c.tokens, c.pending...)}
	c.server.metrics.answered(c.model, a, a.FinishReason)
	return a, c.emit(event{Kind: finished, Answer: a, Tokens: c.pending})
}

// start says once that the prompt is at work.
func (c *choice) start(promptTokens int) error {
	if c.started {
		return nil
	}
	c.started = true
	return c.emit(event{Kind: started, PromptTokens: promptTokens})
}

// token counts tokens, and keeps those of the content if the request wants them.
func (c *choice) token(t engine.Token) error {
	now := time.Now()
	c.server.metrics.with(c.model, func(m *modelMetrics) {
		if c.last.IsZero() {
			m.firstToken.observe(now.Sub(c.begin).Seconds())
		} else {
			m.nextToken.observe(now.Sub(c.last).Seconds())
		}
	})
	c.last = now
	switch {
	case t.Kind == engine.ReasoningToken:
		c.reasoning++
	case t.Kind == engine.ContentToken && c.turn.Logprobs:
		t.Top = slices.Clone(t.Top)
		c.pending = append(c.pending, t)
	}
	return nil
}

func (c *choice) delta(d chat.Delta) error {
	if err := c.start(0); err != nil {
		return err
	}
	switch d.Kind {
	case chat.ReasoningDelta:
		return c.emit(event{Kind: reasoningDelta, Text: d.Text})
	case chat.ContentDelta:
		e := event{Kind: contentDelta, Text: d.Text, Tokens: c.pending}
		c.tokens, c.pending = append(c.tokens, c.pending...), nil
		return c.emit(e)
	}
	return c.call(d.Call)
}

// call emits a tool call, which the parser hands over whole.
func (c *choice) call(call *chat.ToolCall) error {
	n := c.calls
	c.calls++
	for _, e := range []event{
		{Kind: toolCallStart, Call: n, ID: call.ID, Name: call.Name},
		{Kind: toolCallArgs, Call: n, Text: string(call.Arguments)},
		{Kind: toolCallEnd, Call: n},
	} {
		if err := c.emit(e); err != nil {
			return err
		}
	}
	return nil
}
