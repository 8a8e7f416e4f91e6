package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ollamaThink is the words of Ollama's API for a reasoning effort.
func ollamaThink(effort string) (any, bool) {
	switch effort {
	case "none":
		return false, true
	case "low", "medium", "high", "max":
		return effort, true
	}
	return nil, false
}

// ollama asks for an item by /api/chat; nil if the API has no words for it.
func (it *item) ollama() *query {
	think, ok := ollamaThink(it.Effort)
	if !ok || !it.plain() {
		return nil
	}
	var messages []fields
	for _, m := range it.Messages {
		text, media := "", []string{}
		for _, p := range m.Content {
			text += p.Text
			if p.data != "" {
				media = append(media, p.data)
			}
		}
		messages = append(messages, fields{"role": m.Role, "content": text, "images": media})
	}
	body := fields{"model": modelName, "think": think, "messages": messages, "options": fields{"temperature": 0, "num_predict": 200}}
	if it.Tools != nil {
		body["tools"] = it.Tools
	}
	return &query{name: "ollama/" + it.Task + "/" + it.ID, path: "/api/chat", body: encode(body), read: readOllama, want: it.want()}
}

// readOllama reads an answer of /api/chat or /api/generate, a stream of lines.
func readOllama(r io.Reader, first func()) (a answer, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	done := false
	for lines.Scan() {
		var line struct {
			Error              string
			Response, Thinking string
			Done               bool
			Message            struct {
				Content, Thinking string
				ToolCalls         []struct {
					Function struct {
						Name      string
						Arguments json.RawMessage
					}
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return a, fmt.Errorf("line %.200q: %w", lines.Bytes(), err)
		}
		if line.Error != "" {
			return a, &streamError{line.Error}
		}
		m := line.Message
		if m.Content+m.Thinking+line.Response+line.Thinking != "" || m.ToolCalls != nil {
			first()
		}
		a.content, a.reasoning = a.content+m.Content+line.Response, a.reasoning+m.Thinking+line.Thinking
		for _, c := range m.ToolCalls {
			a.calls += c.Function.Name + canonical(c.Function.Arguments) + ";"
		}
		done = done || line.Done
	}
	if err := lines.Err(); err != nil {
		return a, err
	}
	if !done {
		return a, errors.New("the stream ends without done")
	}
	return a, nil
}
