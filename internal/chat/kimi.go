package chat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// Strings of the special tokens of Kimi's protocol.
const (
	tokImUser        = "<|im_user|>"
	tokImAssistant   = "<|im_assistant|>"
	tokImSystem      = "<|im_system|>"
	tokImMiddle      = "<|im_middle|>"
	tokImEnd         = "<|im_end|>"
	tokKimiEOS       = "[EOS]"
	tokMediaBegin    = "<|media_begin|>"
	tokMediaStart    = "<|media_start|>" // tokMediaBegin of Kimi-VL
	tokMediaContent  = "<|media_content|>"
	tokMediaEnd      = "<|media_end|>"
	tokThink         = "<think>"
	tokThinkEnd      = "</think>"
	tokSectionBegin  = "<|tool_calls_section_begin|>"
	tokSectionEnd    = "<|tool_calls_section_end|>"
	tokCallBegin     = "<|tool_call_begin|>"
	tokCallArguments = "<|tool_call_argument_begin|>"
	tokCallEnd       = "<|tool_call_end|>"
)

// kimi is Kimi's message protocol in the ids of a vocabulary. Tokens that not every model needs may be absent.
type kimi struct {
	user, assistant, system, middle, end int32

	eos                                          int32 // or absent
	mediaBegin, mediaContent, mediaEnd, mediaPad int32 // or absent
	placeholder                                  int32 // of a clip in templates; absent where it is text
	think, thinkEnd                              int32 // or absent: a model that does not think
	sectionBegin, sectionEnd                     int32 // or absent: a model without tools, as the next three
	callBegin, callArguments, callEnd            int32
}

// newKimi finds the protocol's tokens; ok is false if the vocabulary lacks one that every prompt needs.
func newKimi(v *token.Vocab) (p *kimi, ok bool) {
	id := func(names ...string) int32 {
		for _, s := range names {
			if id, ok := v.ID(s); ok {
				return id
			}
		}
		return absent
	}
	p = &kimi{
		user: id(tokImUser), assistant: id(tokImAssistant), system: id(tokImSystem), middle: id(tokImMiddle), end: id(tokImEnd),
		eos: id(tokKimiEOS), mediaBegin: id(tokMediaBegin, tokMediaStart), mediaContent: id(tokMediaContent),
		mediaEnd: id(tokMediaEnd), mediaPad: id(tokMediaPad), placeholder: id(videoPlaceholder),
		think: id(tokThink), thinkEnd: id(tokThinkEnd),
		sectionBegin: id(tokSectionBegin), sectionEnd: id(tokSectionEnd),
		callBegin: id(tokCallBegin), callArguments: id(tokCallArguments), callEnd: id(tokCallEnd),
	}
	for _, id := range []int32{p.user, p.assistant, p.system, p.middle, p.end} {
		if id == absent {
			return nil, false
		}
	}
	return p, true
}

func (p *kimi) hasMedia() bool {
	return p.mediaBegin != absent && p.mediaContent != absent && p.mediaEnd != absent && p.mediaPad != absent
}

func (p *kimi) thinks() bool { return p.think != absent && p.thinkEnd != absent }

func (p *kimi) hasCalls() bool {
	return p.sectionBegin != absent && p.sectionEnd != absent &&
		p.callBegin != absent && p.callArguments != absent && p.callEnd != absent
}

// kimiStyle is in what templates of the family differ.
type kimiStyle struct {
	defaultSystem string // prompt of conversations that begin without a system message; empty for none
	afterMedia    string // text after a picture or a clip
	jsonTools     bool   // tools are declared as JSON; else in the style of TypeScript
}

// kimiSystem is the default system prompt of K2, K2.5 and K2.6.
const kimiSystem = "You are Kimi, an AI assistant created by Moonshot AI."

// defaultStyle is K2.5's.
var defaultStyle = kimiStyle{defaultSystem: kimiSystem, afterMedia: "\n"}

// kimiRenderer writes Kimi's message protocol. A turn is a role token, a name, a middle token, the content and an end token; turns
// touch, and there is no beginning-of-sequence token.
type kimiRenderer struct {
	p     *kimi
	style kimiStyle
}

// kimiPrompt is a prompt being written.
type kimiPrompt struct {
	mediaWriter
	kimiStyle
	thinking bool
}

// Render writes the tools, a default system prompt if the conversation does not begin with one, the messages, and the start of the
// model's turn.
//
// The model sees its own earlier reasoning only while it works on one answer: after the last of its messages that called no tool.
// PreserveThinking keeps all of it.
func (r *kimiRenderer) Render(c Conversation, o Options) ([]token.Segment, []Part, error) {
	effort, err := ParseEffort(o.Effort)
	if err != nil {
		return nil, nil, err
	}
	tools := c.Tools
	if o.Tools != nil {
		tools = o.Tools
	}
	k := kimiPrompt{mediaWriter{p: r.p}, r.style, effort > 0}
	if err := k.tools(tools); err != nil {
		return nil, nil, err
	}
	messages := kimiIDs(c.Messages)
	if k.defaultSystem != "" && (len(messages) == 0 || !isSystem(messages[0])) {
		k.turn(r.p.system, "system", k.defaultSystem)
	}
	keepFrom := 0 // the first message whose reasoning is kept
	if o.PreserveThinking == nil || !*o.PreserveThinking {
		keepFrom = lastAnswer(messages) + 1
	}
	for i, m := range messages {
		if err := k.message(m, i >= keepFrom); err != nil {
			return nil, nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	if o.AddGenerationPrompt {
		k.open(r.p.assistant, "assistant")
		k.thought("", !k.thinking)
	}
	return k.segs, k.media, nil
}

func isSystem(m Message) bool { return m.Role == System || m.Role == Developer }

// lastAnswer returns the index of the last assistant message that called no tool, -1 if there is none.
func lastAnswer(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == Assistant && len(messages[i].ToolCalls) == 0 {
			return i
		}
	}
	return -1
}

// open begins a turn.
func (k *kimiPrompt) open(role int32, name string) {
	k.control(role)
	k.text(name)
	k.control(k.p.middle)
}

// turn writes a whole turn of text.
func (k *kimiPrompt) turn(role int32, name, body string) {
	k.open(role, name)
	k.text(body)
	k.control(k.p.end)
}

// thought writes reasoning, or leaves the block open for the model to write it.
func (k *kimiPrompt) thought(reasoning string, closed bool) {
	if !k.p.thinks() {
		return
	}
	k.control(k.p.think)
	k.text(reasoning)
	if closed {
		k.control(k.p.thinkEnd)
	}
}

// tools declares the tools.
func (k *kimiPrompt) tools(tools []Tool) error {
	if len(tools) == 0 {
		return nil
	}
	body, ok := "", false
	if !k.jsonTools {
		body, ok = typescriptTools(tools)
	}
	if !ok {
		list, err := sortedTools(tools)
		if err != nil {
			return err
		}
		var texts []string
		for _, t := range list {
			texts = append(texts, string(t))
		}
		body = "[" + strings.Join(texts, ",") + "]"
	}
	k.turn(k.p.system, "tool_declare", body)
	return nil
}

// sortedTools returns the tools as compact JSON with sorted keys.
func sortedTools(tools []Tool) ([]Tool, error) {
	list := make([]Tool, len(tools))
	for i, t := range tools {
		s, err := canonical(t)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		list[i] = Tool(s)
	}
	return list, nil
}

// message writes the turn of one message.
func (k *kimiPrompt) message(m Message, keepReasoning bool) error {
	name := m.Name
	or := func(def string) string {
		if name == "" {
			return def
		}
		return name
	}
	switch m.Role {
	case User:
		k.open(k.p.user, or("user"))
	case System, Developer:
		k.open(k.p.system, or("system"))
	case Assistant:
		k.open(k.p.assistant, or("assistant"))
		reasoning := m.Reasoning
		if !keepReasoning || !k.thinking {
			reasoning = ""
		}
		k.thought(reasoning, true)
	case ToolRole:
		k.open(k.p.system, or("tool"))
		k.text("## Return of " + m.ToolCallID + "\n")
		if m.Result != nil {
			k.text(resultText(m.Result))
		}
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	for i, p := range m.Content {
		if err := k.part(p); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	if m.Role == Assistant && len(m.ToolCalls) > 0 {
		if !k.p.hasCalls() {
			return fmt.Errorf("tool calls, but the vocabulary has no %s", tokSectionBegin)
		}
		k.calls(m.ToolCalls)
	}
	k.control(k.p.end)
	return nil
}

// part writes a piece of content.
func (k *kimiPrompt) part(p Part) error {
	var err error
	switch p.Kind {
	case Text:
		k.text(p.Text)
		return nil
	case Image:
		err = k.image(p)
	case Video:
		err = k.video(p)
	default:
		return fmt.Errorf("the vocabulary has no tokens for %s", p.Kind)
	}
	k.text(k.afterMedia)
	return err
}

// calls writes the calls of a message as the model wrote them.
func (k *kimiPrompt) calls(calls []ToolCall) {
	k.control(k.p.sectionBegin)
	for _, c := range calls {
		k.control(k.p.callBegin)
		k.text(c.ID)
		k.control(k.p.callArguments)
		if len(c.Arguments) == 0 {
			k.text("{}")
		}
		k.text(string(c.Arguments))
		k.control(k.p.callEnd)
	}
	k.control(k.p.sectionEnd)
}

// resultText returns the content of a tool message that is JSON: the texts of a list of text parts, else the JSON, compact.
func resultText(result []byte) string {
	v, err := decodeJSON(result)
	if err != nil {
		return string(result)
	}
	if list, ok := v.([]any); ok {
		var texts strings.Builder
		for _, e := range list {
			p, err := parsePart(e)
			if err != nil || p.Kind != Text {
				return string(encodeOrdered(nil, v))
			}
			texts.WriteString(p.Text)
		}
		return texts.String()
	}
	return string(encodeOrdered(nil, v))
}

// kimiIDs returns the messages with the ids of tool calls in the model's own form, functions.NAME:INDEX with an index that counts the
// conversation's calls from 0. Other ids, as clients and other models make them, are rewritten, in results too; the model has never
// seen such.
func kimiIDs(messages []Message) []Message {
	out := make([]Message, len(messages))
	renamed := map[string]string{}
	index := 0
	for i, m := range messages {
		if len(m.ToolCalls) > 0 {
			calls := make([]ToolCall, len(m.ToolCalls))
			for j, c := range m.ToolCalls {
				if name, ok := callName(c.ID); !ok || name != c.Name {
					id := "functions." + c.Name + ":" + strconv.Itoa(index)
					if c.ID != "" {
						renamed[c.ID] = id
					}
					c.ID = id
				}
				calls[j] = c
				index++
			}
			m.ToolCalls = calls
		}
		if id, ok := renamed[m.ToolCallID]; ok && m.Role == ToolRole {
			m.ToolCallID = id
		}
		out[i] = m
	}
	return out
}

// callName returns the name in an id of the form functions.NAME:INDEX; ok is false for another form.
func callName(id string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(id, "functions.")
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon <= 0 {
		return "", false
	}
	_, err := strconv.ParseUint(rest[colon+1:], 10, 31)
	return rest[:colon], err == nil
}
