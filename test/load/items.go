package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// item is a line of the evaluation set with the reference's answer.
type item struct {
	ID, Task  string
	Effort    string `json:"reasoning_effort"`
	Tools     []tool
	Messages  []message
	Reference struct {
		Content, Reasoning string
		ToolCall           *struct {
			Name string
			Args json.RawMessage
		} `json:"tool_call"`
	}
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type message struct {
	Role       string          `json:"role"`
	Content    content         `json:"content,omitempty"`
	Name       string          `json:"name,omitempty"`
	ToolCalls  json.RawMessage `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

// content is a list of parts; the set has single texts as strings.
type content []part

type part struct {
	Type  string // text, image, audio
	Text  string
	Image string // a file of the set
	Audio string
	data  string // the file in base64
}

// UnmarshalJSON reads a string as a part.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*c = content{{Type: "text"}}
		return json.Unmarshal(data, &(*c)[0].Text)
	}
	return json.Unmarshal(data, (*[]part)(c))
}

// readItems reads the set with its media.
func readItems(dir string) ([]*item, error) {
	data, err := os.ReadFile(filepath.Join(dir, "dev.jsonl"))
	if err != nil {
		return nil, err
	}
	var items []*item
	for line := range bytes.Lines(data) {
		it := &item{}
		if err := json.Unmarshal(line, it); err != nil {
			return nil, fmt.Errorf("%s: item %d: %w", dir, len(items), err)
		}
		for _, m := range it.Messages {
			for i := range m.Content {
				p := &m.Content[i]
				if p.Type == "text" {
					continue
				}
				raw, err := os.ReadFile(filepath.Join(dir, p.Image+p.Audio))
				if err != nil {
					return nil, err
				}
				p.data = base64.StdEncoding.EncodeToString(raw)
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// want is the reference's answer.
func (it *item) want() answer {
	a := answer{content: it.Reference.Content, reasoning: it.Reference.Reasoning}
	if c := it.Reference.ToolCall; c != nil {
		a.calls = c.Name + canonical(c.Args) + ";"
	}
	return a
}

// plain reports whether all messages are text and media of the user, the system
// and the model, which every API has the same words for.
func (it *item) plain() bool {
	for _, m := range it.Messages {
		if m.ToolCalls != nil || m.Role == "tool" {
			return false
		}
	}
	return true
}

// answer is what a request came to, in no API's words.
type answer struct {
	content, reasoning string
	calls              string // name and arguments of each with a semicolon, keys in order
}

func (a answer) String() string {
	return fmt.Sprintf("%q after %q, calls %q", a.content, a.reasoning, a.calls)
}

// canonical is JSON with its keys in order and without spaces.
func canonical(raw json.RawMessage) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "not JSON: " + string(raw)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
