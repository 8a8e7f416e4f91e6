package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/internal/jinja"
	"github.com/inkling-go/inkling/internal/token"
)

// valueBuilder makes the values that a template sees. Every text that comes from outside passes through text; name tells that it
// is the name of a member.
type valueBuilder struct {
	text  func(s string, name bool) (string, error)
	lists bool // content may be a list of parts
	kimi  bool // tools are sorted, and there in the style of TypeScript too, as Kimi's tokenizer class passes them
	err   error
}

// data returns the variables of a template, as transformers' apply_chat_template sets them.
func (b *valueBuilder) data(v *token.Vocab, c Conversation, o Options) (map[string]jinja.Value, error) {
	data := map[string]jinja.Value{
		"add_generation_prompt": o.AddGenerationPrompt,
		"bos_token":             "",
		"eos_token":             "",
	}
	eos, hasEOS := v.EOS()
	if hasEOS {
		piece, _ := v.Token(eos)
		data["eos_token"] = string(piece)
	}
	// GGUF files of models that begin with no token repeat the end-of-sequence id as a stand-in.
	if bos, ok := v.BOS(); ok && !(hasEOS && bos == eos) {
		piece, _ := v.Token(bos)
		data["bos_token"] = string(piece)
	}
	var messages []jinja.Value
	for i, m := range c.Messages {
		if err := checkRole(m.Role); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		messages = append(messages, b.message(m))
		if b.err != nil {
			return nil, fmt.Errorf("message %d: %w", i, b.err)
		}
	}
	data["messages"] = jinja.NewList(messages...)
	tools := c.Tools
	if o.Tools != nil {
		tools = o.Tools
	}
	if len(tools) > 0 && b.kimi {
		if ts, ok := typescriptTools(tools); ok {
			data["tools_ts_str"] = b.str(ts)
		}
		var err error
		if tools, err = sortedTools(tools); err != nil {
			return nil, err
		}
	}
	if len(tools) > 0 {
		var list []jinja.Value
		for _, t := range tools {
			list = append(list, b.raw(t))
		}
		data["tools"] = jinja.NewList(list...)
		if b.err != nil {
			return nil, fmt.Errorf("tools: %w", b.err)
		}
	}
	if o.PreserveThinking != nil {
		data["preserve_thinking"] = *o.PreserveThinking
	}
	return data, setEffort(data, o.Effort)
}

// setEffort passes a named effort on as its name and a number as a number, and tells templates that only know on and off.
func setEffort(data map[string]jinja.Value, effort string) error {
	if effort == "" {
		return nil
	}
	f, err := ParseEffort(effort)
	if err != nil {
		return err
	}
	name := strings.ToLower(strings.TrimSpace(effort))
	data["reasoning_effort"] = f
	if _, ok := effortLevels[name]; ok {
		data["reasoning_effort"] = name
	}
	data["enable_thinking"] = f > 0
	data["thinking"] = f > 0
	return nil
}

// message builds one message. Members that were not given are left out.
func (b *valueBuilder) message(m Message) jinja.Value {
	d := jinja.NewDict()
	d.Set("role", m.Role)
	d.Set("content", b.content(m))
	if m.Reasoning != "" {
		d.Set("reasoning_content", b.str(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		var calls []jinja.Value
		for _, c := range m.ToolCalls {
			calls = append(calls, b.toolCall(c))
		}
		d.Set("tool_calls", jinja.NewList(calls...))
	}
	if m.ToolCallID != "" {
		d.Set("tool_call_id", b.str(m.ToolCallID))
	}
	if m.Name != "" {
		d.Set("name", b.str(m.Name))
	}
	return d
}

func (b *valueBuilder) toolCall(c ToolCall) jinja.Value {
	var args jinja.Value = jinja.NewDict()
	if len(c.Arguments) > 0 {
		args = b.raw(c.Arguments)
	}
	f := jinja.NewDict()
	f.Set("name", b.str(c.Name))
	f.Set("arguments", args)
	d := jinja.NewDict()
	if c.ID != "" {
		d.Set("id", b.str(c.ID))
	}
	d.Set("type", "function")
	d.Set("function", f)
	return d
}

// content gives a string where one was given, and for templates that know nothing else.
func (b *valueBuilder) content(m Message) jinja.Value {
	if m.Result != nil {
		return b.raw(m.Result)
	}
	onlyText := true
	var texts []string
	for _, p := range m.Content {
		onlyText = onlyText && p.Kind == Text
		texts = append(texts, p.Text)
	}
	switch {
	case m.Content == nil && !m.List:
		return nil
	case onlyText && !m.List && len(texts) <= 1, onlyText && !b.lists:
		return b.str(strings.Join(texts, "\n"))
	}
	parts := []jinja.Value{}
	for _, p := range m.Content {
		d := jinja.NewDict()
		d.Set("type", p.Kind.String())
		if p.Kind == Text {
			d.Set("text", b.str(p.Text))
		} else {
			// The place of the medium is all that a template needs; its bytes may be megabytes.
			d.Set(p.Kind.String(), "")
		}
		parts = append(parts, d)
	}
	return jinja.NewList(parts...)
}

// str passes a text from outside on.
func (b *valueBuilder) str(s string) jinja.Value {
	return b.masked(s, false)
}

func (b *valueBuilder) masked(s string, name bool) string {
	s, err := b.text(strings.ToValidUTF8(s, "\uFFFD"), name)
	if err != nil && b.err == nil {
		b.err = err
	}
	return s
}

// raw builds the value of JSON text with the members in their order.
func (b *valueBuilder) raw(data []byte) jinja.Value {
	v, err := decodeJSON(data)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return nil
	}
	return b.json(v, false)
}

// typeWords are the texts under "type" that templates compare with: types of tools, of JSON schema and of parts. They are too few and
// too plain to be of use to someone who wants to write a token.
var typeWords = map[string]bool{
	"function": true,
	"string":   true, "number": true, "integer": true, "boolean": true, "object": true, "array": true, "null": true,
	"text": true, "image": true, "image_url": true, "audio": true, "video": true, "json": true,
}

// json builds the value of a decoded JSON value; isType says that it is the value of a member "type".
func (b *valueBuilder) json(v any, isType bool) jinja.Value {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		if isType && typeWords[v] {
			return v
		}
		return b.str(v)
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("number %s is out of range", v)
		}
		return f
	case []any:
		list := []jinja.Value{}
		for _, e := range v {
			list = append(list, b.json(e, isType))
		}
		return jinja.NewList(list...)
	case *object:
		d := jinja.NewDict()
		for _, key := range v.keys {
			d.Set(b.masked(key, true), b.json(v.values[key], key == "type"))
		}
		return d
	}
	return nil
}
