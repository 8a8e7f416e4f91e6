// Package session asks a loaded model: it prints answers as they come, carries out the
// tools that they call, and keeps a conversation within the context.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/markdown"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/progress"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/token"
)

// Session is a loaded model with the options that it is asked by.
type Session struct {
	*Options
	Engine   *engine.Engine
	Settings engine.Sampling // of the next answer
	Path     string          // text GGUF

	Lines    *terminal.LineReader // asks the person; nil if there is none
	Chatting bool                 // a person answers calls, and old turns may be left out
	Used     int                  // rows of the context after the last answer

	load    time.Duration   // that loading took, without a conversion
	allowed map[string]bool // tools that need no more asking
}

// Open loads the model, after converting it if it is a checkpoint.
func Open(ctx context.Context, o *Options) (*Session, error) {
	opt, err := o.files(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	loaded := progress.Loading(o.Stderr, o.Model)
	eng, err := engine.Open(ctx, opt)
	loaded()
	if err != nil {
		return nil, err
	}
	if w := binding.Warning(); w != "" {
		fmt.Fprintf(o.Stderr, "warning: %s\n", w)
	}
	defaults := eng.Defaults()
	if o.Stored != nil {
		defaults = StoredSampling(o.Stored.Params, defaults)
	}
	s := &Session{
		Options: o, Engine: eng, Settings: o.Sampling(defaults), load: time.Since(start), Path: opt.Model,
		allowed: map[string]bool{},
	}
	if o.CanAsk() {
		s.Lines = o.newLines()
	}
	return s, nil
}

// Close unloads the model.
func (s *Session) Close() { s.Engine.Close() }

// files says what to load. That media need a projector is said here, before
// anything is.
func (o *Options) files(ctx context.Context) (engine.Options, error) {
	found, err := locate.Resolve(ctx, o.Model, o.Stderr)
	if err != nil {
		return engine.Options{}, err
	}
	if o.Stored = found.Stored; o.Stored != nil {
		o.adopt(o.Stored)
	}
	if err := locate.WantFile(found.Path); err != nil {
		return engine.Options{}, err
	}
	opt := o.EngineOptions
	opt.Model, opt.MMProj, opt.MTP = found.Path, cmp.Or(opt.MMProj, found.MMProj), cmp.Or(opt.MTP, found.MTP)
	p, ok := o.media()
	if !ok {
		return opt, nil
	}
	if opt.MMProj == "off" {
		return opt, fmt.Errorf("%s: --mmproj off leaves the projector out that it needs", flags.MediumName(p))
	}
	none := false
	if opt.MMProj == "" {
		found, err := engine.FindProjector(opt.Model)
		none = found == "" && err == nil // which of several it is, the engine asks
	}
	if none {
		return opt, fmt.Errorf("%s: %s has no projector (mmproj file): --mmproj names one", flags.MediumName(p), opt.Model)
	}
	return opt, nil
}

// answer generates one turn and prints it as it comes. With an error comes what
// there is of the answer, nil if it did not begin.
func (s *Session) answer(ctx context.Context, conv chat.Conversation) (*engine.Result, error) {
	r := s.Request
	r.Conversation = conv
	r.Sampling = s.Settings
	p, status := s.printer(), terminal.NewStatusLine(s.Stderr)
	defer status.Clear()
	r.OnPrompt = func(done, total int) {
		if done < total {
			status.Show(fmt.Sprintf("prompt: %d of %d tokens", done, total))
		}
	}
	var special token.Detokenizer
	switch {
	case s.JSON:
	case s.ShowSpecial:
		r.OnToken = func(t engine.Token) error {
			status.Clear()
			piece, _ := s.Engine.Vocab().Token(t.ID)
			return p.text(special.Push(piece))
		}
	default:
		r.OnDelta = func(d chat.Delta) error {
			if d.Kind == chat.ReasoningDelta && s.HideThinking {
				status.Show("thinking")
				return nil
			}
			status.Clear()
			return p.delta(d)
		}
	}
	res, err := s.Engine.Generate(ctx, &r)
	status.Clear()
	if err := errors.Join(p.text(special.Flush()), p.end()); err != nil {
		return res, err
	}
	if err != nil {
		return res, err
	}
	s.notes(res)
	if s.Verbose {
		m, err := s.Engine.Memory(ctx)
		if err != nil {
			return res, err
		}
		terminal.Dim(s.Stderr, memoryLine(m))
		splits, err := s.Engine.Splits(ctx)
		if err != nil {
			return res, err
		}
		terminal.Dim(s.Stderr, fmt.Sprintf("device: %s; graph splits: %d", s.Engine.Choice(), splits))
	}
	return res, nil
}

// printer prints an answer. Markdown is for terminals, and for answers that are
// not held to another form.
func (s *Session) printer() *printer {
	p := newPrinter(s.Stdout, s.HideThinking)
	p.hideCalls = s.Tools.Exec != ""
	if terminal.Styled(s.Stdout) && !s.Plain && !s.ShowSpecial && !s.Request.Raw && s.Request.Grammar == nil {
		p.markdown = markdown.NewWriter(s.Stdout)
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
func (s *Session) notes(res *engine.Result) {
	for _, w := range res.Warnings {
		fmt.Fprintf(s.Stderr, "warning: %s\n", terminal.OneLine(w))
	}
	switch n := s.Request.MaxTokens; {
	case res.FinishReason != engine.FinishLength:
	case n == 0 || len(res.IDs) < n:
		fmt.Fprintf(s.Stderr, "note: the answer stops because the context of %d tokens is full (--ctx-size)\n", s.Engine.Context())
	case !s.JSON: // where finish_reason says it
		fmt.Fprintf(s.Stderr, "note: the answer stops after %d tokens (-n)\n", n)
	}
	if s.Verbose || terminal.Is(s.Stderr) && !s.JSON && !s.Quiet {
		terminal.Dim(s.Stderr, timingsOf(res, s.load).String())
	}
}
