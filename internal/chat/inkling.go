package chat

import (
	"encoding/json"
	"fmt"

	"github.com/inkling-go/inkling/internal/token"
)

// inklingRenderer writes Inkling's message protocol. A prompt is a row of blocks: role token, author or nothing, content type
// token, body, end of message. Blocks touch; there is no beginning-of-sequence token.
type inklingRenderer struct {
	p    *protocol
	zero string // how an effort of zero is written
}

// Render writes, in this order: the tools; the leading system messages; the effort; the other messages; the start of the
// model's turn.
func (r *inklingRenderer) Render(c Conversation, o Options) ([]token.Segment, []Part, error) {
	effort, err := ParseEffort(o.Effort)
	if err != nil {
		return nil, nil, err
	}
	tools := c.Tools
	if o.Tools != nil {
		tools = o.Tools
	}
	b := blocks{p: r.p}
	if err := b.tools(tools); err != nil {
		return nil, nil, err
	}
	told := false
	tellEffort := func() {
		if !told {
			b.block(r.p.system, "", r.p.text, effortLine+formatEffort(effort, r.zero))
			told = true
		}
	}
	keepFrom := 0 // the first message whose reasoning is kept
	if o.PreserveThinking != nil && !*o.PreserveThinking {
		keepFrom = lastUser(c.Messages) + 1
	}
	for i, m := range c.Messages {
		if m.Role != System && m.Role != Developer {
			tellEffort()
		}
		if err := b.message(c.Messages, i, i >= keepFrom); err != nil {
			return nil, nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	tellEffort()
	if o.AddGenerationPrompt {
		b.control(r.p.model)
	}
	return b.segs, b.media, nil
}

// lastUser returns the index of the last user message. Without one all messages count as before it.
func lastUser(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == User {
			return i
		}
	}
	return len(messages) - 1
}

// blocks collects the segments of a prompt.
type blocks struct {
	p     *protocol
	segs  []token.Segment
	media []Part
}

func (b *blocks) control(id int32) {
	b.segs = append(b.segs, token.Segment{Kind: token.ControlSegment, ID: id})
}

func (b *blocks) text(s string) {
	if s != "" {
		b.segs = append(b.segs, token.Segment{Kind: token.TextSegment, Text: s})
	}
}

// block writes a whole block with a text body.
func (b *blocks) block(role int32, author string, contentType int32, body string) {
	b.control(role)
	b.text(author)
	b.control(contentType)
	b.text(body)
	b.control(b.p.endMessage)
}

// tools declares the tools in one block.
func (b *blocks) tools(tools []Tool) error {
	if len(tools) == 0 {
		return nil
	}
	if b.p.xml == absent {
		return fmt.Errorf("tools given, but the vocabulary has no %s", tokXML)
	}
	body := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = appendTool(body, t); err != nil {
			return fmt.Errorf("tool %d: %w", i, err)
		}
	}
	b.block(b.p.system, "tool_declare", b.p.xml, string(append(body, ']')))
	return nil
}

// appendTool writes the four members that the model knows in their fixed order, which is also the sorted one.
func appendTool(b []byte, t Tool) ([]byte, error) {
	v, err := decodeJSON(t)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("is %s, want an object", jsonType(v))
	}
	f, ok := o.get("function").(*object)
	if !ok {
		f = o
	}
	if name, err := stringField(f, "name"); err != nil {
		return nil, err
	} else if name == "" {
		return nil, fmt.Errorf("has no name")
	}
	for _, m := range []struct {
		key   string
		value any
		def   any
	}{
		{"description", f.get("description"), ""},
		{"name", f.get("name"), nil},
		{"parameters", f.get("parameters"), &object{}},
		{"type", o.get("type"), "function"},
	} {
		if m.value == nil {
			m.value = m.def
		}
		sep := byte(',')
		if m.key == "description" {
			sep = '{'
		}
		b = append(appendString(append(b, sep), m.key), ':')
		if b, err = appendCanonical(b, m.value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// message writes the blocks of message i.
func (b *blocks) message(messages []Message, i int, keepReasoning bool) error {
	m := messages[i]
	var role int32
	switch m.Role {
	case User:
		role = b.p.user
	case System, Developer:
		role = b.p.system
	case ToolRole:
		return b.toolResult(messages[:i], m)
	case Assistant:
		role = b.p.model
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	before := len(b.segs)
	if m.Role == Assistant && m.Reasoning != "" && keepReasoning {
		b.block(role, "", b.p.thinking, m.Reasoning)
	}
	for j, p := range m.Content {
		if err := b.part(role, p); err != nil {
			return fmt.Errorf("part %d: %w", j, err)
		}
	}
	if m.Role != Assistant {
		return nil
	}
	for j, call := range m.ToolCalls {
		if err := b.toolCall(call); err != nil {
			return fmt.Errorf("tool call %d: %w", j, err)
		}
	}
	if len(b.segs) > before {
		b.control(b.p.endSampling)
	}
	return nil
}

// part writes one part as a block of its own.
func (b *blocks) part(role int32, p Part) error {
	switch {
	case p.Kind == Text:
		b.block(role, "", b.p.text, p.Text)
		return nil
	case p.Kind == Image && b.p.image != absent && b.p.imageSlot != absent:
		b.control(role)
		b.control(b.p.image)
		b.medium(p)
	case p.Kind == Audio && b.p.audio != absent && b.p.audioSlot != absent && b.p.audioEnd != absent:
		b.control(role)
		b.control(b.p.audio)
		b.medium(p)
		b.control(b.p.audioEnd)
	case p.Kind == Video:
		return fmt.Errorf("video must be taken apart into images before rendering")
	default:
		return fmt.Errorf("the vocabulary has no tokens for %s", p.Kind)
	}
	b.control(b.p.endMessage)
	return nil
}

func (b *blocks) medium(p Part) {
	b.segs = append(b.segs, token.Segment{Kind: token.MediaSegment, Media: len(b.media)})
	b.media = append(b.media, p)
}

// toolCall writes an earlier call the way the model wrote it: name before args.
func (b *blocks) toolCall(c ToolCall) error {
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	body := append(appendString([]byte(`{"name":`), c.Name), `,"args":`...)
	v, err := decodeJSON(args)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	if body, err = appendCanonical(body, v); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	b.block(b.p.model, c.Name, b.p.toolJSON, string(append(body, '}')))
	return nil
}

// toolResult writes what a tool returned, with the tool as author: by its name, or by the name in the call it answers.
func (b *blocks) toolResult(earlier []Message, m Message) error {
	author := m.Name
	if author == "" && m.ToolCallID != "" {
		for _, e := range earlier {
			for _, c := range e.ToolCalls {
				if c.ID == m.ToolCallID {
					author = c.Name
				}
			}
		}
	}
	var body string
	for _, p := range m.Content {
		if p.Kind != Text {
			return fmt.Errorf("a tool result cannot hold %s", p.Kind)
		}
		body += p.Text
	}
	if m.Result != nil {
		s, err := canonical(m.Result)
		if err != nil {
			return fmt.Errorf("content: %w", err)
		}
		body = s
	}
	b.block(b.p.tool, author, b.p.text, body)
	return nil
}
