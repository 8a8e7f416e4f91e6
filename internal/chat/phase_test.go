package chat

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

// phaseNames are short names of phases.
var phaseNames = map[Phase]string{
	PhaseOpen: "open", PhaseReasoning: "think", PhaseContent: "say", PhaseCallName: "name", PhaseCallArguments: "args", PhaseEnded: "ended",
}

// TestPhases walks through answers. The phases are those before each run of
// tokens in the same one, and each control token is among the moves.
func TestPhases(t *testing.T) {
	inkling, _ := loadModel(t, tinyDir)
	kimi := kimiVocab(t)
	for _, c := range []struct {
		name      string
		v         *token.Vocab
		prompt    string
		generated string
		want      []string
	}{
		{"Inkling", inkling, "", long.Replace("‹thinking›hm‹end›‹model›‹text›Yes‹end›‹stop›"), []string{"open", "think", "open", "say", "open", "ended"}},
		{"Inkling's call", inkling, "", long.Replace(`get_time‹call›{"name":"get_time","args":{}}‹end›‹stop›`), []string{"open", "name", "args", "open", "ended"}},
		{"Kimi", kimi, kimiThinks, kimiLong.Replace("hm‹/think›Yes‹end›"), []string{"think", "say", "ended"}},
		{
			"Kimi's calls", kimi, kimiInstant, kimiLong.Replace(`‹calls›‹call›functions.f:0‹args›{}‹/call›‹call›functions.f:1‹args›{}‹/call›‹/calls›‹end›`),
			[]string{"say", "open", "name", "args", "open", "name", "args", "open", "say", "ended"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewParserAfter(c.v, c.v.EncodeWithSpecial(c.prompt))
			got := []string{phaseNames[p.Phase()]}
			for _, id := range c.v.EncodeWithSpecial(c.generated) {
				if c.v.Control(id) {
					m := p.Moves()
					all := slices.Concat(m.Reasoning, m.Content, m.Call, m.Arguments, m.Leave, m.Next, m.End)
					if !slices.Contains(all, id) {
						t.Errorf("in phase %s: %q is no move", phaseNames[p.Phase()], c.v.DecodeWithSpecial([]int32{id}))
					}
				}
				p.Push(id)
				if s := phaseNames[p.Phase()]; s != got[len(got)-1] {
					got = append(got, s)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPlainPhase: other models say content until they stop.
func TestPlainPhase(t *testing.T) {
	v := vocabWith(t, "<|im_end|>")
	end, _ := v.ID("<|im_end|>")
	p := NewParser(v)
	if m := p.Moves(); p.Phase() != PhaseContent || !slices.Equal(m.End, []int32{end}) {
		t.Errorf("phase %d, moves %+v", p.Phase(), m)
	}
	if p.Push(end); p.Phase() != PhaseEnded {
		t.Errorf("phase %d after the end", p.Phase())
	}
	if _, ok := NewCalls(v, nil); ok || CallOpeners(v) != nil {
		t.Error("calls without a protocol")
	}
}

// TestCallNames: what may name a call, as it grows.
func TestCallNames(t *testing.T) {
	inkling, _ := loadModel(t, tinyDir)
	for _, c := range []struct {
		v             *token.Vocab
		text          string
		begins, whole bool
	}{
		{inkling, "", true, false},
		{inkling, "get_", true, false},
		{inkling, "get", true, true},
		{inkling, "get_time", true, true},
		{inkling, "get_times", false, false},
		{inkling, "functions.get", false, false},
		{kimiVocab(t), "func", true, false},
		{kimiVocab(t), "functions.get", true, false},
		{kimiVocab(t), "functions.get:", true, false},
		{kimiVocab(t), "functions.get_time:12", true, true},
		{kimiVocab(t), "functions.get:x", false, false},
		{kimiVocab(t), "functions.get:12345", false, false},
		{kimiVocab(t), "get", false, false},
	} {
		calls, ok := NewCalls(c.v, []string{"get", "get_time"})
		if !ok {
			t.Fatal("no protocol for calls")
		}
		if begins, whole := calls.Name([]byte(c.text)); begins != c.begins || whole != c.whole {
			t.Errorf("%q: begins %v, whole %v", c.text, begins, whole)
		}
	}
	calls, _ := NewCalls(inkling, []string{`say "x"`})
	want := `{"type":"object","properties":{"name":{"const":"say \"x\""},"args":{"type":"object"}},"required":["name","args"],"additionalProperties":false}`
	if got, member := calls.Body(`say "x"`); string(got) != want || member != "args" {
		t.Errorf("schema %s with %q, want %s with args", got, member, want)
	}
	calls, _ = NewCalls(kimiVocab(t), nil)
	if got, member := calls.Body("x"); string(got) != `{"type":"object"}` || member != "" {
		t.Errorf("Kimi's schema %s with %q", got, member)
	}
}

// TestCalledTool: which tool a name is of, where one is the beginning of another.
func TestCalledTool(t *testing.T) {
	inkling, _ := loadModel(t, tinyDir)
	for _, c := range []struct {
		v    *token.Vocab
		text string
		want int
	}{
		{inkling, "get", 0},
		{inkling, "get_time", 1},
		{inkling, "get_", -1},
		{inkling, "functions.get:0", -1},
		{kimiVocab(t), "functions.get:3", 0},
		{kimiVocab(t), "functions.get_time:12", 1},
		{kimiVocab(t), "functions.get_time:", -1},
		{kimiVocab(t), "get", -1},
	} {
		calls, ok := NewCalls(c.v, []string{"get", "get_time"})
		if got := calls.Tool([]byte(c.text)); !ok || got != c.want {
			t.Errorf("%q: tool %d, want %d", c.text, got, c.want)
		}
	}
}

// TestFunctions: parameters come as they were declared, null being none.
func TestFunctions(t *testing.T) {
	got, err := Functions([]Tool{
		Tool(`{"type":"function","function":{"name":"a","parameters":{"type":"object", "properties":{"z":{},"b":{"minimum":1.50}}}}}`),
		Tool(`{"name":"b","parameters":null}`), Tool(`{"name":"c"}`),
	})
	want := []Function{{"a", json.RawMessage(`{"type":"object","properties":{"z":{},"b":{"minimum":1.50}}}`)}, {Name: "b"}, {Name: "c"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestToolNames(t *testing.T) {
	names, err := ToolNames([]Tool{Tool(`{"type":"function","function":{"name":"a"}}`), Tool(`{"name":"b"}`)})
	if d := cmp.Diff([]string{"a", "b"}, names); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, bad := range []string{`[]`, `{`, `{"name":1}`, `{}`} {
		if _, err := ToolNames([]Tool{Tool(bad)}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
