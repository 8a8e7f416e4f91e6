package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/token"
)

// session is a loaded model with the options that it is asked by.
type session struct {
	*sessionOptions
	eng      *engine.Engine
	settings engine.Sampling
	load     time.Duration // that loading took, without a conversion
	path     string        // text GGUF

	lines    *lineReader     // asks the person; nil if there is none
	allowed  map[string]bool // tools that need no more asking
	chatting bool
	used     int // rows of the context after the last answer
}

// openSession loads the model, after converting it if it is a checkpoint.
func openSession(ctx context.Context, o *sessionOptions) (*session, error) {
	opt, err := o.files(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	loaded := loading(o.stderr, o.model)
	eng, err := engine.Open(ctx, opt)
	loaded()
	if err != nil {
		return nil, err
	}
	if w := binding.Warning(); w != "" {
		fmt.Fprintf(o.stderr, "warning: %s\n", w)
	}
	defaults := eng.Defaults()
	if o.stored != nil {
		defaults = storedSampling(o.stored.Params, defaults)
	}
	s := &session{
		sessionOptions: o, eng: eng, settings: o.sampling(defaults), load: time.Since(start), path: opt.Model,
		allowed: map[string]bool{},
	}
	if o.canAsk() {
		s.lines = o.newLines()
	}
	return s, nil
}

func (s *session) close() { s.eng.Close() }

// files says what to load. That media need a projector is said here, before
// anything is.
func (o *sessionOptions) files(ctx context.Context) (engine.Options, error) {
	found, err := resolveModel(ctx, o.model, o.stderr)
	if err != nil {
		return engine.Options{}, err
	}
	if o.stored = found.Stored; o.stored != nil {
		o.adopt(o.stored)
	}
	if err := wantModelFile(found.Path); err != nil {
		return engine.Options{}, err
	}
	opt := o.engine
	opt.Model, opt.MMProj, opt.MTP = found.Path, cmp.Or(opt.MMProj, found.MMProj), cmp.Or(opt.MTP, found.MTP)
	p, ok := o.media()
	if !ok {
		return opt, nil
	}
	if opt.MMProj == "off" {
		return opt, fmt.Errorf("%s: --mmproj off leaves the projector out that it needs", describe(p))
	}
	none := false
	if opt.MMProj == "" {
		found, err := engine.FindProjector(opt.Model)
		none = found == "" && err == nil // which of several it is, the engine asks
	}
	if none {
		return opt, fmt.Errorf("%s: %s has no projector (mmproj file): --mmproj names one", describe(p), opt.Model)
	}
	return opt, nil
}

// answer generates one turn and prints it as it comes. With an error comes what
// there is of the answer, nil if it did not begin.
func (s *session) answer(ctx context.Context, conv chat.Conversation) (*engine.Result, error) {
	r := s.request
	r.Conversation = conv
	r.Sampling = s.settings
	p, status := s.printer(), newStatusLine(s.stderr)
	defer status.clear()
	r.OnPrompt = func(done, total int) {
		if done < total {
			status.show(fmt.Sprintf("prompt: %d of %d tokens", done, total))
		}
	}
	var special token.Detokenizer
	switch {
	case s.json:
	case s.showSpecial:
		r.OnToken = func(t engine.Token) error {
			status.clear()
			piece, _ := s.eng.Vocab().Token(t.ID)
			return p.text(special.Push(piece))
		}
	default:
		r.OnDelta = func(d chat.Delta) error {
			if d.Kind == chat.ReasoningDelta && s.hideThinking {
				status.show("thinking")
				return nil
			}
			status.clear()
			return p.delta(d)
		}
	}
	res, err := s.eng.Generate(ctx, &r)
	status.clear()
	if err := errors.Join(p.text(special.Flush()), p.end()); err != nil {
		return res, err
	}
	if err != nil {
		return res, err
	}
	s.notes(res)
	if s.verbose {
		m, err := s.eng.Memory(ctx)
		if err != nil {
			return res, err
		}
		dim(s.stderr, memoryLine(m))
		splits, err := s.eng.Splits(ctx)
		if err != nil {
			return res, err
		}
		dim(s.stderr, fmt.Sprintf("device: %s; graph splits: %d", s.eng.Choice(), splits))
	}
	return res, nil
}

// printer prints an answer. Markdown is for terminals, and for answers that are
// not held to another form.
func (s *session) printer() *printer {
	p := newPrinter(s.stdout, s.hideThinking)
	p.hideCalls = s.tools.exec != ""
	if styled(s.stdout) && !s.plain && !s.showSpecial && !s.request.Raw && s.request.Grammar == nil {
		p.markdown = newMarkdownWriter(s.stdout)
	}
	return p
}

// memoryLine says what the model takes, for people.
func memoryLine(m engine.Memory) string {
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	return fmt.Sprintf("memory: weights %.1f MiB, cache %.1f MiB, compute %.1f MiB, saved states %.1f MiB",
		mib(m.Weights), mib(m.Cache), mib(m.Compute), mib(m.Saved))
}

// notes says on standard error what the answer itself does not.
func (s *session) notes(res *engine.Result) {
	for _, w := range res.Warnings {
		fmt.Fprintf(s.stderr, "warning: %s\n", oneLine(w))
	}
	switch n := s.request.MaxTokens; {
	case res.FinishReason != engine.FinishLength:
	case n == 0 || len(res.IDs) < n:
		fmt.Fprintf(s.stderr, "note: the answer stops because the context of %d tokens is full (--ctx-size)\n", s.eng.Context())
	case !s.json: // where finish_reason says it
		fmt.Fprintf(s.stderr, "note: the answer stops after %d tokens (-n)\n", n)
	}
	if s.verbose || isTerminal(s.stderr) && !s.json && !s.quiet {
		dim(s.stderr, timingsOf(res, s.load).String())
	}
}
