package chat

import (
	"slices"

	"github.com/inkling-go/inkling/internal/token"
)

// DeltaKind is the kind of a Delta.
type DeltaKind int

// Kinds of deltas.
const (
	ReasoningDelta DeltaKind = iota // Text of the model's thinking
	ContentDelta                    // Text of the answer
	ToolCallDelta                   // a whole Call
)

// Delta is a piece of what the model says.
type Delta struct {
	Kind DeltaKind
	Text string    // whole characters, never empty for reasoning and content
	Call *ToolCall // of a ToolCallDelta
}

// Parser follows the ids that a model generates in one turn.
type Parser interface {
	// Push takes the next id and returns what it completes. Ids after the end of the turn are ignored.
	Push(id int32) []Delta
	// Finish ends the turn if the model has not, and returns what was held back and is whole: no piece of a call or a character.
	Finish() []Delta
	// Stop returns the id that ended the turn; ok is false while it goes on or if Finish ended it.
	Stop() (id int32, ok bool)
	// Warnings says what the model got wrong, such as a tool call that is not JSON.
	Warnings() []string
	// Phase says which part of the answer the next text belongs to.
	Phase() Phase
	// Moves says which control tokens the answer may go on with.
	Moves() Moves
}

// NewParser is [NewParserAfter] of a prompt that leaves nothing open.
func NewParser(v *token.Vocab) Parser { return NewParserAfter(v, nil) }

// NewParserAfter returns the parser for the model's vocabulary: of Inkling's or Kimi's protocol if it has its tokens, else one that
// takes all text for content. The ids of the prompt say where the model goes on: Kimi's may end within its thinking, and one that is
// written out by hand anywhere, also in plain text.
func NewParserAfter(v *token.Vocab, prompt []int32) Parser {
	if p, ok := newProtocol(v); ok {
		return newInklingParser(v, p, prompt)
	}
	if p, ok := newKimi(v); ok {
		return newKimiParser(v, p, prompt)
	}
	stop, err := StopIDs(v)
	if err != nil {
		stop = nil // only a length limit ends such a model
	}
	return &plainParser{v: v, stop: stop}
}

// cutCall is the warning about an answer that a limit has cut within a call. A piece of a call is no content.
const cutCall = "the answer ends within a tool call, which is left out"

// plainParser takes all text for content.
type plainParser struct {
	v       *token.Vocab
	stop    []int32
	text    token.Detokenizer
	ended   bool
	endedBy *int32
}

func (p *plainParser) Push(id int32) []Delta {
	if p.ended {
		return nil
	}
	if slices.Contains(p.stop, id) {
		p.ended, p.endedBy = true, &id
		return textDelta(ContentDelta, p.text.Flush())
	}
	return textDelta(ContentDelta, p.text.Push(p.v.Piece(id)))
}

func (p *plainParser) Finish() []Delta {
	p.ended = true
	return nil
}

func (p *plainParser) Stop() (int32, bool) {
	if p.endedBy == nil {
		return 0, false
	}
	return *p.endedBy, true
}

func (p *plainParser) Warnings() []string { return nil }

func textDelta(kind DeltaKind, text string) []Delta {
	if text == "" {
		return nil
	}
	return []Delta{{Kind: kind, Text: text}}
}
