package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
)

// medium is a picture or sound of a request, on its way to rows.
type medium struct {
	name string
	rows int
	hash [sha256.Size]byte // of its bytes, so that prompts of equal ids and other pictures are told apart

	encode func() ([]float32, error) // on the owner's goroutine
	values []float32                 // [n_embd] for each row, once encoded
}

// vectors encodes the medium at the first call.
func (m *medium) vectors() ([]float32, error) {
	if m.values == nil {
		v, err := m.encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		m.values = v
	}
	return m.values, nil
}

// Load fetches the bytes of a medium from its source, a path, URL or data URL
// as the conversation gives it; name is for messages.
type Load func(ctx context.Context, source string) (name string, data []byte, err error)

// MediaLimits bound what a request may make the program decode.
type MediaLimits struct {
	Image media.Limits
}

// gather loads and decodes the media of a conversation. It returns a copy in
// which the source of each medium is the index in the returned list: that is
// how the renderer's media segments are bound to them.
func (e *Engine) gather(ctx context.Context, c chat.Conversation, load Load, lim MediaLimits) (chat.Conversation, []*medium, error) {
	var all []*medium
	out := c
	out.Messages = nil
	for i, msg := range c.Messages {
		var parts []chat.Part
		for _, p := range msg.Content {
			if p.Kind != chat.Text {
				m, err := e.open(ctx, p, load, lim)
				if err != nil {
					return c, nil, fmt.Errorf("message %d: %w", i, err)
				}
				p.Source = strconv.Itoa(len(all))
				all = append(all, m)
			}
			parts = append(parts, p)
		}
		msg.Content = parts
		out.Messages = append(out.Messages, msg)
	}
	return out, all, nil
}

// open loads one medium and finds out how many rows it becomes.
func (e *Engine) open(ctx context.Context, p chat.Part, load Load, lim MediaLimits) (*medium, error) {
	if e.proj == nil {
		return nil, fmt.Errorf("%s: %w", p.Kind, ErrNoProjector)
	}
	if load == nil {
		return nil, errors.New("media are not allowed here")
	}
	switch p.Kind {
	case chat.Image:
		if !e.proj.HasImage() {
			return nil, fmt.Errorf("%s has no image tower", e.mmproj.Path())
		}
	default:
		return nil, fmt.Errorf("%s: this program can not take it yet", p.Kind)
	}
	name, data, err := load(ctx, p.Source)
	if err != nil {
		return nil, err
	}
	im, err := media.DecodeImage(name, data, lim.Image)
	if err != nil {
		return nil, err
	}
	return &medium{
		name: name, rows: e.proj.ImageRows(im.W, im.H), hash: sha256.Sum256(data),
		encode: func() ([]float32, error) { return e.proj.EncodeImage(im) },
	}, nil
}
