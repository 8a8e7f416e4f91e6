package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// kimiParser follows Kimi's protocol.
//
//	thinking  text, until the thinking ends or a section of calls begins
//	talking   text, until a section of calls begins
//	calls     calls, until the section ends: an id, arguments
//
// It works on ids: a marker that the model spells as text, to speak about it, is text. Its output does not depend on how text is cut
// into tokens.
type kimiParser struct {
	parsed

	v *token.Vocab
	p *kimi

	state   kimiState
	between []byte // text between calls
	id      []byte // of the call in work
	args    []byte // of the call in work
}

type kimiState int

const (
	kimiTalking kimiState = iota
	kimiThinking
	kimiBetweenCalls // in a section, outside of calls
	kimiCallID
	kimiCallArguments
	kimiEnded
)

// newKimiParser returns the parser of what follows a prompt: of thinking if the prompt's last turn leaves that open.
func newKimiParser(v *token.Vocab, p *kimi, prompt []int32) *kimiParser {
	s := &kimiParser{v: v, p: p}
	s.kind = ContentDelta
	for i := len(prompt) - 1; i >= 0 && prompt[i] != p.end && prompt[i] != p.thinkEnd; i-- {
		if prompt[i] == p.think && p.thinks() {
			s.state = kimiThinking
			break
		}
	}
	return s
}

// Push follows one id.
func (s *kimiParser) Push(id int32) []Delta {
	s.out = nil
	if s.state == kimiEnded || id < 0 {
		return nil
	}
	switch id {
	case s.p.end, s.p.eos, s.p.user, s.p.assistant, s.p.system: // the model must not speak for others
		s.close()
		s.state, s.endedBy, s.stopped = kimiEnded, id, true
	case s.p.think:
		if s.state == kimiTalking {
			s.state = kimiThinking
		}
	case s.p.thinkEnd:
		if s.state == kimiThinking {
			s.flush()
			s.state = kimiTalking
		}
	case s.p.sectionBegin:
		s.close()
		s.state = kimiBetweenCalls
	case s.p.sectionEnd:
		s.close()
		s.state = kimiTalking
	case s.p.callBegin:
		s.close()
		s.state = kimiCallID
	case s.p.callArguments:
		if s.state == kimiCallID {
			s.state = kimiCallArguments
		}
	case s.p.callEnd:
		if s.inCall() {
			s.close()
			s.state = kimiBetweenCalls
		}
	default:
		// Other control tokens have no meaning here, and no text.
		s.plain(s.v.Piece(id))
	}
	return s.out
}

// Finish closes an unfinished turn. A character of which bytes are missing is dropped.
func (s *kimiParser) Finish() []Delta {
	s.out = nil
	switch {
	case s.inCall():
		call, err := newKimiCall(string(validUTF8(s.id)), validUTF8(s.args))
		if err != nil || s.state == kimiCallID {
			s.warned = append(s.warned, cutCall)
		} else {
			s.out = append(s.out, Delta{Kind: ToolCallDelta, Call: call})
		}
	case s.state == kimiBetweenCalls && len(bytes.TrimSpace(s.between)) > 0:
		s.emit(ContentDelta, s.between)
	}
	s.state = kimiEnded
	return s.out
}

func (s *kimiParser) inCall() bool { return s.state == kimiCallID || s.state == kimiCallArguments }

// plain takes text bytes.
func (s *kimiParser) plain(piece []byte) {
	switch s.state {
	case kimiCallID:
		s.id = append(s.id, piece...)
	case kimiCallArguments:
		s.args = append(s.args, piece...)
	case kimiThinking:
		s.emit(ReasoningDelta, piece)
	case kimiBetweenCalls:
		s.between = append(s.between, piece...)
	default:
		s.emit(ContentDelta, piece)
	}
}

// close ends the current text or call.
func (s *kimiParser) close() {
	if len(bytes.TrimSpace(s.between)) > 0 { // white space between calls says nothing
		s.emit(ContentDelta, s.between)
	}
	s.between = nil
	s.flush()
	if !s.inCall() {
		return
	}
	id, args := validUTF8(s.id), validUTF8(s.args)
	s.id, s.args = nil, nil
	call, err := newKimiCall(string(id), args)
	if err != nil {
		s.warned = append(s.warned, fmt.Sprintf("tool call returned as text: %v", err))
		s.emit(ContentDelta, append(id, args...))
		s.flush()
		return
	}
	s.out = append(s.out, Delta{Kind: ToolCallDelta, Call: call})
}

// newKimiCall makes a call of its id, which holds the name, and its arguments, which are kept as the model wrote them.
func newKimiCall(id string, args []byte) (*ToolCall, error) {
	id = strings.TrimSpace(id)
	name := id
	if rest, ok := strings.CutPrefix(id, "functions."); ok {
		name = rest
		if colon := strings.LastIndexByte(rest, ':'); colon >= 0 {
			name = rest[:colon]
		}
	}
	if name = strings.TrimSpace(name); name == "" {
		return nil, errors.New("the call has no name")
	}
	if args = bytes.TrimSpace(args); len(args) == 0 {
		args = []byte("{}")
	}
	if _, err := decodeJSON(args); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", name, err)
	}
	return &ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}, nil
}
