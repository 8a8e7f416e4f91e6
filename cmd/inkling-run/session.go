package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/token"
)

// session is a loaded model with the options that it is asked by.
type session struct {
	*runOptions
	eng      *engine.Engine
	settings engine.Sampling
	load     time.Duration // that loading took, without a conversion
}

// openSession loads the model, after converting it if it is a checkpoint.
func openSession(ctx context.Context, o *runOptions) (*session, error) {
	opt, err := o.files(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	eng, err := engine.Open(ctx, opt)
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
	return &session{o, eng, o.sampling(defaults), time.Since(start)}, nil
}

func (s *session) close() { s.eng.Close() }

// files says what to load. That media need a projector is said here, before
// anything is.
func (o *runOptions) files(ctx context.Context) (engine.Options, error) {
	found, err := resolveModel(ctx, o.model, o.stderr)
	if err != nil {
		return engine.Options{}, err
	}
	if o.stored = found.Stored; o.stored != nil {
		o.adopt(o.stored)
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

// notCheckpoint says what a folder without a checkpoint holds instead.
func notCheckpoint(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); !errors.Is(err, fs.ErrNotExist) {
		return nil // or the converter says what is wrong
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: neither a checkpoint (config.json) nor GGUF files are in this folder", dir)
	}
	return fmt.Errorf("%s: no checkpoint is in this folder (config.json); name one of its GGUF files, such as %s", dir, files[0])
}

// answer generates one turn and prints it as it comes. With an error comes what
// there is of the answer, nil if it did not begin.
func (s *session) answer(ctx context.Context, conv chat.Conversation) (*engine.Result, error) {
	r := s.request
	r.Conversation = conv
	r.Sampling = s.settings
	p := newPrinter(s.stdout, s.hideThinking)
	var special token.Detokenizer
	switch {
	case s.json:
	case s.showSpecial:
		r.OnToken = func(t engine.Token) error {
			piece, _ := s.eng.Vocab().Token(t.ID)
			return p.text(special.Push(piece))
		}
	default:
		r.OnDelta = p.delta
	}
	res, err := s.eng.Generate(ctx, &r)
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
	if res.FinishReason == engine.FinishLength && (s.request.MaxTokens == 0 || len(res.IDs) < s.request.MaxTokens) {
		fmt.Fprintf(s.stderr, "note: the answer stops because the context of %d tokens is full (--ctx-size)\n", s.eng.Context())
	}
	if s.verbose || isTerminal(s.stderr) && !s.json {
		dim(s.stderr, timingsOf(res, s.load).String())
	}
}
