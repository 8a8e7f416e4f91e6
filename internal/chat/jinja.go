package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ardanlabs/jinja"

	"github.com/inkling-go/inkling/internal/token"
)

// maxTemplateBytes bounds a chat template, and with it the nesting that the engine's parser recurses into. The longest in use have
// some 30 kB.
const maxTemplateBytes = 1 << 17

// jinjaRenderer runs a model's chat template.
type jinjaRenderer struct {
	v        *token.Vocab
	template string
	compiled *jinja.Template
	guard    *guard
	lists    bool // the template can take content as a list of parts
}

func newJinja(v *token.Vocab, template string) (*jinjaRenderer, error) {
	if len(template) > maxTemplateBytes {
		return nil, fmt.Errorf("chat template of %d bytes, limit %d", len(template), maxTemplateBytes)
	}
	t, err := jinja.Compile(template)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	// Templates that look at the type of anything look at the type of parts; older ones only know strings.
	lists := strings.Contains(template, ".type") || strings.Contains(template, "['type']") || strings.Contains(template, `["type"]`)
	return &jinjaRenderer{v: v, template: template, compiled: t, guard: newGuard(v), lists: lists}, nil
}

// Render runs the template and cuts its output at the special tokens that the template wrote. Placeholders of media must be as many
// as the conversation's media and of their kinds, in order.
func (r *jinjaRenderer) Render(c Conversation, o Options) ([]token.Segment, []Part, error) {
	m := r.guard.newMask(r.template)
	// The first pass sees all texts, the second masks them.
	see := valueBuilder{text: func(s string, _ bool) (string, error) { m.see(s); return s, nil }, lists: r.lists}
	if _, err := see.data(r.v, c, o); err != nil {
		return nil, nil, err
	}
	hide := valueBuilder{text: m.hide, lists: r.lists}
	data, err := hide.data(r.v, c, o)
	if err != nil {
		return nil, nil, err
	}
	text, err := r.run(data)
	if err != nil {
		return nil, nil, fmt.Errorf("chat template: %w", err)
	}
	media := mediaParts(c)
	segs, err := placeMedia(r.v, r.v.SplitSpecial(text), media)
	if err != nil {
		return nil, nil, err
	}
	for i := range segs {
		segs[i].Text = m.show(segs[i].Text)
	}
	return segs, media, nil
}

// run executes the template. The engine panics on some misuse of values; the template came with a model file, so that is its error.
func (r *jinjaRenderer) run(data map[string]jinja.Value) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("%v", p)
		}
	}()
	return r.compiled.RenderValues(data)
}

// mediaParts lists the media of a conversation in order.
func mediaParts(c Conversation) []Part {
	var media []Part
	for _, m := range c.Messages {
		for _, p := range m.Content {
			if p.Kind != Text {
				media = append(media, p)
			}
		}
	}
	return media
}

// placeMedia turns the placeholder tokens of segs into media segments, the first for the first medium and so on.
func placeMedia(v *token.Vocab, segs []token.Segment, media []Part) ([]token.Segment, error) {
	n := 0
	for i, s := range segs {
		if s.Kind != token.ControlSegment {
			continue
		}
		kinds := slotKinds(v, s.ID)
		if kinds == nil {
			continue
		}
		if n < len(media) && !slices.Contains(kinds, media[n].Kind) {
			piece, _ := v.Token(s.ID)
			return nil, fmt.Errorf("chat template: placeholder %s where the conversation has %s %d", piece, media[n].Kind, n)
		}
		segs[i] = token.Segment{Kind: token.MediaSegment, Media: n}
		n++
	}
	if n != len(media) {
		return nil, fmt.Errorf("chat template: %d media placeholders for the %d media of the conversation", n, len(media))
	}
	return segs, nil
}
