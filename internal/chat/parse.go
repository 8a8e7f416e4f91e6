package chat

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ParseMessages reads a conversation from JSON: an array of messages, or an object with "messages" and perhaps "tools". Messages
// may follow the OpenAI or the Hugging Face conventions. Errors name the message and the part, counted from 0.
func ParseMessages(data []byte) (Conversation, error) {
	v, err := decodeJSON(data)
	if err != nil {
		return Conversation{}, err
	}
	var c Conversation
	if o, ok := v.(*object); ok {
		v = o.get("messages")
		if c.Tools, err = parseTools(o.get("tools")); err != nil {
			return Conversation{}, err
		}
	}
	list, ok := v.([]any)
	if !ok {
		return Conversation{}, fmt.Errorf("messages are %s, want an array", jsonType(v))
	}
	for i, e := range list {
		m, err := parseMessage(e)
		if err != nil {
			return Conversation{}, fmt.Errorf("message %d: %w", i, err)
		}
		c.Messages = append(c.Messages, m)
	}
	return c, nil
}

func parseTools(v any) ([]Tool, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("tools are %s, want an array", jsonType(v))
	}
	var tools []Tool
	for i, e := range list {
		if _, ok := e.(*object); !ok {
			return nil, fmt.Errorf("tool %d is %s, want an object", i, jsonType(e))
		}
		tools = append(tools, encodeOrdered(nil, e))
	}
	return tools, nil
}

func parseMessage(v any) (Message, error) {
	o, ok := v.(*object)
	if !ok {
		return Message{}, fmt.Errorf("is %s, want an object", jsonType(v))
	}
	var (
		m   Message
		err error
	)
	if m.Role, err = stringField(o, "role"); err != nil {
		return Message{}, err
	}
	if err := checkRole(m.Role); err != nil {
		return Message{}, err
	}
	if m.Name, err = stringField(o, "name"); err != nil {
		return Message{}, err
	}
	if m.ToolCallID, err = stringField(o, "tool_call_id"); err != nil {
		return Message{}, err
	}
	if m.Reasoning, err = stringField(o, "reasoning_content"); err != nil {
		return Message{}, err
	}
	if m.Reasoning == "" {
		if m.Reasoning, err = stringField(o, "reasoning"); err != nil {
			return Message{}, err
		}
	}
	if m.ToolCalls, err = parseToolCalls(o.get("tool_calls")); err != nil {
		return Message{}, err
	}
	return m, m.setContent(o.get("content"))
}

func checkRole(role string) error {
	switch role {
	case System, Developer, User, Assistant, ToolRole:
		return nil
	}
	return fmt.Errorf("unknown role %q", role)
}

func (m *Message) setContent(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		m.Content = []Part{}
		if v != "" {
			m.Content = append(m.Content, Part{Kind: Text, Text: v})
		}
		return nil
	case []any:
		if m.Role == ToolRole {
			break
		}
		m.List = true
		for i, e := range v {
			p, err := parsePart(e)
			if err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
			m.Content = append(m.Content, p)
		}
		return nil
	}
	if m.Role != ToolRole {
		return fmt.Errorf("content is %s, want a string or an array", jsonType(v))
	}
	m.Result = encodeOrdered(nil, v)
	return nil
}

func parseToolCalls(v any) ([]ToolCall, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("tool_calls are %s, want an array", jsonType(v))
	}
	var calls []ToolCall
	for i, e := range list {
		o, ok := e.(*object)
		if !ok {
			return nil, fmt.Errorf("tool call %d is %s, want an object", i, jsonType(e))
		}
		f, ok := o.get("function").(*object)
		if !ok {
			f = o
		}
		var (
			c   ToolCall
			err error
		)
		if c.ID, err = stringField(o, "id"); err == nil {
			c.Name, err = stringField(f, "name")
		}
		if err == nil && c.Name == "" {
			err = errors.New("has no name")
		}
		if err != nil {
			return nil, fmt.Errorf("tool call %d: %w", i, err)
		}
		c.Arguments = parseArguments(f.get("arguments"))
		calls = append(calls, c)
	}
	return calls, nil
}

// parseArguments takes an object, or a string with one, which stays as it is written. Anything else is an empty object: clients send
// such strings back to us when a model called without arguments.
func parseArguments(v any) json.RawMessage {
	if s, ok := v.(string); ok {
		parsed, err := decodeJSON([]byte(s))
		if _, isObject := parsed.(*object); err == nil && isObject {
			return json.RawMessage(s)
		}
		v = nil
	}
	if _, ok := v.(*object); !ok {
		return json.RawMessage("{}")
	}
	return encodeOrdered(nil, v)
}

// stringField returns a string member, "" if it is absent or null.
func stringField(o *object, key string) (string, error) {
	switch v := o.get(key).(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", fmt.Errorf("%s is %s, want a string", key, jsonType(v))
	}
}

// jsonType names the JSON type of v with its article.
func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}
