// Package conversation writes conversations as JSON in the form that --messages takes, and
// has what several commands do with messages.
package conversation

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// The types here are a conversation in the form that --messages takes, which is
// OpenAI's, with media by their source.

type conversationJSON struct {
	Messages []Message   `json:"messages"`
	Tools    []chat.Tool `json:"tools,omitempty"`
}

// Message is a message in the form of OpenAI's API.
type Message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // a string, []partJSON, any JSON of a tool, or null
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

type partJSON struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Image  string  `json:"image,omitempty"`
	Audio  string  `json:"audio,omitempty"`
	Video  string  `json:"video,omitempty"`
	FPS    float64 `json:"fps,omitempty"`
	Frames int     `json:"num_frames,omitempty"`
}

// ToolCall is a call in the form of OpenAI's API.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // "function"
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, in a string as OpenAI has it
}

// Write writes a conversation as chat.ParseMessages reads it.
func Write(w io.Writer, c chat.Conversation) error {
	out := conversationJSON{Messages: Messages(c.Messages), Tools: c.Tools}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(out)
}

// Messages is a list in that form.
func Messages(messages []chat.Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		j := Message{Role: m.Role, Content: contentJSON(m), Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Name: m.Name}
		if len(m.ToolCalls) > 0 {
			j.ToolCalls = ToolCalls(m.ToolCalls)
		}
		out = append(out, j)
	}
	return out
}

func contentJSON(m chat.Message) any {
	switch {
	case m.Result != nil:
		return m.Result
	case m.Content == nil && len(m.ToolCalls) > 0:
		return nil
	case !m.List:
		return Text(m)
	}
	parts := make([]partJSON, 0, len(m.Content))
	for _, p := range m.Content {
		j := partJSON{Type: p.Kind.String(), Text: p.Text, FPS: p.FPS, Frames: p.Frames}
		switch p.Kind {
		case chat.Image:
			j.Image = p.Source
		case chat.Audio:
			j.Audio = p.Source
		case chat.Video:
			j.Video = p.Source
		}
		parts = append(parts, j)
	}
	return parts
}

// ToolCalls is a list in that form, of none [].
func ToolCalls(calls []chat.ToolCall) []ToolCall {
	out := make([]ToolCall, 0, len(calls)) // [] and not null without any
	for _, c := range calls {
		out = append(out, ToolCall{c.ID, "function", function{c.Name, string(c.Arguments)}})
	}
	return out
}

// TextMessage is a message with media and a text, either of which may be missing.
func TextMessage(role string, media []chat.Part, text string) chat.Message {
	m := chat.Message{Role: role, Content: slices.Clone(media), List: len(media) > 0}
	if text != "" {
		m.Content = append(m.Content, chat.Part{Kind: chat.Text, Text: text})
	}
	return m
}

// Text is the text of a message, without its media.
func Text(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Content {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Rebased returns a conversation whose media that are named by relative paths are
// named by paths from the root: so they are found from everywhere.
func Rebased(c chat.Conversation, dir string) (chat.Conversation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return c, err
	}
	messages := make([]chat.Message, len(c.Messages))
	for i, m := range c.Messages {
		m.Content = append([]chat.Part(nil), m.Content...)
		for k, p := range m.Content {
			if p.Source != "" && !strings.Contains(p.Source, "://") && !strings.HasPrefix(p.Source, "data:") && !filepath.IsAbs(p.Source) {
				m.Content[k].Source = filepath.Join(dir, p.Source)
			}
		}
		messages[i] = m
	}
	c.Messages = messages
	return c, nil
}

// ParseTools reads declarations of tools: a list of them, or an object with it.
func ParseTools(name string, data []byte) ([]chat.Tool, error) {
	var object struct {
		Tools json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(data, &object) == nil && object.Tools != nil {
		data = object.Tools
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("%s: not JSON, want a list of tools", name)
	}
	wrapped, err := json.Marshal(map[string]json.RawMessage{"messages": json.RawMessage("[]"), "tools": data})
	if err != nil {
		return nil, err
	}
	c, err := chat.ParseMessages(wrapped)
	if err == nil {
		_, err = chat.ToolNames(c.Tools)
	}
	if err == nil && len(c.Tools) == 0 {
		err = fmt.Errorf("no tools")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c.Tools, nil
}
