package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/inkling-go/inkling/internal/chat"
)

// prompt renders a request into rows.
func (e *Engine) prompt(ctx context.Context, r *Request) (rows, error) {
	if r.Raw {
		return e.rawPrompt(r)
	}
	conv, all, err := e.gather(ctx, r)
	if err != nil {
		return rows{}, err
	}
	segs, parts, err := e.renderer.Render(conv, r.Chat)
	if err != nil {
		return rows{}, err
	}
	bytes := 0
	for _, s := range segs {
		bytes += len(s.Text)
	}
	if err := e.checkBytes(bytes); err != nil {
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

// checkBytes is an error for texts that can not fit, whatever their tokens are:
// finding those of a text of many megabytes takes a minute. No token stands for
// more than the longest one; where the vocabulary composes characters first, a
// text gets shorter by less than the factor.
func (e *Engine) checkBytes(n int) error {
	const composed = 4
	if least := n / (composed * max(e.longest, 1)); least >= e.opt.Context {
		return fmt.Errorf("the prompt has %d bytes, more than %d tokens, the context %d: %w: shorten it or give a larger --ctx-size (the model allows %d)",
			n, least, e.opt.Context, ErrContextFull, e.model.Config().Context)
	}
	return nil
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

// CountTokens is the number of rows that the prompt of a request has. Media are
// loaded, since the number of their rows depends on them.
func (e *Engine) CountTokens(ctx context.Context, r *Request) (int, error) {
	p, err := e.prompt(ctx, r)
	return len(p.ids), err
}

// Spell writes ids out for a person to read, special tokens included.
func (e *Engine) Spell(ids []int32) string { return e.vocab.DecodeWithSpecial(ids) }

// rawPrompt takes a prompt as it is.
func (e *Engine) rawPrompt(r *Request) (rows, error) {
	if err := e.checkBytes(len(r.Prompt)); err != nil {
		return rows{}, err
	}
	p := rows{ids: slices.Clone(r.PromptIDs)}
	if p.ids == nil {
		p.ids = e.vocab.EncodeWithSpecial(r.Prompt)
	}
	if len(p.ids) == 0 {
		return rows{}, errors.New("the prompt is empty")
	}
	for _, id := range p.ids {
		if n := e.model.Config().Vocab; id < 0 || int(id) >= n {
			return rows{}, fmt.Errorf("the prompt has the token id %d, the model knows 0 to %d", id, n-1)
		}
	}
	return p, e.checkSlots(p)
}
