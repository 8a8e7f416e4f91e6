package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
)

// A task tells its caller what happens by events. The owner never waits for a
// caller: a task whose caller leaves less room than a step may need pauses.
const (
	eventRoom    = 128
	eventReserve = 32
)

// event is something that happened to a task: rows of the prompt are done, or a
// token and what it completes of the answer.
type event struct {
	done, total int // of a prompt; 0: not of one
	token       *Token
	deltas      []chat.Delta
}

// task is a request at work. The owner's goroutine has it from submit until it
// closes events; only then may the caller look at it again.
type task struct {
	e   *Engine
	ctx context.Context
	r   *Request // nil: the rows are computed for their hidden states alone
	p   rows     // the prompt, and behind it the answer
	n   int      // rows of the prompt

	unwatch func() bool // takes back what the end of ctx would do
	events  chan event
	paused  atomic.Bool // the owner waits for room

	slot   *slot
	keys   []mediaRows // the prompt's media without their vectors
	branch int         // a row where other prompts go on differently; 0: none

	parser     chat.Parser
	sampler    *sampler
	stopper    stopper
	constraint *constraint
	calls      int
	mean       *mean // of the hidden states, if that is what is wanted

	res                      Result // but for the texts and ids, which the caller collects
	queued, admitted, answer time.Time
	err                      error
}

// newTask makes a task of a prompt, on the caller's goroutine.
func (e *Engine) newTask(ctx context.Context, r *Request, p rows) (*task, error) {
	t := &task{e: e, ctx: ctx, r: r, n: len(p.ids), p: rows{ids: slices.Clone(p.ids), media: p.media}, events: make(chan event, eventRoom), queued: time.Now()}
	for _, m := range p.media {
		t.keys = append(t.keys, mediaRows{&medium{rows: m.rows, hash: m.hash}, m.pos})
	}
	if r == nil {
		return t, nil
	}
	t.parser = chat.NewParserAfter(e.vocab, p.ids)
	t.stopper.stops = r.Stop
	c, never, err := e.constrain(r, t.parser)
	if err != nil {
		return nil, err
	}
	t.constraint = c
	t.res.Warnings = p.notes()
	t.sampler = newSampler(r.Sampling, append(never, e.never...), r.LogitBias)
	return t, nil
}

// left is what a task has yet to compute: the rows of its prompt, or the tokens
// of its answer that the model has not seen.
func (t *task) left() []int32 { return t.p.ids[len(t.slot.fed.ids):] }

// decoding reports that the prompt is computed.
func (t *task) decoding() bool { return t.slot != nil && len(t.slot.fed.ids) >= t.n }

// computed notes that the slot holds the first n rows of the task.
func (t *task) computed(n int) { t.slot.fed = rows{t.p.ids[:n:n], t.keys} }

// blocked reports whether the caller has left too little room for another step.
func (t *task) blocked() bool {
	if len(t.events) <= eventRoom-eventReserve {
		return false
	}
	t.paused.Store(true)
	return len(t.events) > eventRoom-eventReserve // it may have caught up before it could see the flag
}

// take chooses the next token from the logits of the last row and says what it
// completes. done reports the end of the answer. A panic ends the answer and not
// the owner, which others' answers depend on.
func (t *task) take(w *workspace, logits []float32) (done bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			done, err = true, &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if err := checkFinite(logits); err != nil {
		return true, fmt.Errorf("%s: %w", t.e.opt.Model, err)
	}
	allowed, err := t.constraint.allowed()
	if err != nil {
		return true, err
	}
	id, err := t.sampler.next(w, logits, t.p.ids, t.n, allowed)
	if err != nil {
		return true, fmt.Errorf("%s: %w", t.e.opt.Model, err)
	}
	before := t.parser.Phase()
	tok := &Token{ID: id, Piece: t.e.vocab.Piece(id), Kind: t.kind(id, before)}
	t.logprobs(tok, logits)
	deltas, stop := t.untilStop(t.parser.Push(id))
	if err := t.constraint.accept(id, before); err != nil {
		return true, err
	}
	t.p.ids = append(t.p.ids, id)
	t.res.StopSequence = stop
	switch {
	case stop != "" || t.e.stops[id] || t.calls > 0 && !t.r.ParallelCalls:
		done = true
	case t.r.MaxTokens > 0 && len(t.p.ids)-t.n >= t.r.MaxTokens || len(t.p.ids) > t.e.opt.Context:
		t.res.FinishReason = FinishLength
		done = true
	}
	if done && stop == "" {
		deltas = append(deltas, t.rest()...)
	}
	t.events <- event{token: tok, deltas: deltas}
	return done, nil
}

// kind says what a token is a part of.
func (t *task) kind(id int32, p chat.Phase) TokenKind {
	switch {
	case t.e.vocab.Control(id) || t.e.stops[id]:
		return ControlToken
	case p == chat.PhaseReasoning:
		return ReasoningToken
	case p == chat.PhaseContent:
		return ContentToken
	}
	return ToolToken // text in no part begins the name of a tool
}

// untilStop passes deltas on up to the first stop string in the content. Text
// that may be the beginning of one waits.
func (t *task) untilStop(ds []chat.Delta) (out []chat.Delta, stop string) {
	for _, d := range ds {
		if d.Kind == chat.ToolCallDelta {
			t.calls++
		}
		if len(t.stopper.stops) == 0 {
			out = append(out, d)
			continue
		}
		if d.Kind != chat.ContentDelta {
			out = append(append(out, contentDelta(t.stopper.flush())...), d)
			continue
		}
		text, stop := t.stopper.push(d.Text)
		if out = append(out, contentDelta(text)...); stop != "" {
			return out, stop
		}
	}
	return out, ""
}

func contentDelta(text string) []chat.Delta {
	if text == "" {
		return nil
	}
	return []chat.Delta{{Kind: chat.ContentDelta, Text: text}}
}

// rest ends the answer and returns what was held back.
func (t *task) rest() []chat.Delta {
	out, stop := t.untilStop(t.parser.Finish())
	if t.res.StopSequence = stop; stop != "" {
		t.res.FinishReason = ""
	}
	return append(out, contentDelta(t.stopper.flush())...)
}

// end is the last that the owner does with a task.
func (t *task) end(err error) {
	t.unwatch()
	t.err = err
	if t.r != nil {
		t.res.Warnings = append(t.res.Warnings, t.parser.Warnings()...)
	}
	t.res.GeneratedTokens = len(t.p.ids) - t.n
	if !t.answer.IsZero() {
		t.res.GenerateTime = time.Since(t.answer)
	}
	if err == nil && t.r != nil && t.res.FinishReason == "" {
		t.res.FinishReason = FinishStop
		if t.calls > 0 && t.res.StopSequence == "" {
			t.res.FinishReason = FinishToolCalls
		}
	}
	close(t.events)
}

// errorOr is the cause of the end of the task's context, or else err.
func (t *task) errorOr(err error) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if errors.Is(err, binding.ErrInterrupted) {
		return context.Canceled
	}
	return err
}
