// Package eval measures how good a model is: how many questions of a set it answers
// as expected, how well it predicts a text, and how far its predictions are from
// another model's. docs/eval.md describes the files and the measures.
package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
)

// Item is one question of a set: one line of JSON.
type Item struct {
	ID          string           `json:"id"`
	Task        string           `json:"task"`             // questions of one task are counted together
	Effort      string           `json:"reasoning_effort"` // empty: the model's own
	Thinking    *bool            `json:"thinking"`         // false is the effort none
	VideoLayout media.ClipLayout `json:"video_layout"`
	Tools       json.RawMessage  `json:"tools"`
	Messages    json.RawMessage  `json:"messages"`
	MaxTokens   int              `json:"max_tokens"` // of the answer; 0: DefaultMaxTokens

	// What counts as right: the text, the call of a tool, or both.
	Expected     *string   `json:"expected"`
	ExpectedCall *ToolCall `json:"expected_tool_call"`
	// ExpectedReasoning are the thoughts before it. They are not compared, but models
	// may be by how they predict them.
	ExpectedReasoning string `json:"expected_reasoning"`
}

// ToolCall is the call that a model is expected to make.
type ToolCall struct {
	ID        string          `json:"id"` // not compared
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// DefaultMaxTokens bounds answers.
const DefaultMaxTokens = 1024

// Bounds of a set.
const (
	maxSetBytes = 256 << 20
	maxItems    = 1 << 20
)

// ReadSet reads a set. Errors name the file and the line.
func ReadSet(path string) ([]Item, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	var items []Item
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var it Item
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		if err := it.check(); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		if it.ID == "" {
			it.ID = fmt.Sprint(n)
		}
		if items = append(items, it); len(items) > maxItems {
			return nil, fmt.Errorf("%s: more than %d questions", path, maxItems)
		}
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%s: no questions", path)
	}
	return items, nil
}

func (it *Item) check() error {
	switch {
	case it.Expected == nil && it.ExpectedCall == nil:
		return errors.New("neither expected nor expected_tool_call says what is right")
	case it.ExpectedCall != nil && it.ExpectedCall.Name == "":
		return errors.New("expected_tool_call has no name")
	case it.MaxTokens < 0:
		return fmt.Errorf("max_tokens is %d", it.MaxTokens)
	case it.Thinking != nil && it.Effort != "":
		return errors.New("thinking and reasoning_effort do not go together")
	}
	if _, err := chat.ParseEffort(it.Effort); err != nil {
		return fmt.Errorf("reasoning_effort: %w", err)
	}
	_, err := it.conversation()
	return err
}

// conversation reads the messages and tools.
func (it *Item) conversation() (chat.Conversation, error) {
	body := map[string]json.RawMessage{"messages": it.Messages}
	if len(it.Messages) == 0 {
		return chat.Conversation{}, errors.New("no messages")
	}
	if len(it.Tools) > 0 && string(it.Tools) != "null" {
		body["tools"] = it.Tools
	}
	text, err := json.Marshal(body)
	if err != nil {
		return chat.Conversation{}, err
	}
	return chat.ParseMessages(text)
}

// effort is what the item says of thinking.
func (it *Item) effort() string {
	if it.Thinking != nil && !*it.Thinking {
		return "none"
	}
	return it.Effort
}

// readBounded reads a file of a sensible size.
func readBounded(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxSetBytes {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", path, st.Size(), maxSetBytes)
	}
	return os.ReadFile(path)
}
