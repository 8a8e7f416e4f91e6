package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"

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
		"add_generation_prompt": jinja.NewBool(o.AddGenerationPrompt),
		"bos_token":             jinja.NewString(""),
		"eos_token":             jinja.NewString(""),
	}
	eos, hasEOS := v.EOS()
	if hasEOS {
		piece, _ := v.Token(eos)
		data["eos_token"] = jinja.NewString(string(piece))
	}
	// GGUF files of models that begin with no token repeat the end-of-sequence id as a stand-in.
	if bos, ok := v.BOS(); ok && !(hasEOS && bos == eos) {
		piece, _ := v.Token(bos)
		data["bos_token"] = jinja.NewString(string(piece))
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
	data["messages"] = jinja.NewList(messages)
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
		data["tools"] = jinja.NewList(list)
		if b.err != nil {
			return nil, fmt.Errorf("tools: %w", b.err)
		}
	}
	if o.PreserveThinking != nil {
		data["preserve_thinking"] = jinja.NewBool(*o.PreserveThinking)
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
	data["reasoning_effort"] = jinja.NewFloat(f)
	if _, ok := effortLevels[name]; ok {
		data["reasoning_effort"] = jinja.NewString(name)
	}
	data["enable_thinking"] = jinja.NewBool(f > 0)
	data["thinking"] = jinja.NewBool(f > 0)
	return nil
}

// message builds one message. Members that were not given are left out.
func (b *valueBuilder) message(m Message) jinja.Value {
	d := newDict()
	d.set("role", jinja.NewString(m.Role))
	d.set("content", b.content(m))
	if m.Reasoning != "" {
		d.set("reasoning_content", b.str(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		var calls []jinja.Value
		for _, c := range m.ToolCalls {
			calls = append(calls, b.toolCall(c))
		}
		d.set("tool_calls", jinja.NewList(calls))
	}
	if m.ToolCallID != "" {
		d.set("tool_call_id", b.str(m.ToolCallID))
	}
	if m.Name != "" {
		d.set("name", b.str(m.Name))
	}
	return d.value
}

func (b *valueBuilder) toolCall(c ToolCall) jinja.Value {
	args := jinja.NewDict()
	if len(c.Arguments) > 0 {
		args = b.raw(c.Arguments)
	}
	f := newDict()
	f.set("name", b.str(c.Name))
	f.set("arguments", args)
	d := newDict()
	if c.ID != "" {
		d.set("id", b.str(c.ID))
	}
	d.set("type", jinja.NewString("function"))
	d.set("function", f.value)
	return d.value
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
		return jinja.None()
	case onlyText && !m.List && len(texts) <= 1, onlyText && !b.lists:
		return b.str(strings.Join(texts, "\n"))
	}
	parts := []jinja.Value{}
	for _, p := range m.Content {
		d := newDict()
		d.set("type", jinja.NewString(p.Kind.String()))
		if p.Kind == Text {
			d.set("text", b.str(p.Text))
		} else {
			// The place of the medium is all that a template needs; its bytes may be megabytes.
			d.set(p.Kind.String(), jinja.NewString(""))
		}
		parts = append(parts, d.value)
	}
	return jinja.NewList(parts)
}

// str passes a text from outside on.
func (b *valueBuilder) str(s string) jinja.Value {
	return jinja.NewString(b.masked(s, false))
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
		return jinja.None()
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
		return jinja.NewBool(v)
	case string:
		if isType && typeWords[v] {
			return jinja.NewString(v)
		}
		return b.str(v)
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return jinja.NewInt(n)
		}
		f, err := v.Float64()
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("number %s is out of range", v)
		}
		return jinja.NewFloat(f)
	case []any:
		list := []jinja.Value{}
		for _, e := range v {
			list = append(list, b.json(e, isType))
		}
		return jinja.NewList(list)
	case *object:
		d := newDict()
		for _, key := range v.keys {
			d.set(b.masked(key, true), b.json(v.values[key], key == "type"))
		}
		return d.value
	}
	return jinja.None()
}

// dict is a dict value under construction.
type dict struct {
	value jinja.Value
	d     *jinja.Dict
}

func newDict() dict {
	v := jinja.NewDict()
	return dict{v, v.AsDict()}
}

func (d dict) set(key string, v jinja.Value) { d.d.Set(key, v) }
