package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// Block is one media block of a clip in a prompt. Models that take a clip in chunks have a block for each, labelled with the time it
// begins at; others have one block without a label.
type Block struct {
	Label string // text right before the block, such as "00:00:02.000"
	Rows  int    // rows of the tower, and so placeholders
}

// Media returns the media of the conversation in order. Changing them changes the conversation: whoever loads a clip sets its Blocks.
func (c *Conversation) Media() []*Part {
	var media []*Part
	for i := range c.Messages {
		for j := range c.Messages[i].Content {
			if p := &c.Messages[i].Content[j]; p.Kind != Text {
				media = append(media, p)
			}
		}
	}
	return media
}

// blocks returns the blocks that a clip is laid out in; one without a label if nobody has said.
func (p Part) blocks() []Block {
	if len(p.Blocks) == 0 {
		return []Block{{}}
	}
	return p.Blocks
}

// videoPlaceholder stands for a clip in Kimi's templates. It is text in the published vocabulary and a token in others.
const videoPlaceholder = "<|kimi_k25_video_placeholder|>"

// mediaWriter puts media and what surrounds them into a prompt of Kimi's.
type mediaWriter struct {
	p     *kimi
	segs  []token.Segment
	media []Part // one for each media segment
}

func (w *mediaWriter) control(id int32) {
	w.segs = append(w.segs, token.Segment{Kind: token.ControlSegment, ID: id})
}

func (w *mediaWriter) text(s string) {
	if s != "" {
		w.segs = append(w.segs, token.Segment{Kind: token.TextSegment, Text: s})
	}
}

// slot writes the place of a medium, or of one block of a clip.
func (w *mediaWriter) slot(p Part) {
	w.segs = append(w.segs, token.Segment{Kind: token.MediaSegment, Media: len(w.media)})
	w.media = append(w.media, p)
}

// image writes the block of a picture.
func (w *mediaWriter) image(p Part) error {
	return w.block("image", p)
}

// video writes the blocks of a clip, one right after the other.
func (w *mediaWriter) video(p Part) error {
	for i, b := range p.blocks() {
		p.Block = i
		w.text(b.Label)
		if err := w.block("video", p); err != nil {
			return err
		}
	}
	return nil
}

// block writes one media block.
func (w *mediaWriter) block(word string, p Part) error {
	if !w.p.hasMedia() {
		return fmt.Errorf("the vocabulary has no tokens for %s", p.Kind)
	}
	w.control(w.p.mediaBegin)
	w.text(word)
	w.control(w.p.mediaContent)
	w.slot(p)
	w.control(w.p.mediaEnd)
	return nil
}

// errClipPlaced reports a template that has one place for a clip of several or labelled blocks.
var errClipPlaced = errors.New("it writes the block of a clip itself, so a clip must be one block without a label")

// place puts media into what a template wrote: for each placeholder token the medium whose turn it is, for each video placeholder the
// blocks of a clip. segs holds text whose special signs are still masked, so that a placeholder in it is the template's.
func (w *mediaWriter) place(v *token.Vocab, segs []token.Segment, media []Part) error {
	n := 0
	next := func(what string, kinds ...Kind) (Part, error) {
		n++
		if n > len(media) {
			return Part{}, nil // counted below
		}
		for _, k := range kinds {
			if media[n-1].Kind == k {
				return media[n-1], nil
			}
		}
		return Part{}, fmt.Errorf("placeholder %s where the conversation has %s %d", what, media[n-1].Kind, n-1)
	}
	clip := func() error {
		p, err := next(videoPlaceholder, Video)
		if err == nil && n <= len(media) {
			err = w.video(p)
		}
		return err
	}
	for _, s := range segs {
		var err error
		switch {
		case s.Kind == token.TextSegment:
			rest, found := s.Text, true
			for {
				var before string
				if before, rest, found = strings.Cut(rest, videoPlaceholder); w.p == nil {
					before, found = s.Text, false
				}
				w.text(before)
				if !found {
					break
				}
				if err = clip(); err != nil {
					return err
				}
			}
		case w.p != nil && s.ID == w.p.placeholder:
			err = clip()
		case slotKinds(v, s.ID) != nil:
			piece, _ := v.Token(s.ID)
			var p Part
			if p, err = next(string(piece), slotKinds(v, s.ID)...); err != nil {
				break
			}
			if b := p.blocks(); p.Kind == Video && (len(b) > 1 || b[0].Label != "") {
				return errClipPlaced
			}
			w.slot(p)
		default:
			w.control(s.ID)
		}
		if err != nil {
			return err
		}
	}
	if n != len(media) {
		return fmt.Errorf("%d media placeholders for the %d media of the conversation", n, len(media))
	}
	return nil
}
