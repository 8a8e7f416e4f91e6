package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
)

// tool declares a function with parameters, if they are not empty.
func tool(name, parameters string) chat.Tool {
	if parameters != "" {
		parameters = `,"parameters":` + parameters
	}
	return chat.Tool(`{"type":"function","function":{"name":"` + name + `","description":"?"` + parameters + `}}`)
}

// TestCallArguments: the arguments of a call that has to be made are what its tool
// declares, at any temperature, in both protocols.
func TestCallArguments(t *testing.T) {
	const parameters = `{"$defs":{"unit":{"enum":["s","min"]}},"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9},"unit":{"$ref":"#/$defs/unit"}},"required":["n","unit"],"additionalProperties":false}`
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		e := openWith(t, Options{Model: convertOnce(t, "f32", model)})
		for _, choice := range []ToolChoice{{Mode: ToolsRequired}, {ToolsFunction, "set_timer"}} {
			for seed := range uint64(3) {
				r := question("What time is it in Dublin?")
				r.Conversation.Tools = []chat.Tool{tool("set_timer", parameters)}
				r.ToolChoice, r.Chat.Effort, r.ParallelCalls, r.MaxTokens = choice, "none", false, 200
				r.Sampling.Temperature, r.Sampling.Seed = float32(seed), seed
				res := generate(t, e, r)
				if len(res.ToolCalls) != 1 || res.FinishReason != FinishToolCalls {
					t.Errorf("%s, %s, seed %d: %d calls, finished by %s: %q", model, choice.Mode, seed, len(res.ToolCalls), res.FinishReason, e.Spell(res.IDs))
					continue
				}
				var args struct {
					N    int
					Unit string
				}
				d := json.NewDecoder(strings.NewReader(string(res.ToolCalls[0].Arguments)))
				d.DisallowUnknownFields()
				if err := d.Decode(&args); err != nil || args.N < 1 || args.N > 9 || args.Unit != "s" && args.Unit != "min" {
					t.Errorf("%s, %s, seed %d: arguments %s, error %v", model, choice.Mode, seed, res.ToolCalls[0].Arguments, err)
				}
			}
		}
	}
}

// TestBadParameters: what is no schema is refused whatever the choice, what can not
// be kept where it has to be.
func TestBadParameters(t *testing.T) {
	e := openWith(t, Options{})
	bad := `{"type":"object","properties":{"n":{"type":"thing"}}}`
	foreign := `{"type":"object","properties":{"n":{"uniqueItems":true}}}`
	named := ToolChoice{ToolsFunction, "b"}
	for _, tt := range []struct {
		name, a, b string
		choice     ToolChoice
		param      string // empty: it is answered
	}{
		{"no schema", ``, bad, ToolChoice{}, "tools[1].function.parameters"},
		{"no schema, no calls", bad, ``, ToolChoice{Mode: ToolsNone}, "tools[0].function.parameters"},
		{"no object", `{"type":"string"}`, ``, ToolChoice{Mode: ToolsAuto}, "tools[0].function.parameters"},
		{"not kept, needs not be", foreign, ``, ToolChoice{Mode: ToolsAuto}, ""},
		{"not kept", foreign, ``, ToolChoice{Mode: ToolsRequired}, "tools[0].function.parameters"},
		{"not kept of the one that is called", ``, foreign, named, "tools[1].function.parameters"},
		{"not kept of another one", foreign, `{}`, named, ""},
		{"null", `null`, `{"type":"object"}`, ToolChoice{Mode: ToolsRequired}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := question("Hi")
			r.Conversation.Tools, r.ToolChoice, r.MaxTokens = []chat.Tool{tool("a", tt.a), tool("b", tt.b)}, tt.choice, 3
			_, err := e.Generate(t.Context(), r)
			var bad *RequestError
			if tt.param == "" && err != nil || tt.param != "" && (!errors.As(err, &bad) || bad.Param != tt.param) {
				t.Errorf("error %v, want of %q", err, tt.param)
			}
		})
	}
}

// TestCallGrammarsBounded: grammars of calls are compiled once, and what is kept of
// them has a bound.
func TestCallGrammarsBounded(t *testing.T) {
	var c callGrammars
	get := func(i int, parameters string) {
		t.Helper()
		if _, err := c.of(nil, chat.Function{Name: "f", Parameters: json.RawMessage(fmt.Sprintf(parameters, i))}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * keptCalls {
		get(i, `{"properties":{"p%d":{}}}`)
	}
	first := c.kept[0].grammar
	if len(c.kept) != keptCalls {
		t.Errorf("%d are kept, want %d", len(c.kept), keptCalls)
	}
	get(keptCalls, `{"properties":{"p%d":{}}}`) // the one that would go next
	if last := c.kept[len(c.kept)-1].grammar; last != first {
		t.Error("compiled again")
	}
	for i := range 33 { // of 8000 states each
		get(i, `{"properties":{"p%d":{"type":"string","pattern":"^(a|b)*a(a|b){12}$"}}}`)
	}
	sum := 0
	for _, k := range c.kept {
		sum += k.grammar.States()
	}
	if sum != c.states || sum > keptCallStates || len(c.kept) != 31 {
		t.Errorf("%d states in %d grammars, counted %d, want at most %d", sum, len(c.kept), c.states, keptCallStates)
	}
}

// TestToolsBounded: the tools of a request are bounded in number and together.
func TestToolsBounded(t *testing.T) {
	e := openWith(t, Options{})
	for _, tt := range []struct {
		name       string
		n          int
		parameters string // with the number of the tool
		want       string // empty: it fits
	}{
		{"as many as may be", maxTools, `{"properties":{"p%d":{}}}`, ""},
		{"one more", maxTools + 1, `{"properties":{"p%d":{}}}`, "257 tools, at most 256 are allowed"},
		{"large together", 33, `{"properties":{"p%d":{"type":"string","pattern":"^(a|b)*a(a|b){12}$"}}}`, "too large together"},
		{"too large each", 5, `{"properties":{"p%d":{"type":"string","pattern":"^(a|b)*a(a|b){20}$"}}}`, "too large together"},
		{"one too large", 1, `{"properties":{"p%d":{"type":"string","pattern":"^(a|b)*a(a|b){20}$"}}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []chat.Function
			for i := range tt.n {
				all = append(all, chat.Function{Name: fmt.Sprint("f", i), Parameters: json.RawMessage(fmt.Sprintf(tt.parameters, i))})
			}
			err := e.validateParameters(&Request{}, all)
			var bad *RequestError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &bad) || bad.Param != "tools" || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
