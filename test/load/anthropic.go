package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// anthropic asks for an item by /v1/messages; nil if the API has no words for it.
func (it *item) anthropic() *query {
	if !it.plain() {
		return nil
	}
	body := fields{"model": modelName, "max_tokens": 200, "temperature": 0, "stream": true}
	if it.Effort != "none" {
		body["thinking"], body["output_config"] = fields{"type": "adaptive"}, fields{"effort": it.Effort}
	}
	var messages []fields
	for _, m := range it.Messages {
		var blocks []fields
		for _, p := range m.Content {
			switch p.Type {
			case "image":
				blocks = append(blocks, fields{"type": "image", "source": fields{"type": "base64", "media_type": "image/png", "data": p.data}})
			case "audio":
				blocks = append(blocks, fields{"type": "audio", "source": fields{"type": "base64", "media_type": "audio/wav", "data": p.data}})
			default:
				blocks = append(blocks, fields{"type": "text", "text": p.Text})
			}
		}
		if m.Role == "system" {
			body["system"] = blocks
			continue
		}
		messages = append(messages, fields{"role": m.Role, "content": blocks})
	}
	body["messages"] = messages
	var tools []fields
	for _, t := range it.Tools {
		tools = append(tools, fields{"name": t.Function.Name, "description": t.Function.Description, "input_schema": t.Function.Parameters})
	}
	if tools != nil {
		body["tools"] = tools
	}
	return &query{name: "anthropic/" + it.Task + "/" + it.ID, path: "/v1/messages", body: encode(body), read: readAnthropic, want: it.want()}
}

// readAnthropic reads an answer of /v1/messages, a stream of events.
func readAnthropic(r io.Reader, first func()) (a answer, err error) {
	done := false
	args, inCall := "", false
	err = readEvents(r, func(data string) error {
		var e struct {
			Type         string
			Error        json.RawMessage
			ContentBlock struct{ Type, Name string } `json:"content_block"`
			Delta        struct {
				Text, Thinking string
				PartialJSON    string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("event %.200q: %w", data, err)
		}
		switch e.Type {
		case "error":
			return &streamError{string(e.Error)}
		case "content_block_start":
			first()
			if inCall = e.ContentBlock.Type == "tool_use"; inCall {
				a.calls += e.ContentBlock.Name
				args = ""
			}
		case "content_block_delta":
			a.content, a.reasoning, args = a.content+e.Delta.Text, a.reasoning+e.Delta.Thinking, args+e.Delta.PartialJSON
		case "content_block_stop":
			if inCall {
				a.calls += canonical(json.RawMessage(args)) + ";"
			}
			inCall = false
		case "message_stop":
			done = true
		}
		return nil
	})
	if err == nil && !done {
		err = errors.New("the stream ends without message_stop")
	}
	return a, err
}
