package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// fields is a JSON object.
type fields map[string]any

// openAI asks for an item by /v1/chat/completions.
func (it *item) openAI() *query {
	var messages []fields
	for _, m := range it.Messages {
		f := fields{"role": m.Role}
		var parts []fields
		for _, p := range m.Content {
			switch p.Type {
			case "image":
				parts = append(parts, fields{"type": "image_url", "image_url": fields{"url": "data:image/png;base64," + p.data, "detail": "high"}})
			case "audio":
				parts = append(parts, fields{"type": "input_audio", "input_audio": fields{"data": p.data, "format": "wav"}})
			default:
				parts = append(parts, fields{"type": "text", "text": p.Text})
			}
		}
		if parts != nil {
			f["content"] = parts
		}
		if m.ToolCalls != nil {
			f["tool_calls"] = m.ToolCalls
		}
		if m.Role == "tool" {
			f["tool_call_id"], f["name"] = m.ToolCallID, m.Name
		}
		messages = append(messages, f)
	}
	body := fields{"model": modelName, "temperature": 0, "max_tokens": 200, "stream": true, "reasoning_effort": it.Effort, "messages": messages}
	if it.Tools != nil {
		body["tools"] = it.Tools
	}
	return &query{name: "openai/" + it.Task + "/" + it.ID, path: "/v1/chat/completions", body: encode(body), read: readOpenAI, want: it.want()}
}

// readOpenAI reads an answer of /v1/chat/completions, a stream of chunks.
func readOpenAI(r io.Reader, first func()) (a answer, err error) {
	type call struct{ name, args string }
	var calls []call
	done := false
	err = readEvents(r, func(data string) error {
		if data == "[DONE]" {
			done = true
			return nil
		}
		var chunk struct {
			Error   *json.RawMessage
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
					ToolCalls []struct {
						Index    int
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("chunk %.200q: %w", data, err)
		}
		if chunk.Error != nil {
			return &streamError{string(*chunk.Error)}
		}
		for _, c := range chunk.Choices {
			d := c.Delta
			if d.Content != "" || d.Reasoning != "" || d.ToolCalls != nil {
				first()
			}
			a.content, a.reasoning = a.content+d.Content, a.reasoning+d.Reasoning
			for _, t := range d.ToolCalls {
				if t.Index < 0 || t.Index > len(calls) {
					return fmt.Errorf("call %d after %d", t.Index, len(calls))
				}
				if t.Index == len(calls) {
					calls = append(calls, call{})
				}
				calls[t.Index].name += t.Function.Name
				calls[t.Index].args += t.Function.Arguments
			}
		}
		return nil
	})
	if err == nil && !done {
		err = errors.New("the stream ends without [DONE]")
	}
	var b strings.Builder
	for _, c := range calls {
		b.WriteString(c.name + canonical(json.RawMessage(c.args)) + ";")
	}
	a.calls = b.String()
	return a, err
}
