package chat

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/inkling-go/inkling/internal/token"
)

// inklingParser follows the message protocol. The prompt ended with the model's role token, so a turn starts in a head.
//
//	head     author text, until a content type token opens the body
//	body     of reasoning, content or a tool call, until the message ends
//	between  messages, until a role token opens the next head
//
// It works on ids, so text that only looks like a token is text. Its output does not depend on how text is cut into tokens.
type inklingParser struct {
	parsed

	v *token.Vocab
	p *protocol

	state  parserState
	body   int32  // content type of the body
	author []byte // text of the head
	call   []byte // body of a tool call
}

type parserState int

const (
	inHead parserState = iota
	inBody
	between
	ended
)

// newInklingParser returns a parser that goes on where the prompt ends. Prompts of the renderer end with the start of a turn. In one
// that is written out by hand the last control token says what goes on; without any it is text, and so is the answer.
func newInklingParser(v *token.Vocab, p *protocol, prompt []int32) *inklingParser {
	s := &inklingParser{v: v, p: p}
	for i := len(prompt) - 1; i >= 0; i-- {
		switch id := prompt[i]; {
		case id == p.model:
			return s
		case id == p.endMessage || id == p.endSampling || id == p.endText:
			s.state = between
			return s
		case s.contentType(id):
			s.state, s.body = inBody, id
			return s
		}
	}
	if len(prompt) > 0 {
		s.state, s.body = inBody, p.text
	}
	return s
}

// Push follows one id.
func (s *inklingParser) Push(id int32) []Delta {
	s.out = nil
	if s.state == ended || id < 0 {
		return nil
	}
	switch {
	case id == s.p.endSampling || id == s.p.endText:
		s.close()
		s.end(id)
	case id == s.p.endMessage:
		s.close()
		s.state = between
	case id == s.p.model:
		s.close()
		s.state = inHead
	case id == s.p.user || id == s.p.system || id == s.p.tool:
		// The model must not speak for others.
		s.close()
		s.end(id)
	case s.contentType(id):
		if s.state != inHead {
			s.close()
		}
		s.state, s.body = inBody, id
	default:
		// Other control tokens have no meaning here, and no text.
		s.plain(s.v.Piece(id))
	}
	return s.out
}

// Finish closes an unfinished turn. A head that may be the name of a tool, and a character of which bytes are missing, are dropped.
func (s *inklingParser) Finish() []Delta {
	s.out = nil
	switch {
	case s.state == inBody && s.body == s.p.toolJSON:
		if call, err := parseCall(validUTF8(s.call), string(validUTF8(s.author))); err != nil {
			s.warned = append(s.warned, cutCall)
		} else {
			s.out = append(s.out, Delta{Kind: ToolCallDelta, Call: call})
		}
	case s.state == inHead && !toolName.Match(s.author):
		s.emit(ContentDelta, s.author)
	}
	s.state = ended
	return s.out
}

// toolName matches what may be the beginning of a tool's name.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.:/-]{0,128}$`)

func (s *inklingParser) end(id int32) {
	s.state, s.endedBy, s.stopped = ended, id, true
}

func (s *inklingParser) contentType(id int32) bool {
	switch id {
	case s.p.text, s.p.thinking, s.p.toolJSON, s.p.toolText, s.p.toolError, s.p.xml, s.p.image, s.p.audio:
		return true
	}
	return id == s.p.xmlSecond
}

// plain takes text bytes.
func (s *inklingParser) plain(piece []byte) {
	switch {
	case s.state == inHead:
		s.author = append(s.author, piece...)
	case s.state == inBody && s.body == s.p.toolJSON:
		s.call = append(s.call, piece...)
	case s.state == inBody && s.body == s.p.thinking:
		s.emit(ReasoningDelta, piece)
	default:
		s.emit(ContentDelta, piece)
	}
}

// close ends the current head, body or text between messages. The text of a head without a body is content.
func (s *inklingParser) close() {
	switch {
	case s.state == inHead:
		s.emit(ContentDelta, s.author)
	case s.state == inBody && s.body == s.p.toolJSON:
		s.closeCall()
	}
	s.flush()
	s.author = nil
}

// closeCall ends the body of a tool call.
func (s *inklingParser) closeCall() {
	body := s.call
	s.call = nil
	// The call goes on as JSON, which is UTF-8.
	call, err := parseCall(validUTF8(body), string(validUTF8(s.author)))
	if err != nil {
		s.warned = append(s.warned, fmt.Sprintf("tool call returned as text: %v", err))
		s.emit(ContentDelta, body)
		return
	}
	s.out = append(s.out, Delta{Kind: ToolCallDelta, Call: call})
}

// parseCall reads {"name":…,"args":…}. The arguments are the model's own bytes; the author is the name if the JSON has none.
func parseCall(body []byte, author string) (*ToolCall, error) {
	v, err := decodeJSON(body)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("body is %s, want an object", jsonType(v))
	}
	name, err := stringField(o, "name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = author
	}
	if name == "" {
		return nil, errors.New("the call has no name")
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	args := bytes.TrimSpace(members["args"])
	if len(args) == 0 {
		args = []byte("{}")
	}
	return &ToolCall{ID: newCallID(), Name: name, Arguments: json.RawMessage(args)}, nil
}

func validUTF8(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\uFFFD")) }

// newCallID makes an id that no other call of a conversation has.
func newCallID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}
