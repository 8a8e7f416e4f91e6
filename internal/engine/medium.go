package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// medium is a picture, a sound, a pair of video frames, or an item of a clip of a
// request, on its way to rows.
type medium struct {
	name string
	note string // what the user should know, or empty
	rows int
	embd int               // width of a row
	hash [sha256.Size]byte // of what it was decoded from, so that prompts of equal ids and other media are told apart

	encode func(dst []float32) ([]float32, error) // on the owner's goroutine; nil once encoded
	values []float32                              // [n_embd] for each row, once encoded
}

// vectors encodes the medium at the first call, into dst if that has room, and lets go
// of what it was decoded to.
func (m *medium) vectors(dst []float32) ([]float32, error) {
	if m.values == nil {
		v, err := m.encode(dst)
		if err == nil && len(v) != m.rows*m.embd {
			err = fmt.Errorf("the projector gave %d values, want %d rows of %d", len(v), m.rows, m.embd)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		m.values, m.encode = v, nil
	}
	return m.values, nil
}

// Load fetches the bytes of a medium from its source, a path, URL or data URL
// as the conversation gives it; name is for messages.
type Load func(ctx context.Context, source string) (name string, data []byte, err error)

// Local says which path of the file system a source names, for clips, which are
// read in place: a video file, a folder of numbered pictures, or a pattern like
// frame%03d.png. It reports false for sources that are no path, and for those
// that must not be read.
type Local func(source string) (path string, ok bool)

// MediaLimits bound what a request may make the program decode.
type MediaLimits struct {
	Image media.Limits // of pictures, and of each frame of a clip
	Audio media.AudioLimits
}

// gathering collects the media of a conversation.
type gathering struct {
	e     *Engine
	r     *Request
	clips int // in the whole conversation
	all   []*medium
	rows  int // of them all
}

// gather loads and decodes the media of a conversation. It returns a copy in
// which the source of each medium is the index in the returned list, or of its
// first block, which the others follow: that is how the renderer's media segments
// are bound to them. Clips become what the model takes in their place.
func (e *Engine) gather(ctx context.Context, r *Request) (chat.Conversation, []*medium, error) {
	c := r.Conversation
	g := gathering{e: e, r: r}
	for _, msg := range c.Messages {
		for _, p := range msg.Content {
			if p.Kind == chat.Video {
				g.clips++
			}
		}
	}
	out := c
	out.Messages = nil
	for i, msg := range c.Messages {
		var parts []chat.Part
		for _, p := range msg.Content {
			ps, err := g.part(ctx, p)
			if err != nil {
				if p.Field != "" {
					return c, nil, &MediumError{p.Field, err}
				}
				return c, nil, fmt.Errorf("message %d: %w", i, err)
			}
			parts = append(parts, ps...)
			if err := g.checkRows(); err != nil {
				return c, nil, err
			}
		}
		msg.Content = parts
		out.Messages = append(out.Messages, msg)
	}
	return out, g.all, nil
}

// checkRows is an error once the media alone are far more than the context holds:
// what they were decoded to is kept until the prompt is computed, so that a request
// of many small files would take memory without a bound.
func (g *gathering) checkRows() error {
	if context := g.e.opt.Context; g.rows >= maxMediaContexts*context {
		return fmt.Errorf("the first %d media have %d tokens, the context %d: %w: give fewer or smaller ones, or a larger --ctx-size (the model allows %d)",
			len(g.all), g.rows, context, ErrContextFull, g.e.model.Config().Context)
	}
	return nil
}

// maxMediaContexts is how many times the context media may have before no more of
// them are decoded. Some more than fit are, so that their tokens can be counted.
const maxMediaContexts = 4

// part returns what stands in the prompt for a part of a message.
func (g *gathering) part(ctx context.Context, p chat.Part) ([]chat.Part, error) {
	if p.Kind == chat.Text {
		return []chat.Part{p}, nil
	}
	if err := g.e.takes(p.Kind); err != nil {
		return nil, err
	}
	if g.r.Load == nil {
		return nil, errors.New("media are not allowed here")
	}
	if p.Source == "" {
		return nil, fmt.Errorf("%s without a source", p.Kind)
	}
	if p.Kind == chat.Video {
		return g.clip(ctx, p)
	}
	name, data, err := g.r.Load(ctx, p.Source)
	if err != nil {
		return nil, err
	}
	var m *medium
	if p.Kind == chat.Audio {
		m, err = g.e.sound(ctx, name, data, g.r.Limits.Audio)
	} else {
		m, err = g.e.picture(ctx, name, data, g.r.Limits.Image)
	}
	if err != nil {
		return nil, err
	}
	m.hash = sha256.Sum256(data)
	return []chat.Part{g.bind(p.Kind, m)}, nil
}

// bind adds a medium to the list and returns the part that stands for it.
func (g *gathering) bind(kind chat.Kind, m *medium) chat.Part {
	m.embd = g.e.proj.Embd()
	g.all, g.rows = append(g.all, m), g.rows+m.rows
	return chat.Part{Kind: kind, Source: strconv.Itoa(len(g.all) - 1)}
}

// takes returns an error unless the model has a tower for media of the kind.
func (e *Engine) takes(kind chat.Kind) error {
	if e.proj == nil {
		return fmt.Errorf("%s: %w", kind, ErrNoProjector)
	}
	var has bool
	switch kind {
	case chat.Image:
		has = e.HasImage()
	case chat.Audio:
		has = e.HasAudio()
	case chat.Video:
		has = e.HasVideo()
	}
	if !has {
		return fmt.Errorf("%s has no tower for %s", e.mmproj.Path(), kind)
	}
	return nil
}

// HasImage reports whether pictures can be given.
func (e *Engine) HasImage() bool { return e.proj != nil && e.proj.HasImage() }

// HasAudio reports whether sound can be given.
func (e *Engine) HasAudio() bool {
	_, ok := e.proj.(models.AudioProjector)
	return ok && e.proj.HasAudio()
}

// HasVideo reports whether clips can be given.
func (e *Engine) HasVideo() bool {
	switch e.proj.(type) {
	case models.PairProjector, models.ClipProjector:
		return e.proj.HasImage()
	}
	return false
}

// picture decodes a picture and finds out how many rows it becomes.
func (e *Engine) picture(ctx context.Context, name string, data []byte, lim media.Limits) (*medium, error) {
	im, err := media.DecodeImage(name, data, lim)
	if err != nil {
		return nil, err
	}
	m := &medium{
		name: name, rows: e.proj.ImageRows(im.W, im.H),
		encode: func(dst []float32) ([]float32, error) { return e.proj.EncodeImage(dst, im) },
	}
	if m.rows > 0 {
		return m, nil
	}
	// The projector refuses the picture; why, it says when asked to encode it.
	if err := e.do(ctx, func() error { _, err := m.encode(nil); return err }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return nil, fmt.Errorf("%s: the model takes no picture of %d x %d pixels", name, im.W, im.H)
}

// sound decodes a sound, resamples it and finds out how many rows it becomes.
func (e *Engine) sound(ctx context.Context, name string, data []byte, lim media.AudioLimits) (*medium, error) {
	a, err := media.DecodeAudio(ctx, name, data, lim)
	if err != nil {
		return nil, err
	}
	samples, err := media.Resample(a.Samples, a.Rate, media.SampleRate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tower := e.proj.(models.AudioProjector) // as takes has seen
	return &medium{
		name: name, rows: tower.AudioRows(len(samples)),
		encode: func(dst []float32) ([]float32, error) { return tower.EncodeAudio(dst, samples) },
	}, nil
}
