package server

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// responsesWriter makes a response of what happens to an answer, and writes the
// events of a stream on the way.
type responsesWriter struct {
	stream   *stream // nil: only the response is wanted
	response *responseJSON
	logprobs bool
	sequence int // of the next event

	open *responseItem // the last item, until its end
	part responsePart  // its content, if it has some
	said []byte        // its text or arguments until now
}

// Status of a response, and of an item.
const (
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
)

// Types of items.
const (
	itemReasoning = "reasoning"
	itemMessage   = "message"
	itemCall      = "function_call"
)

func newResponsesWriter(id *identity, r *responsesRequest, logprobs bool) *responsesWriter {
	resp := &responseJSON{
		ID: id.id, Object: "response", CreatedAt: id.created, Status: inProgress, Model: id.model, Output: []*responseItem{},
		MaxOutputTokens: r.MaxOutputTokens, Metadata: r.Metadata, ParallelToolCalls: r.parallel(), Store: r.Store == nil || *r.Store,
		Temperature: r.Temperature, TopP: r.TopP, ToolChoice: r.ToolChoice.given, Tools: []json.RawMessage{},
		Truncation: cmp.Or(r.Truncation, "disabled"), Text: responseText{Format: responsesFormat{Type: "text"}},
	}
	if resp.Metadata == nil {
		resp.Metadata = map[string]string{}
	}
	if resp.ToolChoice == nil {
		resp.ToolChoice = json.RawMessage(`"auto"`)
	}
	for _, t := range r.Tools {
		resp.Tools = append(resp.Tools, t.given)
	}
	if r.Text.Format != nil {
		resp.Text.Format = *r.Text.Format
	}
	if r.TopLogprobs != nil {
		resp.TopLogprobs = *r.TopLogprobs
	}
	for _, f := range []struct {
		to   **string
		from string
	}{
		{&resp.Instructions, r.Instructions},
		{&resp.PreviousResponseID, r.PreviousResponseID},
		{&resp.Reasoning.Effort, string(r.Reasoning.Effort)},
		{&resp.User, r.User},
	} {
		if f.from != "" {
			*f.to = &f.from
		}
	}
	return &responsesWriter{response: resp, logprobs: logprobs}
}

// send writes an event, whose data have its name and number too.
func (o *responsesWriter) send(name string, members map[string]any) error {
	if o.stream == nil {
		return nil
	}
	members["type"], members["sequence_number"] = name, o.sequence
	o.sequence++
	return o.stream.event(name, members)
}

// ofItem are the members of an event about the open item.
func (o *responsesWriter) ofItem(members map[string]any) map[string]any {
	members["output_index"], members["item_id"] = len(o.response.Output)-1, o.open.ID
	if o.open.Content != nil {
		members["content_index"] = 0
	}
	return members
}

func (o *responsesWriter) event(e event) error {
	switch e.Kind {
	case started:
		if err := o.send("response.created", map[string]any{"response": o.response}); err != nil {
			return err
		}
		return o.send("response.in_progress", map[string]any{"response": o.response})
	case reasoningDelta, contentDelta:
		return o.text(e)
	case toolCallStart:
		empty := ""
		return o.begin(&responseItem{ID: "fc_" + rand.Text(), Type: itemCall, CallID: e.ID, Name: e.Name, Arguments: &empty})
	case toolCallArgs:
		o.said = append(o.said, e.Text...)
		return o.send("response.function_call_arguments.delta", o.ofItem(map[string]any{"delta": e.Text}))
	case toolCallEnd:
		return o.end(completed)
	}
	return o.finish(e)
}

// text adds to an item of reasoning or content, and begins it if it is not there.
func (o *responsesWriter) text(e event) error {
	typ, delta := itemReasoning, "response.reasoning_text.delta"
	if e.Kind == contentDelta {
		typ, delta = itemMessage, "response.output_text.delta"
	}
	if o.open == nil || o.open.Type != typ {
		if err := o.beginText(typ); err != nil {
			return err
		}
	}
	o.said = append(o.said, e.Text...)
	members := o.ofItem(map[string]any{"delta": e.Text})
	if typ == itemMessage {
		members["logprobs"] = o.tokens(e.Tokens)
	}
	return o.send(delta, members)
}

// tokens adds tokens of the open message, if they are wanted.
func (o *responsesWriter) tokens(tokens []engine.Token) []tokenLogprobJSON {
	if !o.logprobs {
		return []tokenLogprobJSON{}
	}
	list := logprobsOf(tokens).Content
	*o.part.Logprobs = append(*o.part.Logprobs, list...)
	return list
}

// beginText starts an item that has text in a part.
func (o *responsesWriter) beginText(typ string) error {
	item := &responseItem{Type: typ, Content: &[]responsePart{}}
	part := responsePart{Type: "reasoning_text"}
	if typ == itemReasoning {
		item.ID, item.Summary = "rs_"+rand.Text(), &[]struct{}{}
	} else {
		item.ID, item.Role = "msg_"+rand.Text(), chat.Assistant
		part = responsePart{Type: "output_text", Annotations: &[]struct{}{}, Logprobs: &[]tokenLogprobJSON{}}
	}
	if err := o.begin(item); err != nil {
		return err
	}
	o.part = part
	return o.send("response.content_part.added", o.ofItem(map[string]any{"part": part}))
}

// begin starts an item after it has ended the one before.
func (o *responsesWriter) begin(item *responseItem) error {
	if err := o.end(completed); err != nil {
		return err
	}
	item.Status = inProgress
	o.open, o.said = item, nil
	o.response.Output = append(o.response.Output, item)
	return o.send("response.output_item.added", map[string]any{"output_index": len(o.response.Output) - 1, "item": item})
}

// end ends the item that is open, if one is.
func (o *responsesWriter) end(status string) error {
	if o.open == nil {
		return nil
	}
	item, said := o.open, string(o.said)
	var err error
	if item.Type == itemCall {
		item.Arguments = &said
		err = o.send("response.function_call_arguments.done", o.ofItem(map[string]any{"arguments": said, "name": item.Name}))
	} else {
		err = o.endText(said)
	}
	if err != nil {
		return err
	}
	item.Status, o.open = status, nil
	return o.send("response.output_item.done", map[string]any{"output_index": len(o.response.Output) - 1, "item": item})
}

// endText ends the part of the item that is open.
func (o *responsesWriter) endText(said string) error {
	o.part.Text = said
	o.open.Content = &[]responsePart{o.part}
	done, members := "response.reasoning_text.done", o.ofItem(map[string]any{"text": said})
	if o.open.Type == itemMessage {
		done, members["logprobs"] = "response.output_text.done", o.part.Logprobs
	}
	if err := o.send(done, members); err != nil {
		return err
	}
	return o.send("response.content_part.done", o.ofItem(map[string]any{"part": o.part}))
}

// finish says why the response ends, and what it took.
func (o *responsesWriter) finish(e event) error {
	r, status := o.response, completed
	if e.Answer.FinishReason == engine.FinishLength {
		status, r.IncompleteDetails = incomplete, &incompleteDetails{"max_output_tokens"}
	}
	if o.open != nil && o.open.Type == itemMessage {
		o.tokens(e.Tokens)
	}
	if err := o.end(status); err != nil {
		return err
	}
	r.Status, r.Usage = status, usageOf([]*answer{e.Answer}).responses()
	if status == completed {
		now := time.Now().Unix()
		r.CompletedAt = &now
	}
	return o.send("response."+status, map[string]any{"response": r})
}

// fail ends a stream that has begun, or returns the error for an answer of its own.
func (o *responsesWriter) fail(err error) error {
	if o.stream == nil || !o.stream.begun {
		return err
	}
	e := asError(err)
	if e.Status != statusClientClosed {
		o.response.Status, o.response.Error = failed, &responseError{cmp.Or(e.Code, "server_error"), e.Error()}
		_ = o.send("response.failed", map[string]any{"response": o.response}) // that the client has gone is no second error
	}
	return err
}

// message is the response as a message of a conversation that goes on.
func (o *responsesWriter) message() chat.Message {
	m := chat.Message{Role: chat.Assistant}
	for _, item := range o.response.Output {
		switch item.Type {
		case itemReasoning:
			m.Reasoning += (*item.Content)[0].Text
		case itemMessage:
			m.Content = append(m.Content, chat.Part{Kind: chat.Text, Text: (*item.Content)[0].Text})
		case itemCall:
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: item.CallID, Name: item.Name, Arguments: objectOf(json.RawMessage(*item.Arguments))})
		}
	}
	return m
}
