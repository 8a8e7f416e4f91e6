package engine

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/token"
)

// openTokens reads the vocabulary and what it means: the chat protocol, the ids
// that end an answer, the ones that are never in one, and the placeholders.
func (e *Engine) openTokens() (err error) {
	if e.vocab, err = token.FromGGUF(e.text); err != nil {
		var broken *token.FormatError
		var foreign *token.UnsupportedError
		if errors.As(err, &broken) || errors.As(err, &foreign) { // these know the key, not the file
			err = fmt.Errorf("%s: %w", e.opt.Model, err)
		}
		return err
	}
	used := e.model.Config().Vocab
	if n := e.vocab.N(); n < used {
		return fmt.Errorf("%s: the tokenizer has %d entries, the model computes %d", e.opt.Model, n, used)
	}
	for id := range int32(e.vocab.N()) {
		text, _ := e.vocab.Token(id)
		e.longest = max(e.longest, len(text))
	}
	template, err := e.text.StrOr("tokenizer.chat_template", "")
	if err != nil {
		return err
	}
	if e.renderer, _, err = chat.NewRenderer(e.vocab, cmp.Or(e.opt.Template, template)); err != nil {
		return fmt.Errorf("%s: %w", e.opt.Model, err)
	}
	ids, err := chat.StopIDs(e.vocab)
	if err != nil {
		return fmt.Errorf("%s: %w", e.opt.Model, err)
	}
	for _, id := range ids {
		e.stops[id] = true
	}
	if err := e.openSlots(); err != nil {
		return err
	}
	for _, id := range chat.NeverSampled(e.vocab, used) {
		if int(id) < used {
			e.never = append(e.never, id)
		}
	}
	e.defaults, err = readSampling(e.text)
	return err
}

// openSlots finds the placeholders of media. Where the file says their ids, they
// must be the tokenizer's.
func (e *Engine) openSlots() error {
	for _, kind := range []chat.Kind{chat.Image, chat.Audio, chat.Video} {
		if id, ok := chat.SlotID(e.vocab, kind); ok {
			e.slots[id] = true
		}
	}
	for key, kind := range map[string]chat.Kind{
		"inkling.image_token_id": chat.Image, "inkling.audio_token_id": chat.Audio, "kimi.media_token_id": chat.Image,
	} {
		if _, ok := e.text.Value(key); !ok {
			continue
		}
		want, err := e.text.Uint(key)
		if err != nil {
			return err
		}
		id, ok := chat.SlotID(e.vocab, kind)
		switch {
		case !ok:
			return fmt.Errorf("%s: %s is %d, but the tokenizer has no placeholder for %s", e.opt.Model, key, want, kind)
		case uint64(id) != want:
			return fmt.Errorf("%s: %s is %d, but the tokenizer's placeholder for %s is %d", e.opt.Model, key, want, kind, id)
		}
	}
	return nil
}
