package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/grammar"
)

// grammars are small ones, and what is checked of the answer.
func grammars(t *testing.T) map[string]*grammar.Grammar {
	t.Helper()
	schema, err := grammar.FromJSONSchema([]byte(`{"type":"object","properties":{"city":{"enum":["Paris","Rome"]},"n":{"type":"integer","minimum":0,"maximum":9}},"required":["city","n"],"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	re, err := grammar.FromRegex(`(yes|no), [0-9]{2}`)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*grammar.Grammar{"schema": schema, "regex": re}
}

// TestGrammar: the content is what the grammar allows, at any temperature, with
// and without thinking, in both protocols.
func TestGrammar(t *testing.T) {
	all := grammars(t)
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		e := openWith(t, Options{Model: convertOnce(t, "f32", model), Parallel: 2})
		for name, g := range all {
			for _, effort := range []string{"none", "high"} {
				for seed := range uint64(3) {
					r := question("What is the capital of France?")
					r.Chat.Effort, r.Grammar, r.MaxTokens = effort, g, 300
					r.Sampling.Temperature, r.Sampling.Seed = float32(seed), seed
					res := generate(t, e, r)
					if res.FinishReason == FinishLength && res.Text == "" {
						continue // thought for too long
					}
					if ok := holds(name, res.Text); !ok || res.FinishReason != FinishStop {
						t.Errorf("%s, %s, effort %s, seed %d: %q after %q, finished by %s", model, name, effort, seed, res.Text, res.Reasoning, res.FinishReason)
					}
				}
			}
		}
	}
}

// holds checks a text against one of the grammars, by other means.
func holds(name, text string) bool {
	if name == "regex" {
		word, number, ok := strings.Cut(text, ", ")
		return ok && (word == "yes" || word == "no") && len(number) == 2 && strings.Trim(number, "0123456789") == ""
	}
	var v struct {
		City string `json:"city"`
		N    *int   `json:"n"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(&v) == nil && !d.More() && slices.Contains([]string{"Paris", "Rome"}, v.City) && v.N != nil && *v.N >= 0 && *v.N <= 9
}

// withTools is a request with three tools.
func withTools(text string) *Request {
	r := question(text)
	for _, name := range []string{"get_weather", "get_time", "set_timer"} {
		r.Conversation.Tools = append(r.Conversation.Tools, chat.Tool(`{"type":"function","function":{"name":"`+name+
			`","description":"?","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`))
	}
	return r
}

// TestToolChoice: calls are forbidden, required, or required of one tool.
func TestToolChoice(t *testing.T) {
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		e := openWith(t, Options{Model: convertOnce(t, "f32", model)})
		r := withTools("What time is it in Dublin?")
		r.ToolChoice.Mode = ToolsRequired
		if res := generate(t, e, r); len(res.ToolCalls) == 0 || res.ToolCalls[0].Name != "get_time" || res.FinishReason != FinishToolCalls {
			t.Errorf("%s: required of what it does anyway: %q", model, e.Spell(res.IDs))
		}
		for _, c := range []struct {
			name, text string
			choice     ToolChoice
			want       string // the tool; "any": whichever, "": none
		}{
			{"none", "What time is it in Dublin?", ToolChoice{Mode: ToolsNone}, ""},
			{"required", "What is 47 + 38?", ToolChoice{Mode: ToolsRequired}, "any"},
			{"one of them", "What is 47 + 38?", ToolChoice{ToolsFunction, "get_time"}, "get_time"},
			{"another than is asked for", "What time is it in Dublin?", ToolChoice{ToolsFunction, "set_timer"}, "set_timer"},
		} {
			for _, effort := range []string{"none", "high"} {
				r := withTools(c.text)
				r.ToolChoice, r.Chat.Effort, r.ParallelCalls, r.MaxTokens = c.choice, effort, false, 200
				res := generate(t, e, r)
				switch {
				case c.want == "":
					if len(res.ToolCalls) > 0 {
						t.Errorf("%s, %s, effort %s: called %v", model, c.name, effort, res.ToolCalls)
					}
				case len(res.ToolCalls) != 1:
					t.Errorf("%s, %s, effort %s: %d calls, finished by %s: %q, %v", model, c.name, effort, len(res.ToolCalls), res.FinishReason, e.Spell(res.IDs), res.Warnings)
				case c.want != "any" && res.ToolCalls[0].Name != c.want, res.FinishReason != FinishToolCalls:
					t.Errorf("%s, %s, effort %s: called %s, want %s, finished by %s", model, c.name, effort, res.ToolCalls[0].Name, c.want, res.FinishReason)
				}
			}
		}
	}
}

// TestGrammarBesideTools: with both, the answer is a call or what the grammar
// allows; without calls the latter.
func TestGrammarBesideTools(t *testing.T) {
	e := openWith(t, Options{})
	for mode, wantCall := range map[string]bool{ToolsAuto: true, ToolsNone: false} {
		r := withTools("What time is it in Dublin?")
		r.Grammar, r.ToolChoice.Mode = grammars(t)["regex"], mode
		res := generate(t, e, r)
		if wantCall != (len(res.ToolCalls) > 0) || !wantCall && !holds("regex", res.Text) || wantCall && res.Text != "" {
			t.Errorf("%s: %q, calls %v", mode, res.Text, res.ToolCalls)
		}
	}
}

// TestParallelCalls: an answer may be ended after its first call.
func TestParallelCalls(t *testing.T) {
	e := openWith(t, Options{})
	r := withTools("What time is it in Dublin?")
	whole := generate(t, e, r)
	r.ParallelCalls = false
	one := generate(t, e, r)
	if len(whole.ToolCalls) == 0 || len(one.ToolCalls) != 1 || len(one.IDs) >= len(whole.IDs) || one.FinishReason != FinishToolCalls {
		t.Errorf("%v and %v", whole.ToolCalls, one.ToolCalls)
	}
}
