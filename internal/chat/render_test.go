package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

// vocabWith is the tiny model's vocabulary with other special tokens.
func vocabWith(t testing.TB, specials ...string) *token.Vocab {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tinyDir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	added := []map[string]any{}
	for i, s := range specials {
		added = append(added, map[string]any{"id": 1208 + i, "content": s, "special": true})
	}
	if file["added_tokens"], err = json.Marshal(added); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	v, err := token.ParseTokenizerJSON(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// short writes prompts with short names for the tokens, so that they can be read.
var short = strings.NewReplacer(
	tokMessageUser, "‹user›", tokMessageModel, "‹model›", tokMessageSystem, "‹system›", tokMessageTool, "‹tool›",
	tokText, "‹text›", tokThinking, "‹thinking›", tokXMLUnnamed, "‹xml›", tokToolJSON, "‹call›",
	tokImage, "‹image›", tokAudio, "‹audio›", tokAudioEnd, "‹audio_end›", tokImageSlot, "‹I›", tokAudioSlot, "‹A›",
	tokEndMessage, "‹end›\n", tokEndSampling, "‹stop›\n",
)

const effort09 = "‹system›‹text›Thinking effort level: 0.9‹end›\n"

// TestInklingPrompts checks prompts written out by hand from the protocol's description.
func TestInklingPrompts(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	r, _, err := NewRenderer(v, "")
	if err != nil {
		t.Fatal(err)
	}
	no, yes := false, true
	thinking := `[
		{"role":"user","content":"a"},{"role":"assistant","reasoning_content":"r1","content":"b"},
		{"role":"user","content":"c"},{"role":"assistant","reasoning_content":"r2","tool_calls":[{"id":"1","function":{"name":"f"}}]},
		{"role":"tool","tool_call_id":"1","content":"d"}]`
	for _, tc := range []struct {
		name     string
		messages string
		o        Options
		want     string
	}{
		{"nothing", `[]`, Options{}, effort09},
		{"generation prompt", `[]`, Options{AddGenerationPrompt: true}, effort09 + "‹model›"},
		{
			"effort before the first message that is no system message",
			`[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"user","content":"u"},{"role":"system","content":"late"}]`,
			Options{AddGenerationPrompt: true},
			"‹system›‹text›s‹end›\n‹system›‹text›d‹end›\n" + effort09 + "‹user›‹text›u‹end›\n‹system›‹text›late‹end›\n‹model›",
		},
		{"effort after system messages alone", `[{"role":"system","content":"s"}]`, Options{}, "‹system›‹text›s‹end›\n" + effort09},
		{
			"one block for each part, none for an empty string",
			`[{"role":"user","content":""},{"role":"user","content":["bare",{"text":"untyped"},{"type":"input_text","text":""},
			  {"type":"image_url","image_url":{"url":"x"}},{"type":"audio","audio":"y"}]}]`,
			Options{},
			effort09 + "‹user›‹text›bare‹end›\n‹user›‹text›untyped‹end›\n‹user›‹text›‹end›\n" +
				"‹user›‹image›‹I›‹end›\n‹user›‹audio›‹A›‹audio_end›‹end›\n",
		},
		{
			"assistant", thinking,
			Options{},
			effort09 + "‹user›‹text›a‹end›\n‹model›‹thinking›r1‹end›\n‹model›‹text›b‹end›\n‹stop›\n‹user›‹text›c‹end›\n" +
				"‹model›‹thinking›r2‹end›\n‹model›f‹call›{\"name\":\"f\",\"args\":{}}‹end›\n‹stop›\n‹tool›f‹text›d‹end›\n",
		},
		{
			"thinking of earlier turns dropped", thinking,
			Options{PreserveThinking: &no},
			effort09 + "‹user›‹text›a‹end›\n‹model›‹text›b‹end›\n‹stop›\n‹user›‹text›c‹end›\n" +
				"‹model›‹thinking›r2‹end›\n‹model›f‹call›{\"name\":\"f\",\"args\":{}}‹end›\n‹stop›\n‹tool›f‹text›d‹end›\n",
		},
		{
			"thinking kept on request",
			`[{"role":"assistant","reasoning_content":"r"},{"role":"user","content":"u"}]`,
			Options{PreserveThinking: &yes},
			effort09 + "‹model›‹thinking›r‹end›\n‹stop›\n‹user›‹text›u‹end›\n",
		},
		{"an assistant that said nothing", `[{"role":"assistant","content":null},{"role":"assistant","content":""}]`, Options{}, effort09},
		{
			"calls",
			`[{"role":"assistant","content":"text","tool_calls":[
				{"id":"1","type":"function","function":{"name":"g\"é","arguments":{"b":[1.0,{"z":1,"y":"<&>"}],"a":null}}},
				{"id":"2","function":{"name":"h","arguments":" {\"k\":2,\"k\":1e6} "}},
				{"id":"3","function":{"name":"i","arguments":""}},
				{"id":"4","function":{"name":"j","arguments":"[1]"}}]}]`,
			Options{},
			effort09 + "‹model›‹text›text‹end›\n" +
				"‹model›g\"é‹call›{\"name\":\"g\\\"é\",\"args\":{\"a\":null,\"b\":[1.0,{\"y\":\"<&>\",\"z\":1}]}}‹end›\n" +
				"‹model›h‹call›{\"name\":\"h\",\"args\":{\"k\":1000000.0}}‹end›\n" +
				"‹model›i‹call›{\"name\":\"i\",\"args\":{}}‹end›\n‹model›j‹call›{\"name\":\"j\",\"args\":{}}‹end›\n‹stop›\n",
		},
		{
			"tool results: own name, name of the call, no name, JSON, nothing",
			`[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]},
			  {"role":"tool","name":"own","tool_call_id":"1","content":"a"},{"role":"tool","tool_call_id":"1","content":"b"},
			  {"role":"tool","tool_call_id":"9","content":"c"},{"role":"tool","content":{"b":1,"a":[2.50,"é"]}},
			  {"role":"tool","content":[{"type":"text","text":"t"}]},{"role":"tool","content":null},{"role":"tool","content":7}]`,
			Options{},
			effort09 + "‹model›f‹call›{\"name\":\"f\",\"args\":{}}‹end›\n‹stop›\n" +
				"‹tool›own‹text›a‹end›\n‹tool›f‹text›b‹end›\n‹tool›‹text›c‹end›\n‹tool›‹text›{\"a\":[2.5,\"é\"],\"b\":1}‹end›\n" +
				"‹tool›‹text›[{\"text\":\"t\",\"type\":\"text\"}]‹end›\n‹tool›‹text›‹end›\n‹tool›‹text›7‹end›\n",
		},
		{
			"tools",
			`{"messages":[{"role":"system","content":"s"}],"tools":[
				{"type":"function","function":{"parameters":{"type":"object","properties":{"b":{},"a":{"maximum":1.0}}},"name":"f","strict":true,"description":"ä<b>\n"}},
				{"function":{"name":"g","description":null}},
				{"name":"bare","type":"custom"}]}`,
			Options{},
			`‹system›tool_declare‹xml›[{"description":"ä<b>\n","name":"f","parameters":{"properties":{"a":{"maximum":1.0},"b":{}},"type":"object"},"type":"function"},` +
				`{"description":"","name":"g","parameters":{},"type":"function"},` +
				`{"description":"","name":"bare","parameters":{},"type":"custom"}]‹end›` + "\n‹system›‹text›s‹end›\n" + effort09,
		},
		{
			"tools of the options replace those of the conversation",
			`{"messages":[],"tools":[{"name":"f"}]}`,
			Options{Tools: []Tool{Tool(`{"name":"g"}`)}},
			`‹system›tool_declare‹xml›[{"description":"","name":"g","parameters":{},"type":"function"}]‹end›` + "\n" + effort09,
		},
		{"no tools on request", `{"messages":[],"tools":[{"name":"f"}]}`, Options{Tools: []Tool{}}, effort09},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := ParseMessages([]byte(tc.messages))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				segs, media, err := r.Render(c, tc.o)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, short.Replace(Spell(v, segs, media))); d != "" {
					t.Fatalf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

// TestMediaOrder has three turns with their own media: slots are bound by their order in the whole conversation.
func TestMediaOrder(t *testing.T) {
	c, err := ParseMessages([]byte(`[
		{"role":"user","content":[{"type":"image","image":"1.png"},{"type":"text","text":"a"}]},{"role":"assistant","content":"b"},
		{"role":"user","content":[{"type":"audio","audio":"2.wav"},{"type":"text","text":"c"}]},{"role":"assistant","content":"d"},
		{"role":"user","content":[{"type":"text","text":"e"},{"type":"image","image":"3.png"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	v, template := loadModel(t, tinyDir)
	fixture, fixtureTemplate := loadModel(t, filepath.Join(randomDir, "original"))
	for name, tc := range map[string]struct {
		v        *token.Vocab
		template string
	}{"native": {v, template}, "jinja": {fixture, fixtureTemplate}} {
		r, _, err := NewRenderer(tc.v, tc.template)
		if err != nil {
			t.Fatal(err)
		}
		segs, media, err := r.Render(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := []Part{{Kind: Image, Source: "1.png"}, {Kind: Audio, Source: "2.wav"}, {Kind: Image, Source: "3.png"}}
		if d := cmp.Diff(want, media); d != "" {
			t.Errorf("%s: media (-want +got):\n%s", name, d)
		}
		_, slots, err := tc.v.EncodeSegments(segs, func(m int) (int32, int) {
			id, _ := SlotID(tc.v, media[m].Kind)
			return id, 10 + m
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range slots {
			if s.Media != i || s.N != 10+i || i > 0 && s.Pos <= slots[i-1].Pos {
				t.Errorf("%s: slot %d is %+v", name, i, s)
			}
		}
		if len(slots) != 3 {
			t.Errorf("%s: %d slots, want 3", name, len(slots))
		}
	}
}

func TestInklingRenderErrors(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	all, _, err := NewRenderer(v, "")
	if err != nil {
		t.Fatal(err)
	}
	few, _, err := NewRenderer(vocabWith(t, tokMessageUser, tokMessageModel, tokMessageSystem, tokMessageTool, tokText, tokThinking,
		tokToolJSON, tokEndMessage, tokEndSampling), "")
	if err != nil {
		t.Fatal(err)
	}
	user := func(parts ...Part) Conversation {
		return Conversation{Messages: []Message{{Role: User, Content: parts}}}
	}
	for _, tc := range []struct {
		name string
		r    Renderer
		c    Conversation
		o    Options
		want string
	}{
		{"effort", all, user(), Options{Effort: "1.0"}, `reasoning effort "1.0"`},
		{"role", all, Conversation{Messages: []Message{{Role: "critic"}}}, Options{}, `message 0: unknown role "critic"`},
		{"video", all, user(Part{}, Part{Kind: Video}), Options{}, "message 0: part 1: video"},
		{"tool is not JSON", all, Conversation{Tools: []Tool{Tool(`{`)}}, Options{}, "tool 0: json"},
		{"tool is no object", all, Conversation{Tools: []Tool{Tool(`7`)}}, Options{}, "tool 0: is a number"},
		{"tool without name", all, Conversation{Tools: []Tool{Tool(`{"function":{}}`)}}, Options{}, "tool 0: has no name"},
		{"tool name", all, Conversation{Tools: []Tool{Tool(`{"name":7}`)}}, Options{}, "tool 0: name is a number"},
		{"number", all, Conversation{Tools: []Tool{Tool(`{"name":"f","parameters":{"x":1e999}}`)}}, Options{}, "1e999 is out of range"},
		{
			"arguments", all,
			Conversation{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{Name: "f", Arguments: []byte(`{`)}}}}},
			Options{},
			"message 0: tool call 0: arguments",
		},
		{
			"image in a tool result", all,
			Conversation{Messages: []Message{{Role: ToolRole, Content: []Part{{Kind: Image}}}}},
			Options{},
			"message 0: a tool result cannot hold image",
		},
		{"no image token", few, user(Part{Kind: Image}), Options{}, "message 0: part 0: the vocabulary has no tokens for image"},
		{"no audio token", few, user(Part{Kind: Audio}), Options{}, "no tokens for audio"},
		{"no xml token", few, Conversation{Tools: []Tool{Tool(`{"name":"f"}`)}}, Options{}, "no <|content_xml|>"},
	} {
		if _, _, err := tc.r.Render(tc.c, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

func TestEffort(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", "0.9"},
		{"none", "0.0"},
		{"minimal", "0.1"},
		{"low", "0.2"},
		{"medium", "0.7"},
		{"high", "0.9"},
		{"xhigh", "0.99"},
		{"max", "0.99"},
		{" High ", "0.9"},
		{"0.15", "0.15"},
		{"0.333", "0.33"},
		{"0.50", "0.5"},
		{"0", "0.0"},
		{"0.004", "0.0"},
		{"0.99", "0.99"},
		{"0.125", "0.12"}, // a tie in binary: to even
		{"0.145", "0.14"}, // below the tie in binary
		{"0.985", "0.98"}, // below the tie in binary
		{"1", ""},
		{"1.0", ""},
		{"0.991", ""},
		{"-0.1", ""},
		{"NaN", ""},
		{"Inf", ""},
		{"much", ""},
	} {
		f, err := ParseEffort(tc.in)
		if tc.want == "" {
			if err == nil {
				t.Errorf("ParseEffort(%q) = %v, want an error", tc.in, f)
			}
			continue
		}
		if err != nil || formatEffort(f, "0.0") != tc.want {
			t.Errorf("effort %q prints as %q (%v), want %q", tc.in, formatEffort(f, "0.0"), err, tc.want)
		}
	}
	if got := formatEffort(0, "0"); got != "0" {
		t.Errorf("zero of the llama.cpp family prints as %q", got)
	}
}

// TestRecognition tells templates of Inkling's protocol from others over the same vocabulary, and their spelling of zero.
func TestRecognition(t *testing.T) {
	v, tiny := loadModel(t, tinyDir)
	_, fixture := loadModel(t, filepath.Join(randomDir, "original"))
	// A template with the protocol for texts, which prints the effort as the given expression.
	protocolTemplate := func(effort string) string {
		return `{%- set levels = {'none': 0.0, 'high': 0.9} -%}
{%- set x = levels[reasoning_effort] if reasoning_effort is string else reasoning_effort -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- '<|message_system|><|content_text|>Thinking effort level: ' -}}{{- ` + effort + ` -}}{{- '<|end_message|>' -}}{%- endif -%}
{{- '<|message_' + m.role + '|><|content_text|>' + m.content + '<|end_message|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|message_model|>' -}}{%- endif -%}
{#- <|content_thinking|> -#}`
	}
	const own = `(((x * 100) | round | int) / 100) if ((x * 100) | round | int) > 0 else ((x * 100) | round | int)`
	for _, tc := range []struct {
		name, template string
		v              *token.Vocab
		kind, zero     string
	}{
		{"own template", tiny, v, KindInkling, "0.0"},
		{"no template", "", v, KindInkling, "0.0"},
		{"fixture: the tokens but another protocol", fixture, v, KindJinja, ""},
		{"prints the number as it is", protocolTemplate("x"), v, KindInkling, "0.0"},
		{"rounds by itself, zero as an integer", protocolTemplate(own), v, KindInkling, "0"},
		{"effort line in another frame", "PREFIX" + protocolTemplate("x"), v, KindJinja, ""},
		{"cannot be compiled", protocolTemplate("x") + "{% if %}", v, KindInkling, "0.0"},
		{"cannot be run", protocolTemplate("x") + "{{ raise_exception('no') }}", v, KindInkling, "0.0"},
		{"vocabulary without the tokens", protocolTemplate("x"), vocabWith(t, "<|im_start|>"), KindJinja, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, kind, err := NewRenderer(tc.v, tc.template)
			if err != nil || kind != tc.kind {
				t.Fatalf("kind %q, %v; want %q", kind, err, tc.kind)
			}
			if kind == KindJinja {
				return
			}
			segs, media, err := r.Render(Conversation{}, Options{Effort: "none"})
			if err != nil {
				t.Fatal(err)
			}
			want := "‹system›‹text›Thinking effort level: " + tc.zero + "‹end›\n"
			if got := short.Replace(Spell(tc.v, segs, media)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	for name, tc := range map[string]struct {
		template string
		v        *token.Vocab
		want     string
	}{
		"no template, no tokens": {"", vocabWith(t), "no chat template"},
		"broken template":        {"{% if %}", vocabWith(t), "chat template: jinja"},
		"huge template":          {strings.Repeat(" ", maxTemplateBytes+1), v, "limit"},
	} {
		if _, _, err := NewRenderer(tc.v, tc.template); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// TestZeroEffort checks the two spellings down to the ids.
func TestZeroEffort(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	p, _ := newProtocol(v)
	for zero, body := range map[string]string{"0.0": "Thinking effort level: 0.0", "0": "Thinking effort level: 0"} {
		segs, _, err := (&inklingRenderer{p: p, zero: zero}).Render(Conversation{}, Options{Effort: "none"})
		if err != nil {
			t.Fatal(err)
		}
		ids, _, err := v.EncodeSegments(segs, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]int32{p.system, p.text}, v.Encode(body)...)
		if d := cmp.Diff(append(want, p.endMessage), ids); d != "" {
			t.Errorf("%s (-want +got):\n%s", zero, d)
		}
	}
}

func TestStopAndNeverSampled(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	padded, err := v.Pad(1280)
	if err != nil {
		t.Fatal(err)
	}
	id := func(s string) int32 {
		id, ok := v.ID(s)
		if !ok {
			t.Fatalf("no token %s", s)
		}
		return id
	}
	stop, err := StopIDs(padded)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int32{id("<|content_model_end_sampling|>"), id("<|endoftext|>")}, stop); d != "" {
		t.Errorf("stop ids (-want +got):\n%s", d)
	}
	want := []int32{id("<|unused_200053|>"), id("<|unused_200054|>")}
	for i := int32(1268); i < 1280; i++ {
		want = append(want, i)
	}
	for _, unpadded := range []int{0, 1268} {
		if d := cmp.Diff(want, NeverSampled(padded, unpadded)); d != "" {
			t.Errorf("never sampled with %d (-want +got):\n%s", unpadded, d)
		}
	}
	if got := NeverSampled(padded, 1266); fmt.Sprint(got[:4]) != "[1263 1264 1266 1267]" {
		t.Errorf("never sampled with a smaller vocabulary starts with %v", got[:4])
	}
	if got, err := StopIDs(vocabWith(t)); err == nil {
		t.Errorf("a vocabulary without end has the stop ids %v", got)
	}
	kimi := vocabWith(t, "<|im_end|>", "[EOS]", "<|media_pad|>")
	if got, err := StopIDs(kimi); err != nil || fmt.Sprint(got) != "[1208 1209]" {
		t.Errorf("stop ids %v, %v", got, err)
	}
	for kind, want := range map[Kind]int32{Image: 1210, Video: 1210} {
		if got, ok := SlotID(kimi, kind); !ok || got != want {
			t.Errorf("slot of %s is %d, %v; want %d", kind, got, ok, want)
		}
	}
	if _, ok := SlotID(kimi, Audio); ok {
		t.Error("a vocabulary without sound has a slot for it")
	}
}
