package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// Generate computes one turn. Many may run at once: Options.Parallel of them
// together, Options.Queue more wait, and others get ErrBusy. Media are loaded
// and callbacks run on the caller's goroutine, and everything that needs the
// model on the owner's. A callback that is slow holds up its own answer only.
//
// When the context ends or a callback fails, the sequence is free for others
// after the step that is being computed. A result is returned with the error
// then: what there was until there.
func (e *Engine) Generate(ctx context.Context, r *Request) (*Result, error) {
	res, err := e.generate(ctx, r)
	e.stats.count(res, err)
	return res, err
}

func (e *Engine) generate(ctx context.Context, r *Request) (*Result, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := e.validate(r); err != nil {
		return nil, err
	}
	p, err := e.prompt(ctx, r)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if err := e.checkLength(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, err := e.newTask(ctx, r, p)
	if err != nil {
		return nil, err
	}
	e.submit(t)
	a := answer{res: &Result{}}
	for ev := range t.events {
		if ctx.Err() == nil {
			if err := a.deliver(r, ev); err != nil {
				cancel(err)
			}
		}
		if t.paused.Load() && len(t.events) <= eventRoom/2 {
			t.paused.Store(false)
			e.wake()
		}
	}
	return a.finish(t, p.ids), t.err
}

// checkLength is an error unless a prompt leaves room for a token.
func (e *Engine) checkLength(p rows) error {
	if n := len(p.ids); n >= e.opt.Context {
		return fmt.Errorf("the prompt has %d tokens, the context %d: %w: shorten it or give a larger --ctx-size (the model allows %d)",
			n, e.opt.Context, ErrContextFull, e.model.Config().Context)
	}
	return nil
}

// requestError says that what is wrong with a prompt is the caller's fault,
// unless it is the end of the context or of the engine.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return err
	}
	return &RequestError{Err: err}
}

// answer is what has been delivered of one.
type answer struct {
	res             *Result
	text, reasoning strings.Builder
}

// deliver collects an event and calls the request's functions.
func (a *answer) deliver(r *Request, ev event) error {
	if ev.total > 0 && r.OnPrompt != nil {
		r.OnPrompt(ev.done, ev.total)
	}
	if ev.token != nil {
		a.res.IDs = append(a.res.IDs, ev.token.ID)
		if r.OnToken != nil {
			if err := r.OnToken(*ev.token); err != nil {
				return err
			}
		}
	}
	for _, d := range ev.deltas {
		switch d.Kind {
		case chat.ReasoningDelta:
			a.reasoning.WriteString(d.Text)
		case chat.ContentDelta:
			a.text.WriteString(d.Text)
		case chat.ToolCallDelta:
			a.res.ToolCalls = append(a.res.ToolCalls, *d.Call)
		}
		if r.OnDelta != nil {
			if err := r.OnDelta(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish adds what the owner knows of an answer that has ended.
func (a *answer) finish(t *task, prompt []int32) *Result {
	res := t.res
	res.Text, res.Reasoning = a.text.String(), a.reasoning.String()
	res.ToolCalls, res.IDs, res.PromptIDs = a.res.ToolCalls, a.res.IDs, prompt
	res.PromptTokens = len(prompt)
	return &res
}
