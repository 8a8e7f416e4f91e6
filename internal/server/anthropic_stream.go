package server

import (
	"encoding/json"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// anthropicSignature stands where Anthropic signs the thinking of its models, since
// some clients drop blocks without. Nobody checks it.
const anthropicSignature = "unsigned"

// anthropicWriter makes a message of what happens to an answer, and writes the
// events of a stream on the way.
type anthropicWriter struct {
	stream  *stream // nil: only the message is wanted
	message *anthropicResponse
	open    bool   // the last block of the message is not at its end
	said    []byte // text, thinking or arguments of that block until now
}

func newAnthropicWriter(model string) *anthropicWriter {
	return &anthropicWriter{message: &anthropicResponse{
		ID: anthropicID(), Type: "message", Role: chat.Assistant, Model: model, Content: []anthropicPiece{},
	}}
}

// send writes an event, whose data have its name too.
func (a *anthropicWriter) send(name string, members map[string]any) error {
	if a.stream == nil {
		return nil
	}
	if members == nil {
		members = map[string]any{}
	}
	members["type"] = name
	return a.stream.event(name, members)
}

func (a *anthropicWriter) event(e event) error {
	switch e.Kind {
	case started:
		a.message.Usage.InputTokens = e.PromptTokens
		if err := a.send("message_start", map[string]any{"message": a.message}); err != nil {
			return err
		}
		return a.send("ping", nil)
	case reasoningDelta:
		return a.text("thinking", e.Text)
	case contentDelta:
		return a.text("text", e.Text)
	case toolCallStart:
		return a.begin(anthropicPiece{Type: "tool_use", ID: e.ID, Name: e.Name, Input: json.RawMessage("{}")})
	case toolCallArgs:
		args := objectOf(json.RawMessage(e.Text)) // which come whole
		a.said = append(a.said, args...)
		return a.delta(map[string]any{"type": "input_json_delta", "partial_json": string(args)})
	case toolCallEnd:
		return a.end()
	}
	return a.finish(e.Answer)
}

// last is the block that is being written.
func (a *anthropicWriter) last() *anthropicPiece { return &a.message.Content[len(a.message.Content)-1] }

// text adds to a block of thinking or text, and begins it if it is not there.
func (a *anthropicWriter) text(typ, s string) error {
	if !a.open || a.last().Type != typ {
		empty := ""
		p := anthropicPiece{Type: typ}
		if typ == "thinking" {
			p.Thinking, p.Signature = &empty, &empty
		} else {
			p.Text = &empty
		}
		if err := a.begin(p); err != nil {
			return err
		}
	}
	a.said = append(a.said, s...)
	return a.delta(map[string]any{"type": typ + "_delta", typ: s})
}

// begin starts a block after it has ended the one before.
func (a *anthropicWriter) begin(p anthropicPiece) error {
	if err := a.end(); err != nil {
		return err
	}
	a.open, a.said = true, nil
	a.message.Content = append(a.message.Content, p)
	return a.send("content_block_start", map[string]any{"index": len(a.message.Content) - 1, "content_block": p})
}

func (a *anthropicWriter) delta(d map[string]any) error {
	return a.send("content_block_delta", map[string]any{"index": len(a.message.Content) - 1, "delta": d})
}

// end ends the block that is open, if one is.
func (a *anthropicWriter) end() error {
	if !a.open {
		return nil
	}
	a.open = false
	said := string(a.said)
	switch p := a.last(); p.Type {
	case "text":
		p.Text = &said
	case "thinking":
		signature := anthropicSignature
		p.Thinking, p.Signature = &said, &signature
		if err := a.delta(map[string]any{"type": "signature_delta", "signature": signature}); err != nil {
			return err
		}
	case "tool_use":
		p.Input = json.RawMessage(said)
	}
	return a.send("content_block_stop", map[string]any{"index": len(a.message.Content) - 1})
}

// finish says why the message ends, and what it took.
func (a *anthropicWriter) finish(ans *answer) error {
	if err := a.end(); err != nil {
		return err
	}
	m := a.message
	reason := "end_turn"
	switch {
	case ans.FinishReason == engine.FinishLength:
		reason = "max_tokens"
	case ans.FinishReason == engine.FinishToolCalls:
		reason = "tool_use"
	case ans.StopSequence != "":
		reason, m.StopSequence = "stop_sequence", &ans.StopSequence
	}
	m.StopReason, m.Usage = &reason, usageOf([]*answer{ans}).anthropic()
	err := a.send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": m.StopSequence}, "usage": m.Usage,
	})
	if err != nil {
		return err
	}
	return a.send("message_stop", nil)
}
