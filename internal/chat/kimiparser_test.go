package chat

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

// kimiLong lets tests write generated text in short names.
var kimiLong = strings.NewReplacer(
	"‹think›", tokThink, "‹/think›", tokThinkEnd, "‹calls›", tokSectionBegin, "‹/calls›", tokSectionEnd,
	"‹call›", tokCallBegin, "‹args›", tokCallArguments, "‹/call›", tokCallEnd, "‹end›", tokImEnd, "‹user›", tokImUser, "‹eos›", tokKimiEOS,
	"‹pad›", tokMediaPad,
)

// Prompts that a parser follows.
const (
	kimiThinks  = tokImAssistant + "assistant" + tokImMiddle + tokThink
	kimiInstant = kimiThinks + tokThinkEnd
)

func TestKimiParser(t *testing.T) {
	v := kimiVocab(t)
	call := func(name, args string) ToolCall { return ToolCall{Name: name, Arguments: json.RawMessage(args)} }
	big := `{"text":"` + strings.Repeat("ü\\n中", 3000) + `"}`
	for _, tc := range []struct {
		name, prompt, generated string
		want                    output
		stop                    string
		ids                     []string
	}{
		{"thinking, then text", kimiThinks, "hm‹/think›Yes‹end›", output{Reasoning: "hm", Content: "Yes"}, tokImEnd, nil},
		{"instant", kimiInstant, "Yes‹end›", output{Content: "Yes"}, tokImEnd, nil},
		{"other end", kimiInstant, "Yes‹eos›", output{Content: "Yes"}, tokKimiEOS, nil},
		{"must not speak for others", kimiInstant, "Yes‹user›user", output{Content: "Yes"}, tokImUser, nil},
		{"opens the thinking itself", "", "‹think›hm‹/think›Yes‹end›", output{Reasoning: "hm", Content: "Yes"}, tokImEnd, nil},
		{"no end of thinking", kimiThinks, "hm", output{Reasoning: "hm"}, "", nil},
		{"thinking of an earlier turn", kimiThinks + "a" + tokThinkEnd + "b" + tokImEnd + tokImUser + tokImEnd + kimiInstant, "Yes", output{Content: "Yes"}, "", nil},
		{"prompt of several tokens after think", kimiThinks + "so far", "hm‹/think›Yes‹end›", output{Reasoning: "hm", Content: "Yes"}, tokImEnd, nil},
		{
			"call", kimiThinks, `hm‹/think›‹calls›‹call›functions.f:0‹args›{"a":1}‹/call›‹/calls›‹end›`,
			output{Reasoning: "hm", Calls: []ToolCall{call("f", `{"a":1}`)}},
			tokImEnd,
			[]string{"functions.f:0"},
		},
		{
			"call without end of thinking", kimiThinks, `hm‹calls›‹call›functions.f:0‹args›{"a":1}‹/call›‹/calls›‹end›`,
			output{Reasoning: "hm", Calls: []ToolCall{call("f", `{"a":1}`)}},
			tokImEnd,
			[]string{"functions.f:0"},
		},
		{
			"several calls, index not from 0, text around", kimiInstant, "Wait‹calls›‹call›functions.f:3‹args›{}‹/call›\n‹call›functions.g:4‹args›{}‹/call›‹/calls›Done‹end›",
			output{Content: "WaitDone", Calls: []ToolCall{call("f", `{}`), call("g", `{}`)}},
			tokImEnd,
			[]string{"functions.f:3", "functions.g:4"},
		},
		{
			"spaces and lines in the id", kimiInstant, "‹calls›‹call› functions.f:0\n‹args›\n{\"a\" : 1}\n‹/call›‹/calls›‹end›",
			output{Calls: []ToolCall{call("f", `{"a" : 1}`)}},
			tokImEnd,
			[]string{"functions.f:0"},
		},
		{"id without prefix", kimiInstant, "‹calls›‹call›f‹args›{}‹/call›‹/calls›", output{Calls: []ToolCall{call("f", `{}`)}}, "", []string{"f"}},
		{"name with dots and colons", kimiInstant, "‹calls›‹call›functions.a.b:c:7‹args›{}‹/call›‹/calls›", output{Calls: []ToolCall{call("a.b:c", `{}`)}}, "", []string{"functions.a.b:c:7"}},
		{"no arguments", kimiInstant, "‹calls›‹call›functions.f:0‹args›‹/call›‹/calls›", output{Calls: []ToolCall{call("f", `{}`)}}, "", []string{"functions.f:0"}},
		{"no argument marker", kimiInstant, "‹calls›‹call›functions.f:0‹/call›‹/calls›", output{Calls: []ToolCall{call("f", `{}`)}}, "", []string{"functions.f:0"}},
		{"end of call missing", kimiInstant, "‹calls›‹call›functions.f:0‹args›{}‹/calls›a‹end›", output{Content: "a", Calls: []ToolCall{call("f", `{}`)}}, tokImEnd, []string{"functions.f:0"}},
		{"long arguments", kimiInstant, "‹calls›‹call›functions.f:0‹args›" + big + "‹/call›‹/calls›‹end›", output{Calls: []ToolCall{call("f", big)}}, tokImEnd, []string{"functions.f:0"}},
		{
			"cut off in a call", kimiInstant, `‹calls›‹call›functions.f:0‹args›{"a":`,
			output{Warnings: 1},
			"", nil,
		},
		{"cut off in the name of a call", kimiInstant, `‹calls›‹call›functions.f`, output{Warnings: 1}, "", nil},
		{"cut off after a call", kimiInstant, `‹calls›‹call›functions.f:0‹args›{}`, output{Calls: []ToolCall{call("f", `{}`)}}, "", nil},
		{"cut off between calls", kimiInstant, `‹calls›ab`, output{Content: "ab"}, "", nil},
		{"cut off in a character", kimiInstant, "a\xf0\x9f", output{Content: "a"}, "", nil},
		{"call without a name", kimiInstant, `‹calls›‹call›‹args›{}‹/call›‹/calls›`, output{Content: `{}`, Warnings: 1}, "", nil},
		{"tokens without a meaning here", kimiInstant, "a‹pad›b‹/think›‹/call›‹args›c", output{Content: "abc"}, "", nil},
		{"text in a section", kimiInstant, "‹calls›so ‹call›functions.f:0‹args›{}‹/call›‹/calls›", output{Content: "so ", Calls: []ToolCall{call("f", `{}`)}}, "", []string{"functions.f:0"}},
		{"half a character at the end of thinking", kimiThinks, "a\xf0\x9f‹/think›b", output{Reasoning: "a\uFFFD", Content: "b"}, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prompt, ids := v.EncodeWithSpecial(tc.prompt), v.EncodeWithSpecial(kimiLong.Replace(tc.generated))
			if tc.stop != "" {
				tc.want.Stopped = true
				tc.want.Stop, _ = v.ID(tc.stop)
			}
			if d := cmp.Diff(tc.want, parseAll(NewParserAfter(v, prompt), ids)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, parseAll(NewParserAfter(v, prompt), byteTokens(v, ids))); d != "" {
				t.Errorf("a token for each byte (-want +got):\n%s", d)
			}
			if tc.name != "call without a name" {
				if d := cmp.Diff(tc.ids, callIDs(NewParserAfter(v, prompt), append(ids, -1))); d != "" {
					t.Errorf("ids (-want +got):\n%s", d)
				}
			}
		})
	}
}

// TestKimiQuoted: markers that the model spells as text are text, in thinking, in content and in arguments.
func TestKimiQuoted(t *testing.T) {
	v := kimiVocab(t)
	id := func(s string) int32 { i, _ := v.ID(s); return i }
	for _, s := range v.Specials() {
		var ids []int32
		quoted := v.Encode("a " + s + " b")
		ids = append(append(ids, quoted...), id(tokThinkEnd))
		ids = append(append(ids, quoted...), id(tokSectionBegin), id(tokCallBegin))
		ids = append(append(ids, v.Encode("functions.f:0")...), id(tokCallArguments))
		args, err := json.Marshal("a " + s + " b")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(append(ids, v.Encode(string(args))...), id(tokCallEnd), id(tokSectionEnd), id(tokImEnd))
		want := output{
			Reasoning: "a " + s + " b", Content: "a " + s + " b", Calls: []ToolCall{{Name: "f", Arguments: args}},
			Stopped: true, Stop: id(tokImEnd),
		}
		for name, ids := range map[string][]int32{"tokens": ids, "bytes": byteTokens(v, ids)} {
			if d := cmp.Diff(want, parseAll(NewParserAfter(v, []int32{id(tokThink)}), ids)); d != "" {
				t.Errorf("%s, %s: (-want +got):\n%s", s, name, d)
			}
		}
	}
}

// TestKimiParserRandom feeds random mixtures of control tokens and text and cuts the text into tokens in two ways.
func TestKimiParserRandom(t *testing.T) {
	v := kimiVocab(t)
	rng := rand.New(rand.NewPCG(3, 4))
	bits := []string{
		"‹think›", "‹/think›", "‹calls›", "‹/calls›", "‹call›", "‹/call›", "‹args›", "‹end›", "‹pad›",
		"a", "中", "😸", "\xf0\x9f", "\xb8", "{}", "functions.f:0", " ", "\n", "‹call›", "‹args›", "‹/call›",
	}
	for range 3000 {
		var b strings.Builder
		for range rng.IntN(14) {
			b.WriteString(bits[rng.IntN(len(bits))])
		}
		checkKimiParser(t, v, v.EncodeWithSpecial(kimiLong.Replace(b.String())))
	}
}

// checkKimiParser checks that what comes out does not depend on how text is cut, is whole characters, and ends.
func checkKimiParser(t *testing.T, v *token.Vocab, ids []int32) {
	t.Helper()
	for _, prompt := range [][]int32{nil, v.EncodeWithSpecial(kimiThinks)} {
		want := parseAll(NewParserAfter(v, prompt), ids)
		if d := cmp.Diff(want, parseAll(NewParserAfter(v, prompt), byteTokens(v, ids))); d != "" {
			t.Fatalf("%q: a token for each byte (-tokens +bytes):\n%s", v.DecodeWithSpecial(ids), d)
		}
		p := NewParserAfter(v, prompt)
		for _, id := range ids {
			for _, d := range p.Push(id) {
				if d.Kind != ToolCallDelta && (d.Text == "" || !utf8.ValidString(d.Text)) {
					t.Fatalf("%q: delta %q", v.DecodeWithSpecial(ids), d.Text)
				}
				if d.Kind == ToolCallDelta && (!json.Valid(d.Call.Arguments) || d.Call.Name == "") {
					t.Fatalf("%q: call %q %q", v.DecodeWithSpecial(ids), d.Call.Name, d.Call.Arguments)
				}
			}
		}
		if p.Finish(); p.Push(5) != nil || p.Finish() != nil {
			t.Fatalf("%q: something comes after the end", v.DecodeWithSpecial(ids))
		}
	}
}

func FuzzKimiParser(f *testing.F) {
	v := kimiVocab(f)
	for _, item := range kimiItems(f)[70:] {
		f.Add(item.Reference.Text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkKimiParser(t, v, v.EncodeWithSpecial(text)) })
}
