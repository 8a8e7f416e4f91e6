package chat

import (
	"encoding/json"
	"strings"

	"github.com/inkling-go/inkling/internal/token"
)

// kimiProbe is a conversation that shows how a template writes something.
type kimiProbe struct {
	c Conversation
	o Options
}

// kimiProbes returns conversations that together hold everything that templates of the family write differently, as far as the
// vocabulary has tokens for it.
func kimiProbes(p *kimi) []kimiProbe {
	text := func(role, s string) Message { return Message{Role: role, Content: []Part{{Text: s}}} }
	thinking := func(s, reasoning string) Message {
		m := text(Assistant, s)
		m.Reasoning = reasoning
		return m
	}
	on, off := Options{AddGenerationPrompt: true}, Options{AddGenerationPrompt: true, Effort: "none"}
	probes := []kimiProbe{
		{Conversation{Messages: []Message{text(System, "S"), text(User, "U")}}, on},
		{Conversation{Messages: []Message{text(User, "U"), thinking("A", "R"), text(User, "V"), thinking("B", "Q")}}, off},
		{Conversation{Messages: []Message{text(User, "U"), thinking("A", "R"), text(User, "V")}}, Options{}},
	}
	if p.hasMedia() {
		m := Message{Role: User, List: true, Content: []Part{
			{Text: "a"}, {Kind: Image}, {Text: "b"}, {Kind: Video, Blocks: []Block{{Label: "1"}, {Label: "2"}}}, {Text: "c"},
		}}
		probes = append(probes, kimiProbe{Conversation{Messages: []Message{m}}, on})
	}
	if p.hasCalls() {
		call := Message{Role: Assistant, Reasoning: "R", ToolCalls: []ToolCall{
			{ID: "functions.f:0", Name: "f", Arguments: json.RawMessage(`{"a":1}`)},
			{ID: "functions.g:1", Name: "g", Arguments: json.RawMessage(`{}`)},
		}}
		result := Message{Role: ToolRole, Name: "f", ToolCallID: "functions.f:0", Content: []Part{{Text: "1"}}}
		other := Message{Role: ToolRole, ToolCallID: "functions.g:1", Content: []Part{{Text: "2"}}}
		tools := []Tool{Tool(`{"type":"function","function":{"name":"f","description":"D","parameters":{"type":"object",` +
			`"properties":{"a":{"type":"integer"}}}}}`)}
		probes = append(probes,
			kimiProbe{Conversation{Messages: []Message{text(User, "U"), call, result, other}, Tools: tools}, on},
			kimiProbe{Conversation{Messages: []Message{text(User, "U"), call, result, other, thinking("A", "Q")}}, on})
	}
	return probes
}

// kimiStyles are the styles of the family, the most common first.
func kimiStyles() []kimiStyle {
	var styles []kimiStyle
	for _, json := range []bool{false, true} {
		for _, after := range []string{"\n", ""} {
			for _, system := range []string{kimiSystem, ""} {
				styles = append(styles, kimiStyle{system, after, json})
			}
		}
	}
	return styles
}

// recogniseKimi reports whether a template writes Kimi's protocol, and in which style: it must render a few conversations to exactly
// what the native renderer makes of them. A template that our Jinja engine cannot run (j is nil, or rendering fails) is taken by its
// text alone.
func recogniseKimi(v *token.Vocab, p *kimi, template string, j *jinjaRenderer) (style kimiStyle, native bool) {
	for _, s := range []string{tokImUser, tokImAssistant, tokImSystem, tokImMiddle, tokImEnd} {
		if !strings.Contains(template, s) {
			return kimiStyle{}, false
		}
	}
	if p.thinks() && !strings.Contains(template, tokThink) {
		return kimiStyle{}, false
	}
	if j == nil {
		return defaultStyle, true
	}
	probes := kimiProbes(p)
	want := make([]string, len(probes))
	for i, probe := range probes {
		var err error
		if want[i], err = renderedText(v, j, probe.c, probe.o); err != nil {
			return defaultStyle, true
		}
	}
	for _, style := range kimiStyles() {
		if kimiWrites(v, &kimiRenderer{p: p, style: style}, probes, want) {
			return style, true
		}
	}
	return kimiStyle{}, false
}

// kimiWrites reports whether a renderer makes these texts of the probes.
func kimiWrites(v *token.Vocab, r *kimiRenderer, probes []kimiProbe, want []string) bool {
	for i, probe := range probes {
		got, err := renderedText(v, r, probe.c, probe.o)
		if err != nil || got != want[i] {
			return false
		}
	}
	return true
}
