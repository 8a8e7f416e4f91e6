package chat

import (
	"errors"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// Options say how to render a conversation.
type Options struct {
	Effort              string // see ParseEffort; empty for the model's default
	PreserveThinking    *bool  // keep the reasoning of all earlier turns; nil for the default, which is to keep it
	Tools               []Tool // replace the conversation's tools unless nil
	AddGenerationPrompt bool   // end with the start of the assistant's turn
}

// Renderer makes prompts of one model.
type Renderer interface {
	// Render returns the prompt's segments and the media of the conversation in the order of the MediaSegments, whose Media
	// are indices into that list. Errors are about the conversation and the options, not about the program.
	Render(c Conversation, o Options) ([]token.Segment, []Part, error)
}

// Kinds of renderers.
const (
	KindInkling = "inkling" // the native protocol
	KindKimi    = "kimi"    // the native protocol
	KindJinja   = "jinja"   // the model's chat template
)

// NewRenderer returns the renderer for a vocabulary and the chat template that came with it, which may be empty. A template that
// writes Inkling's or Kimi's protocol is replaced by the native renderer; any other one is run.
func NewRenderer(v *token.Vocab, template string) (r Renderer, kind string, err error) {
	p, inkling := newProtocol(v)
	k, kimi := newKimi(v)
	if template == "" {
		switch {
		case inkling:
			return &inklingRenderer{p: p, zero: "0.0"}, KindInkling, nil
		case kimi:
			return &kimiRenderer{p: k, style: defaultStyle}, KindKimi, nil
		}
		return nil, "", errors.New("no chat template, and the vocabulary has neither Inkling's nor Kimi's tokens")
	}
	j, err := newJinja(v, template)
	if inkling {
		if zero, native := recognise(v, p, template, j); native {
			return &inklingRenderer{p: p, zero: zero}, KindInkling, nil
		}
	}
	if kimi {
		if style, native := recogniseKimi(v, k, template, j); native {
			return &kimiRenderer{p: k, style: style}, KindKimi, nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	return j, KindJinja, nil
}

// effortLine starts the body of the block that tells the model how long to think.
const effortLine = "Thinking effort level: "

// recognise reports whether a template writes Inkling's protocol, and how it spells an effort of zero.
//
// The protocol's tokens in the text are not enough: other templates over the same vocabulary have them too. The template must also
// write the effort line, and must render a short conversation to exactly what the native renderer makes of it. A template that our
// Jinja engine cannot run (j is nil, or rendering fails) is taken by its text alone.
//
// Zero is "0.0" in the vendor's renderers and "0" in the template of the llama.cpp family. The engine prints the float 0.0 as "0"
// where Python prints "0.0", so a "0" only counts if the template formats numbers itself, which shows in 0.333 becoming "0.33".
func recognise(v *token.Vocab, p *protocol, template string, j *jinjaRenderer) (zero string, native bool) {
	for _, s := range []string{tokThinking, tokText, tokMessageModel, effortLine} {
		if !strings.Contains(template, s) {
			return "", false
		}
	}
	if j == nil {
		return "0.0", true
	}
	probe := Conversation{Messages: []Message{
		{Role: System, Content: []Part{{Text: "S"}}},
		{Role: User, Content: []Part{{Text: "U"}}},
	}}
	o := Options{Effort: "none", AddGenerationPrompt: true}
	got, err := renderedText(v, j, probe, o)
	if err != nil {
		return "0.0", true
	}
	for _, zero := range []string{"0.0", "0"} {
		want, err := renderedText(v, &inklingRenderer{p: p, zero: zero}, probe, o)
		if err == nil && got == want {
			if zero == "0" && !formatsNumbers(v, j, probe) {
				zero = "0.0"
			}
			return zero, true
		}
	}
	return "", false
}

// formatsNumbers reports whether the template rounds efforts to two decimals.
func formatsNumbers(v *token.Vocab, j *jinjaRenderer, probe Conversation) bool {
	text, err := renderedText(v, j, probe, Options{Effort: "0.333"})
	return err == nil && strings.Contains(text, effortLine+"0.33"+tokEndMessage)
}

// renderedText renders and spells out a conversation.
func renderedText(v *token.Vocab, r Renderer, c Conversation, o Options) (string, error) {
	segs, media, err := r.Render(c, o)
	if err != nil {
		return "", err
	}
	return Spell(v, segs, media), nil
}

// Spell writes a prompt out as text, each medium as one placeholder token. Text that looks like a special token cannot be told
// from one in it: it is for people to read.
func Spell(v *token.Vocab, segs []token.Segment, media []Part) string {
	var b strings.Builder
	for _, s := range segs {
		switch s.Kind {
		case token.TextSegment:
			b.WriteString(s.Text)
		case token.ControlSegment:
			piece, _ := v.Token(s.ID)
			b.Write(piece)
		case token.MediaSegment:
			if id, ok := SlotID(v, media[s.Media].Kind); ok {
				piece, _ := v.Token(id)
				b.Write(piece)
			}
		}
	}
	return b.String()
}
