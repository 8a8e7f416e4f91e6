package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

// Generate computes one turn. Media are loaded by the caller's goroutine, and
// everything that needs the model runs on the owner's. A result is returned
// with the error when the context ended or a callback failed in the middle of
// the answer: what there was until then.
func (e *Engine) Generate(ctx context.Context, r *Request) (*Result, error) {
	if err := r.Sampling.Validate(); err != nil {
		return nil, err
	}
	p, err := e.prompt(ctx, r)
	if err != nil {
		return nil, err
	}
	if n := len(p.ids); n >= e.opt.Context {
		return nil, fmt.Errorf("the prompt has %d tokens, the context %d: %w: shorten it or give a larger --ctx-size (the model allows %d)",
			n, e.opt.Context, ErrContextFull, e.model.Config().Context)
	}
	g := &generation{e: e, r: r, p: p, res: &Result{PromptIDs: p.ids, PromptTokens: len(p.ids)}}
	queued := time.Now()
	err = e.do(ctx, func() error {
		g.res.Queued = time.Since(queued)
		return g.run(ctx)
	})
	g.res.GeneratedTokens = len(g.res.IDs)
	e.stats.count(g.res, err)
	return g.res, err
}

// prompt renders a request into rows.
func (e *Engine) prompt(ctx context.Context, r *Request) (rows, error) {
	if r.Raw {
		p := rows{ids: e.vocab.EncodeWithSpecial(r.Prompt)}
		if len(p.ids) == 0 {
			return rows{}, errors.New("the prompt is empty")
		}
		return p, e.checkSlots(p)
	}
	conv, all, err := e.gather(ctx, r)
	if err != nil {
		return rows{}, err
	}
	segs, parts, err := e.renderer.Render(conv, r.Chat)
	if err != nil {
		return rows{}, err
	}
	bound := make([]*medium, len(parts))
	for i, p := range parts {
		n, err := strconv.Atoi(p.Source)
		if err != nil || n+p.Block >= len(all) {
			return rows{}, fmt.Errorf("medium %d of the prompt is none of the conversation's", i)
		}
		bound[i] = all[n+p.Block]
	}
	var slotErr error
	ids, slots, err := e.vocab.EncodeSegments(segs, func(m int) (int32, int) {
		id, ok := chat.SlotID(e.vocab, parts[m].Kind)
		if !ok {
			slotErr = fmt.Errorf("the vocabulary has no placeholder for %s", parts[m].Kind)
		}
		return id, bound[m].rows
	})
	if err = errors.Join(slotErr, err); err != nil {
		return rows{}, err
	}
	p := rows{ids: ids}
	for _, s := range slots {
		p.media = append(p.media, mediaRows{bound[s.Media], s.Pos})
	}
	return p, e.checkSlots(p)
}

// checkSlots returns an error unless the placeholders of a prompt are as many as
// the rows of its media. A raw prompt can spell them, but has no media.
func (e *Engine) checkSlots(p rows) error {
	have := 0
	for _, m := range p.media {
		have += m.rows
	}
	found := 0
	for _, id := range p.ids {
		if e.slots[id] {
			found++
		}
	}
	if found != have {
		return fmt.Errorf("the prompt has %d placeholders of media, but there are %d rows of media to take their place", found, have)
	}
	return nil
}

// notes is what the user should know of the media, each once.
func (p rows) notes() []string {
	var notes []string
	for _, m := range p.media {
		if m.note != "" && !slices.Contains(notes, m.note) {
			notes = append(notes, m.note)
		}
	}
	return notes
}

// generation is a request at work, on the owner's goroutine.
type generation struct {
	e   *Engine
	r   *Request
	p   rows
	res *Result
}

func (g *generation) run(ctx context.Context) error {
	e := g.e
	logits := make([]float32, e.model.Config().Vocab)
	start := time.Now()
	cached, saved := e.seq.reuse(g.p)
	g.res.Cached = cached
	copy(logits, saved)
	// Room for the answer, so that its tokens do not move the prompt about.
	g.p.ids = slices.Grow(slices.Clone(g.p.ids), e.opt.Context+1-len(g.p.ids))
	if err := e.feed(ctx, g.p, g.res.Cached, logits, g.r.OnPrompt); err != nil {
		return err
	}
	e.seq.save(logits)
	g.res.PromptTime = time.Since(start)
	start = time.Now()
	defer func() { g.res.GenerateTime = time.Since(start) }()
	return g.answer(ctx, logits)
}

// answer samples until the model stops, the limit is reached or the context is full.
func (g *generation) answer(ctx context.Context, logits []float32) error {
	e := g.e
	parser := chat.NewParserAfter(e.vocab, g.p.ids)
	smp := newSampler(g.r.Sampling, e.never, len(logits))
	defer func() { g.res.Warnings = append(g.p.notes(), parser.Warnings()...) }()
	ids := g.p.ids
	one := rows{media: g.p.media}
	for {
		id, err := smp.next(logits, ids)
		if err != nil {
			e.seq.reset()
			return fmt.Errorf("%s: %w", e.opt.Model, err)
		}
		ids = append(ids, id)
		g.res.IDs = append(g.res.IDs, id)
		if err := g.emit(id, parser.Push(id)); err != nil {
			return err
		}
		if e.stops[id] {
			break
		}
		if (g.r.MaxTokens > 0 && len(g.res.IDs) >= g.r.MaxTokens) || len(ids) > e.opt.Context {
			g.res.FinishReason = FinishLength
			break
		}
		one.ids = ids
		if err := e.feed(ctx, one, len(ids)-1, logits, nil); err != nil {
			return err
		}
	}
	if err := g.deltas(parser.Finish()); err != nil {
		return err
	}
	if g.res.FinishReason == "" {
		g.res.FinishReason = FinishStop
		if len(g.res.ToolCalls) > 0 {
			g.res.FinishReason = FinishToolCalls
		}
	}
	return nil
}

func (g *generation) emit(id int32, ds []chat.Delta) error {
	if g.r.OnToken != nil {
		if err := g.r.OnToken(Token{ID: id, Piece: g.e.vocab.Piece(id)}); err != nil {
			return err
		}
	}
	return g.deltas(ds)
}

func (g *generation) deltas(ds []chat.Delta) error {
	for _, d := range ds {
		switch d.Kind {
		case chat.ReasoningDelta:
			g.res.Reasoning += d.Text
		case chat.ContentDelta:
			g.res.Text += d.Text
		case chat.ToolCallDelta:
			g.res.ToolCalls = append(g.res.ToolCalls, *d.Call)
		}
		if g.r.OnDelta != nil {
			if err := g.r.OnDelta(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Tokenize renders a conversation and returns the ids of its prompt; media are
// loaded, since the number of their rows depends on them.
func (e *Engine) Tokenize(ctx context.Context, r *Request) ([]int32, error) {
	p, err := e.prompt(ctx, r)
	return p.ids, err
}

// CountTokens is the number of rows that the prompt of a request has.
func (e *Engine) CountTokens(ctx context.Context, r *Request) (int, error) {
	p, err := e.prompt(ctx, r)
	return len(p.ids), err
}

// Spell writes ids out for a person to read, special tokens included.
func (e *Engine) Spell(ids []int32) string { return e.vocab.DecodeWithSpecial(ids) }
