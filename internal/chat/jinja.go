package chat

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/jinja"
	"github.com/inkling-go/inkling/internal/token"
)

// stepsPerByte and bytesPerByte let a template do more for longer conversations: what one may do for each byte of the request, on top
// of the defaults. Templates that read texts letter by letter take some 50 steps for each.
const (
	stepsPerByte = 64
	bytesPerByte = 32
)

// jinjaRenderer runs a model's chat template.
type jinjaRenderer struct {
	v        *token.Vocab
	template string
	compiled *jinja.Template
	guard    *guard
	kimi     *kimi // nil for other vocabularies
	lists    bool  // the template can take content as a list of parts
}

func newJinja(v *token.Vocab, template string) (*jinjaRenderer, error) {
	t, err := jinja.Compile(template)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	// Templates that look at the type of anything look at the type of parts; older ones only know strings.
	lists := strings.Contains(template, ".type") || strings.Contains(template, "['type']") || strings.Contains(template, `["type"]`)
	k, _ := newKimi(v)
	return &jinjaRenderer{v: v, template: template, compiled: t, guard: newGuard(v), kimi: k, lists: lists}, nil
}

// Render runs the template and cuts its output at the special tokens that the template wrote. Placeholders of media must be as many
// as the conversation's media and of their kinds, in order.
func (r *jinjaRenderer) Render(c Conversation, o Options) ([]token.Segment, []Part, error) {
	m := r.guard.newMask(r.template)
	// The first pass sees all texts, the second masks them.
	size := 0
	see := valueBuilder{text: func(s string, _ bool) (string, error) { m.see(s); size += len(s); return s, nil }, lists: r.lists, kimi: r.kimi != nil}
	if _, err := see.data(r.v, c, o); err != nil {
		return nil, nil, err
	}
	hide := valueBuilder{text: m.hide, lists: r.lists, kimi: r.kimi != nil}
	data, err := hide.data(r.v, c, o)
	if err != nil {
		return nil, nil, err
	}
	text, err := r.compiled.Render(data, limits(size))
	if err != nil {
		return nil, nil, fmt.Errorf("chat template: %w", err)
	}
	var media []Part
	for _, p := range c.Media() {
		media = append(media, *p)
	}
	w := mediaWriter{p: r.kimi}
	if err := w.place(r.v, r.v.SplitSpecial(text), media); err != nil {
		return nil, nil, fmt.Errorf("chat template: %w", err)
	}
	for i := range w.segs {
		w.segs[i].Text = m.show(w.segs[i].Text)
	}
	return w.segs, w.media, nil
}

// limits returns what a template may take for a conversation with size bytes of texts.
func limits(size int) jinja.Limits {
	return jinja.Limits{Steps: jinja.DefaultSteps + stepsPerByte*size, Bytes: jinja.DefaultBytes + bytesPerByte*size}
}
