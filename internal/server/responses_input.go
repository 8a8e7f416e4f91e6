package server

import (
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// turn checks the request and puts all but its input into no protocol's words.
func (r *responsesRequest) turn() (*turn, error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	t := &turn{Model: r.Model, Effort: string(r.Reasoning.Effort), ParallelCalls: r.parallel(), Words: responsesWords}
	if err := (&samplingFields{Temperature: r.Temperature, TopP: r.TopP}).set(t); err != nil {
		return nil, err
	}
	if r.MaxOutputTokens != nil {
		if err := setMaxTokens(t, "max_output_tokens", *r.MaxOutputTokens); err != nil {
			return nil, err
		}
	}
	if err := r.setFormat(t); err != nil {
		return nil, err
	}
	logprobs := slices.Contains(r.Include, "message.output_text.logprobs") || r.TopLogprobs != nil && *r.TopLogprobs > 0
	rest := chatRequest{Logprobs: &logprobs, TopLogprobs: r.TopLogprobs}
	rest.ToolChoice.ToolChoice = r.ToolChoice.ToolChoice
	for _, tool := range r.Tools {
		rest.Tools = append(rest.Tools, tool.toolField)
	}
	if err := rest.setTools(t); err != nil {
		bad := asError(err)
		bad.Param = responsesWords.Replace(bad.Param)
		return nil, err
	}
	return t, rest.setLogprobs(t)
}

var responsesWords = strings.NewReplacer(".function", "")

func (r *responsesRequest) parallel() bool { return r.ParallelToolCalls == nil || *r.ParallelToolCalls }

// refuse names what this server does not have and that would change the answer.
func (r *responsesRequest) refuse() error {
	given := func(raw []byte) bool { return len(raw) > 0 }
	switch {
	case r.Background:
		return unsupported("background", "answers are given to the request itself")
	case given(r.Conversation):
		return unsupported("conversation", "conversations are not kept here; previous_response_id goes on from a response")
	case given(r.Prompt):
		return unsupported("prompt", "prompts are not kept here: give instructions and input")
	case len(r.Input.items) == 0 && r.PreviousResponseID == "":
		return invalid("input", "is missing or empty")
	}
	switch r.Truncation {
	case "", "auto", "disabled":
		return nil
	}
	return invalid("truncation", "%q is not known, want auto or disabled", r.Truncation)
}

func (r *responsesRequest) setFormat(t *turn) error {
	f := r.Text.Format
	if f == nil {
		return nil
	}
	switch f.Type {
	case "text":
	case "json_object":
		t.Format = format{Kind: formatJSON, Param: "text.format"}
	case "json_schema":
		if len(f.Schema) == 0 {
			return invalid("text.format.schema", "is missing")
		}
		t.Format = format{Kind: formatSchema, Schema: f.Schema, Param: "text.format.schema"}
	default:
		return invalid("text.format.type", "%q is not known, want text, json_object or json_schema", f.Type)
	}
	return nil
}

// conversation adds the input to the messages before. What an assistant did is
// several items there and one message here.
func (r *responsesRequest) conversation(before []chat.Message) ([]chat.Message, error) {
	c := inputReader{messages: slices.Clone(before)}
	for i := range r.Input.items {
		if err := c.item(&r.Input.items[i], r.Input.paths[i]); err != nil {
			return nil, err
		}
	}
	return c.messages, nil
}

// inputReader makes messages of items.
type inputReader struct {
	messages []chat.Message
	answer   bool // the last message is an assistant's that items may be added to
}

func (c *inputReader) item(it *responsesItem, path string) error {
	switch it.Type {
	case "", "message":
		return c.message(it, path)
	case "reasoning":
		a := c.assistant(func(m *chat.Message) bool { return len(m.Content) == 0 && len(m.ToolCalls) == 0 })
		if it.Content.given {
			a.Reasoning += it.Content.text()
		} else {
			a.Reasoning += it.Summary.text()
		}
		return nil
	case "function_call":
		if it.Name == "" {
			return invalid(path+".name", "is missing")
		}
		args, err := argumentsObject(it.Arguments, path+".arguments")
		if err != nil {
			return err
		}
		a := c.assistant(func(*chat.Message) bool { return true })
		a.ToolCalls = append(slices.Clip(a.ToolCalls), chat.ToolCall{ID: it.CallID, Name: it.Name, Arguments: args})
		return nil
	case "function_call_output":
		if it.CallID == "" {
			return invalid(path+".call_id", "is missing")
		}
		c.add(chat.Message{Role: chat.ToolRole, ToolCallID: it.CallID, Content: it.Output.parts, List: it.Output.list})
		return nil
	case "item_reference":
		return unsupported(path+".type", "items are not kept by themselves; previous_response_id goes on from a response")
	}
	return unsupported(path+".type", "items of type %q are not known here", it.Type)
}

func (c *inputReader) message(it *responsesItem, path string) error {
	switch it.Role {
	case chat.System, chat.Developer, chat.User:
		if !it.Content.given {
			return invalid(path+".content", "is missing")
		}
		c.add(chat.Message{Role: it.Role, Content: it.Content.parts, List: it.Content.list})
	case chat.Assistant:
		a := c.assistant(func(m *chat.Message) bool { return len(m.Content) == 0 && len(m.ToolCalls) == 0 })
		a.Content, a.List = it.Content.parts, it.Content.list
	case "":
		return invalid(path+".role", "is missing")
	default:
		return invalid(path+".role", "%q is not known, want system, developer, user or assistant", it.Role)
	}
	return nil
}

func (c *inputReader) add(m chat.Message) {
	c.messages, c.answer = append(c.messages, m), false
}

// assistant is the message that an item of an assistant's belongs to: the last one
// if it is of this input and can have it, or a new one.
func (c *inputReader) assistant(can func(*chat.Message) bool) *chat.Message {
	if !c.answer || !can(&c.messages[len(c.messages)-1]) {
		c.add(chat.Message{Role: chat.Assistant})
		c.answer = true
	}
	return &c.messages[len(c.messages)-1]
}
