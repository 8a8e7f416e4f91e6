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

// long is the inverse of short: it lets tests write generated text in short names.
var long = strings.NewReplacer(
	"‹user›", tokMessageUser, "‹model›", tokMessageModel, "‹system›", tokMessageSystem, "‹tool›", tokMessageTool,
	"‹text›", tokText, "‹thinking›", tokThinking, "‹xml›", tokXMLUnnamed, "‹call›", tokToolJSON, "‹calltext›", tokToolText,
	"‹audio_end›", tokAudioEnd, "‹end›", tokEndMessage, "‹stop›", tokEndSampling, "‹eot›", tokEndOfText,
)

// byteTokens writes every text token of ids as tokens of single bytes.
func byteTokens(v *token.Vocab, ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if v.Type(id) != token.Normal {
			out = append(out, id)
			continue
		}
		for _, b := range v.Piece(id) {
			out = append(out, v.Encode(string([]byte{b}))...)
		}
	}
	return out
}

func TestInklingParser(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	call := func(name, args string) ToolCall { return ToolCall{Name: name, Arguments: json.RawMessage(args)} }
	big := `{"text":"` + strings.Repeat("ü\\n中", 3000) + `"}`
	for _, tc := range []struct {
		name, generated string
		want            output // Stop is set from stop
		stop            string
	}{
		{"text", "‹text›Hello‹end›‹stop›", output{Content: "Hello"}, tokEndSampling},
		{"thinking, then text", "‹thinking›hm‹end›‹model›‹text›Yes‹end›‹stop›", output{Reasoning: "hm", Content: "Yes"}, tokEndSampling},
		{"end of message does not stop", "‹text›a‹end›‹model›‹text›b‹end›‹model›‹text›c‹end›‹stop›", output{Content: "abc"}, tokEndSampling},
		{"end of text stops", "‹text›a‹eot›", output{Content: "a"}, tokEndOfText},
		{"nothing", "‹stop›", output{}, tokEndSampling},
		{"length limit in the text", "‹text›abc", output{Content: "abc"}, ""},
		{"length limit in the head", "a b c", output{Content: "a b c"}, ""},
		{"length limit in what may be a name", "get_time", output{}, ""},
		{"thinking without an end", "‹thinking›hm‹text›Yes‹end›‹stop›", output{Reasoning: "hm", Content: "Yes"}, tokEndSampling},
		{"thinking, then the next head", "‹thinking›hm‹model›‹text›Yes‹stop›", output{Reasoning: "hm", Content: "Yes"}, tokEndSampling},
		{"several thoughts", "‹thinking›a‹end›‹model›‹thinking›b‹end›‹model›‹text›c‹stop›", output{Reasoning: "ab", Content: "c"}, tokEndSampling},
		{"content type without a head", "‹thinking›a‹end›‹text›c‹stop›", output{Reasoning: "a", Content: "c"}, tokEndSampling},
		{"plain text between messages", "‹thinking›a‹end›b‹end›‹stop›", output{Reasoning: "a", Content: "b"}, tokEndSampling},
		{"head without a body", "abc‹end›‹stop›", output{Content: "abc"}, tokEndSampling},
		{"head, then the end of the turn", "abc‹stop›", output{Content: "abc"}, tokEndSampling},
		{"author of a text", "me‹text›abc‹end›‹stop›", output{Content: "abc"}, tokEndSampling},
		{"other content types are content", "‹xml›a‹end›‹model›‹calltext›b‹stop›", output{Content: "ab"}, tokEndSampling},
		{"speaks for the user", "‹text›a‹end›‹user›‹text›b", output{Content: "a"}, tokMessageUser},
		{"speaks for a tool at once", "a‹tool›f‹text›b", output{Content: "a"}, tokMessageTool},
		{"tokens after the end", "‹text›a‹stop›b‹model›‹text›c", output{Content: "a"}, tokEndSampling},
		{"control tokens without meaning", "‹text›a‹audio_end›b‹stop›", output{Content: "ab"}, tokEndSampling},
		{
			"call", `f‹call›{"name":"f","args":{"x": 1.0, "y":"<"}}‹end›‹stop›`,
			output{Calls: []ToolCall{call("f", `{"x": 1.0, "y":"<"}`)}},
			tokEndSampling,
		},
		{
			"call after thinking and text", `‹thinking›a‹end›‹model›‹text›b‹end›‹model›f‹call›{"name":"f","args":{}}‹end›‹stop›`,
			output{Reasoning: "a", Content: "b", Calls: []ToolCall{call("f", `{}`)}},
			tokEndSampling,
		},
		{
			"two calls", `f‹call›{"name":"f","args":{}}‹end›‹model›g‹call›{"args":[1],"name":"g"}‹end›‹stop›`,
			output{Calls: []ToolCall{call("f", `{}`), call("g", `[1]`)}},
			tokEndSampling,
		},
		{"two calls without an end between", `f‹call›{"name":"f"}‹call›{"name":"g"}‹stop›`, output{Calls: []ToolCall{call("f", `{}`), call("g", `{}`)}}, tokEndSampling},
		{"the JSON name wins", `f‹call›{"name":"g","args":{}}‹stop›`, output{Calls: []ToolCall{call("g", `{}`)}}, tokEndSampling},
		{"name from the author", `f‹call›{"args":{}}‹stop›`, output{Calls: []ToolCall{call("f", `{}`)}}, tokEndSampling},
		{"no arguments, spaces", "f‹call› {\"name\": \"f\"}\n‹stop›", output{Calls: []ToolCall{call("f", `{}`)}}, tokEndSampling},
		{"last duplicate", `f‹call›{"name":"f","args":{"a":1},"args":{"a":2,"a":3}}‹stop›`, output{Calls: []ToolCall{call("f", `{"a":2,"a":3}`)}}, tokEndSampling},
		{"long arguments", `f‹call›{"name":"f","args":` + big + `}‹end›‹stop›`, output{Calls: []ToolCall{call("f", big)}}, tokEndSampling},
		{"call that is not JSON", `f‹call›{"name":"f",‹end›‹stop›`, output{Content: `{"name":"f",`, Warnings: 1}, tokEndSampling},
		{"call with a tail", `f‹call›{"name":"f"} x‹end›‹stop›`, output{Content: `{"name":"f"} x`, Warnings: 1}, tokEndSampling},
		{"call that is no object", `f‹call›[1]‹stop›`, output{Content: `[1]`, Warnings: 1}, tokEndSampling},
		{"call without any name", `‹call›{"args":{}}‹stop›`, output{Content: `{"args":{}}`, Warnings: 1}, tokEndSampling},
		{"call with a number for a name", `f‹call›{"name":1}‹stop›`, output{Content: `{"name":1}`, Warnings: 1}, tokEndSampling},
		{"call cut by the length limit", `f‹call›{"name":"f","args":{"x"`, output{Warnings: 1}, ""},
		{"length limit after a call", `f‹call›{"name":"f","args":{}}`, output{Calls: []ToolCall{call("f", `{}`)}}, ""},
		{"characters of several tokens", "‹thinking›😸中‹end›‹model›‹text›中😸é‹end›‹stop›", output{Reasoning: "😸中", Content: "中😸é"}, tokEndSampling},
		{"length limit in a character", "‹text›a\xf0\x9f\x98", output{Content: "a"}, ""},
		{"half a character at the end", "‹text›a\xf0\x9f\x98‹stop›", output{Content: "a\uFFFD"}, tokEndSampling},
		{"half a character in each block", "‹thinking›a\xe4\xb8‹end›‹model›‹text›\xad‹stop›", output{Reasoning: "a\uFFFD", Content: "\uFFFD"}, tokEndSampling},
		{"broken text in a call", "f\xff‹call›{\"args\":{\"x\":\"\xff\"}}‹stop›", output{Calls: []ToolCall{call("f\uFFFD", "{\"x\":\"\uFFFD\"}")}}, tokEndSampling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ids := v.EncodeWithSpecial(long.Replace(tc.generated))
			if tc.stop != "" {
				tc.want.Stop, _ = v.ID(tc.stop)
				tc.want.Stopped = true
			}
			if d := cmp.Diff(tc.want, parseAll(NewParser(v), ids)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, parseAll(NewParser(v), byteTokens(v, ids))); d != "" {
				t.Errorf("a token for each byte (-want +got):\n%s", d)
			}
		})
	}
}

// TestInklingParserAfter goes on where a prompt that was written out by hand ends.
func TestInklingParserAfter(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	for _, tc := range []struct {
		name, prompt, generated string
		want                    output
		first                   string // what the first text token gives
	}{
		{"plain text", "The sky", " is blue", output{Content: " is blue"}, " is"},
		{"the start of a turn", tokMessageUser + tokText + "Hi" + tokEndMessage + tokMessageModel, tokText + "Hello", output{Content: "Hello"}, ""},
		{"in the text of a turn", tokMessageModel + tokText + "Hel", "lo" + tokEndMessage, output{Content: "lo"}, "lo"},
		{"in a thought", tokMessageModel + tokThinking + "I", " see" + tokEndMessage + tokMessageModel + tokText + "Yes", output{Reasoning: " see", Content: "Yes"}, " see"},
		{"after a thought", tokMessageModel + tokThinking + "I see" + tokEndMessage, tokMessageModel + tokText + "Yes", output{Content: "Yes"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prompt, ids := v.EncodeWithSpecial(tc.prompt), v.EncodeWithSpecial(tc.generated)
			if d := cmp.Diff(tc.want, parseAll(NewParserAfter(v, prompt), ids)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			first := ""
			for _, d := range NewParserAfter(v, prompt).Push(ids[0]) {
				first += d.Text
			}
			if !strings.HasPrefix(tc.first, first) || (first == "") != (tc.first == "") {
				t.Errorf("the first token gives %q at once, want %q", first, tc.first)
			}
		})
	}
}

// TestParserQuotedTokens feeds text that spells control tokens without being them.
func TestParserQuotedTokens(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	for _, s := range v.Specials() {
		ids := append(v.EncodeWithSpecial(tokText), v.Encode("a"+s+"b")...)
		if got := parseAll(NewParser(v), ids); got.Content != "a"+s+"b" || got.Stopped {
			t.Errorf("text %q became %+v", "a"+s+"b", got)
		}
	}
}

// TestParserDeltas checks what is held back: heads until their kind is known, calls until they are whole, characters until they
// are complete; and that everything else comes at once.
func TestParserDeltas(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	p := NewParser(v)
	push := func(s string) string {
		got := ""
		for _, id := range byteTokens(v, v.EncodeWithSpecial(long.Replace(s))) {
			for _, d := range p.Push(id) {
				got += []string{"R:", "C:", "T:"}[d.Kind] + d.Text
				if d.Call != nil {
					got += d.Call.Name + string(d.Call.Arguments)
				}
				got += "|"
			}
		}
		return got
	}
	for _, step := range []struct{ in, want string }{
		{"author", ""},
		{"‹thinking›", ""},
		{"ab", "R:a|R:b|"},
		{"\xe4\xb8", ""},
		{"\xad", "R:中|"},
		{"‹end›‹model›f", ""},
		{`‹call›{"name":"f","args":{"a":1}`, ""},
		{"}", ""},
		{"‹end›", `T:f{"a":1}|`},
		{"‹model›‹text›x", "C:x|"},
		{"\xf0", ""},
		{"‹end›", "C:\uFFFD|"},
		{"‹stop›", ""},
		{"x", ""},
	} {
		if got := push(step.in); got != step.want {
			t.Errorf("after %q: %q, want %q", step.in, got, step.want)
		}
	}
}

func TestCallIDs(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	seen := map[string]bool{}
	for range 50 {
		p := NewParser(v)
		var deltas []Delta
		for _, id := range v.EncodeWithSpecial(long.Replace(`f‹call›{"name":"f"}‹end›‹model›f‹call›{"name":"f"}‹end›‹stop›`)) {
			deltas = append(deltas, p.Push(id)...)
		}
		for _, d := range deltas {
			if !strings.HasPrefix(d.Call.ID, "call_") || seen[d.Call.ID] {
				t.Fatalf("call id %q is not new", d.Call.ID)
			}
			seen[d.Call.ID] = true
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d calls, want 100", len(seen))
	}
}

func TestPlainParser(t *testing.T) {
	v := vocabWith(t, "<|im_end|>", "<|im_user|>")
	ids := v.EncodeWithSpecial("a😸<|im_user|>b\xf0<|im_end|>c")
	end, _ := v.ID("<|im_end|>")
	want := output{Content: "a😸b\uFFFD", Stop: end, Stopped: true}
	for name, ids := range map[string][]int32{"tokens": ids, "bytes": byteTokens(v, ids)} {
		if d := cmp.Diff(want, parseAll(NewParser(v), ids)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got := parseAll(NewParser(vocabWith(t)), v.Encode("abc")); got.Content != "abc" || got.Stopped {
		t.Errorf("without stop tokens: %+v", got)
	}
}

// TestParserRandom feeds random mixtures of control tokens and text and cuts the text into tokens in two ways.
func TestParserRandom(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	rng := rand.New(rand.NewPCG(3, 4))
	bits := []string{
		"‹user›", "‹model›", "‹tool›", "‹text›", "‹thinking›", "‹call›", "‹end›", "‹stop›", "‹audio_end›",
		"a", "中", "😸", "\xf0\x9f", "\xb8", "{", `"name":"f"`, `{"name":"f","args":{}}`, "}", " ", "‹model›", "‹text›", "‹call›",
	}
	for range 3000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(bits[rng.IntN(len(bits))])
		}
		checkParser(t, v, v.EncodeWithSpecial(long.Replace(b.String())))
	}
}

func checkParser(t *testing.T, v *token.Vocab, ids []int32) {
	t.Helper()
	want := parseAll(NewParser(v), ids)
	if d := cmp.Diff(want, parseAll(NewParser(v), byteTokens(v, ids))); d != "" {
		t.Fatalf("%q: a token for each byte (-tokens +bytes):\n%s", v.DecodeWithSpecial(ids), d)
	}
	p := NewParser(v)
	for _, id := range ids {
		for _, d := range p.Push(id) {
			if d.Kind != ToolCallDelta && (d.Text == "" || !utf8.ValidString(d.Text)) {
				t.Fatalf("%q: delta %q", v.DecodeWithSpecial(ids), d.Text)
			}
			if d.Kind == ToolCallDelta && !json.Valid(d.Call.Arguments) {
				t.Fatalf("%q: arguments %q", v.DecodeWithSpecial(ids), d.Call.Arguments)
			}
		}
	}
	if p.Finish(); p.Push(5) != nil || p.Finish() != nil {
		t.Fatalf("%q: something comes after the end", v.DecodeWithSpecial(ids))
	}
}

func FuzzParser(f *testing.F) {
	v, _ := loadModel(f, tinyDir)
	for _, item := range devItems(f)[:20] {
		f.Add(item.Reference.Text)
	}
	f.Add(long.Replace(`f‹call›{"name":"f","args":{"a":"\xff"}}‹end›`))
	f.Fuzz(func(t *testing.T, text string) { checkParser(t, v, v.EncodeWithSpecial(text)) })
}

// TestForeignCalls: a call that a model spells as another one's protocol has it, over
// and over, is text and calls nothing.
func TestForeignCalls(t *testing.T) {
	inkling, _ := loadModel(t, tinyDir)
	for name, v := range map[string]*token.Vocab{"Inkling": inkling, "Kimi": kimiVocab(t)} {
		for _, text := range []string{
			`<tool_call>{"name": "get_time", "arguments": {"city": "Rome"}}</tool_call>`,
			`<function_calls><invoke name="get_time"><parameter name="city">Rome</parameter></invoke></function_calls>`,
			`[TOOL_CALLS][{"name":"get_time","arguments":{}}]`,
			`functions.get_time:0{"city":"Rome"}`,
		} {
			text = strings.Repeat(text, 3)
			p, content := NewParser(v), ""
			ids := v.Encode(text)
			if name == "Inkling" {
				ids = append(v.EncodeWithSpecial("<|content_text|>"), ids...)
			}
			for _, id := range ids {
				for _, d := range p.Push(id) {
					if d.Kind != ContentDelta {
						t.Errorf("%s: %+v of %s", name, d, text)
					}
					content += d.Text
				}
			}
			for _, d := range p.Finish() {
				content += d.Text
			}
			if content != text {
				t.Errorf("%s: content %q, want %q", name, content, text)
			}
		}
	}
}
