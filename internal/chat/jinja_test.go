package chat

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

func TestJinjaValues(t *testing.T) {
	v := vocabWith(t, "<|im_start|>")
	no := false
	conversation := func(data string) Conversation {
		c, err := ParseMessages([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tc := range []struct {
		name, template, messages string
		o                        Options
		want                     string
	}{
		{
			"tools keep the order of their members", `{{ tools | tojson }}`,
			`{"messages":[],"tools":[{"type":"function","function":{"name":"f","description":"<é>","parameters":{"z":1,"a":[true,null,-2,0.5]}}}]}`,
			Options{},
			`[{"type": "function", "function": {"name": "f", "description": "<é>", "parameters": {"z": 1, "a": [true, null, -2, 0.5]}}}]`,
		},
		{
			"messages", `{{ messages | tojson }}`,
			`[{"role":"assistant","content":"c","reasoning_content":"r","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"b\":1,\"a\":2}"}}]},
			  {"role":"tool","tool_call_id":"1","name":"f","content":{"y":1,"x":[]}},{"role":"assistant","content":null},{"role":"user","content":""}]`,
			Options{},
			`[{"role": "assistant", "content": "c", "reasoning_content": "r", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}]}, ` +
				`{"role": "tool", "content": {"y": 1, "x": []}, "tool_call_id": "1", "name": "f"}, {"role": "assistant", "content": null}, {"role": "user", "content": ""}]`,
		},
		{
			"lists for templates that look at types", `{% for p in messages[0].content %}{{ p.type }}={{ p.text }};{% endfor %}`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
			Options{},
			"text=a;text=b;",
		},
		{
			"strings for templates that do not", `{{ messages[0].content }}`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
			Options{},
			"a\nb",
		},
		{
			"no variables without options", `{{ [reasoning_effort is defined, thinking is defined, tools is defined, preserve_thinking is defined, add_generation_prompt] }}`,
			`[]`,
			Options{},
			"[False, False, False, False, False]",
		},
		{"named effort", `{{ reasoning_effort }} {{ enable_thinking }} {{ thinking }}`, `[]`, Options{Effort: " Low"}, "low True True"},
		{"numeric effort", `{{ reasoning_effort + 0.25 }}`, `[]`, Options{Effort: "0.25"}, "0.5"},
		{"no thinking", `{{ enable_thinking }} {{ thinking }} {{ preserve_thinking }}`, `[]`, Options{Effort: "none", PreserveThinking: &no}, "False False False"},
		{"big integers become floats", `{{ tools | tojson }}`, `{"messages":[],"tools":[{"a":123456789012345678901234567890}]}`, Options{}, `[{"a": 1.2345678901234568e+29}]`},
		{"broken UTF-8 stays out", `{{ messages[0].content }}`, `[{"role":"user","content":"` + "a\xffb" + `"}]`, Options{}, "a\uFFFDb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _, err := NewRenderer(v, tc.template)
			if err != nil {
				t.Fatal(err)
			}
			segs, media, err := r.Render(conversation(tc.messages), tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, Spell(v, segs, media)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestJinjaSpecialNames checks that templates get the sequence tokens, but not a BOS that merely repeats the EOS.
func TestJinjaSpecialNames(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	for _, tc := range []struct {
		name string
		bos  string
		want string
	}{
		{"none", "", "[][<|content_model_end_sampling|>]"},
		{"its own", "<|startoftext|>", "[<|startoftext|>][<|content_model_end_sampling|>]"},
		{"the EOS", tokEndSampling, "[][<|content_model_end_sampling|>]"},
	} {
		kv := ggufMetadata(v)
		if id, ok := v.ID(tc.bos); ok {
			kv[token.KeyBOS] = uint64(id)
		}
		model, err := token.FromGGUF(kv)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := NewRenderer(model, "[{{ bos_token }}][{{ eos_token }}]")
		if err != nil {
			t.Fatal(err)
		}
		segs, media, err := r.Render(Conversation{}, Options{})
		if err != nil || Spell(model, segs, media) != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.name, Spell(model, segs, media), err, tc.want)
		}
	}
}

// TestTypeWords has special tokens that the words of types are parts of. Templates must still know the types, and texts like them
// must still be masked.
func TestTypeWords(t *testing.T) {
	v := vocabWith(t, "<|object_text|>")
	r, _, err := NewRenderer(v, `{%- set f = tools[0].function -%}{%- if f.parameters.type == 'object' and f.parameters.properties.x.type[1] == 'object' -%}{{ 'object ' }}{% endif -%}{%- for p in messages[0].content -%}{%- if p.type == 'text' -%}{{ 'part <|object_' + p.text + '|>' }}{%- endif -%}{%- endfor -%}`)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseMessages([]byte(`{"messages":[{"role":"tool","content":[{"type":"text","text":"text"}]}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":["null","object"]}}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	segs, _, err := r.Render(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]token.Segment{{Text: "object part <|object_text|>"}}, segs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// kv is GGUF metadata in a map.
type kv map[string]any

func ggufMetadata(v *token.Vocab) kv {
	types := make([]int64, v.N())
	for i, t := range v.Types() {
		types[i] = int64(t)
	}
	m := kv{
		token.KeyModel: token.ModelGPT2, token.KeyPre: v.Pre(), token.KeyTokens: v.Tokens(), token.KeyTypes: types, token.KeyMerges: v.Merges(),
	}
	if id, ok := v.EOS(); ok {
		m[token.KeyEOS] = uint64(id)
	}
	return m
}

func (m kv) Str(key string) (string, error)    { return m[key].(string), nil }
func (m kv) Strs(key string) ([]string, error) { return m[key].([]string), nil }
func (m kv) Ints(key string) ([]int64, error)  { return m[key].([]int64), nil }

func (m kv) UintOr(key string, def uint64) (uint64, error) {
	if v, ok := m[key].(uint64); ok {
		return v, nil
	}
	return def, nil
}

func TestJinjaErrors(t *testing.T) {
	v, fixture := loadModel(t, filepath.Join(randomDir, "original"))
	user := func(parts ...Part) Conversation {
		return Conversation{Messages: []Message{{Role: User, List: true, Content: parts}}}
	}
	const image, audio = "<|content_image|><|unused_200054|>", "<|unused_200053|>"
	for _, tc := range []struct {
		name, template string
		c              Conversation
		o              Options
		want           string
	}{
		{"raise_exception", fixture, user(Part{Kind: Video}), Options{}, "chat template: unknown content type video"},
		{"role", fixture, Conversation{Messages: []Message{{Role: "<|message_model|>"}}}, Options{}, "message 0: unknown role"},
		{"effort", fixture, user(), Options{Effort: "2"}, `reasoning effort "2"`},
		{"tool", fixture, Conversation{Tools: []Tool{Tool(`{`)}}, Options{}, "tools: json"},
		{"arguments", fixture, Conversation{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{Arguments: json.RawMessage(`[`)}}}}}, Options{}, "message 0: json"},
		{"number", fixture, Conversation{Tools: []Tool{Tool(`{"x":1e999}`)}}, Options{}, "1e999 is out of range"},
		{"placeholder missing", image, user(Part{Kind: Image}, Part{Kind: Image}), Options{}, "1 media placeholders for the 2 media"},
		{"placeholder too many", image + image, user(Part{Kind: Image}), Options{}, "2 media placeholders for the 1 media"},
		{"placeholder without media", image, user(), Options{}, "1 media placeholders for the 0 media"},
		{"placeholder of another kind", image + audio, user(Part{Kind: Audio}, Part{Kind: Image}), Options{}, "placeholder <|unused_200054|> where the conversation has audio 0"},
		{"no end", `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, user(), Options{}, "chat template: the template takes more than 5000 levels"},
	} {
		r, kind, err := NewRenderer(v, tc.template)
		if err != nil || kind != KindJinja {
			t.Fatalf("%s: kind %q, %v", tc.name, kind, err)
		}
		if _, _, err := r.Render(tc.c, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

// TestJinjaUserPlaceholder has a user who writes the placeholder of an image: only the template's one is a slot.
func TestJinjaUserPlaceholder(t *testing.T) {
	v, fixture := loadModel(t, filepath.Join(randomDir, "original"))
	r, _, err := NewRenderer(v, fixture)
	if err != nil {
		t.Fatal(err)
	}
	c := Conversation{Messages: []Message{{Role: User, List: true, Content: []Part{{Text: tokImageSlot}, {Kind: Image, Source: "x"}, {Text: tokAudioSlot}}}}}
	segs, media, err := r.Render(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids, slots, err := v.EncodeSegments(segs, func(int) (int32, int) { id, _ := SlotID(v, Image); return id, 3 })
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, id := range ids {
		if isSlot(v, id) {
			n++
		}
	}
	if len(media) != 1 || len(slots) != 1 || n != 3 {
		t.Errorf("%d media, %d slots, %d placeholder ids; want 1, 1, 3", len(media), len(slots), n)
	}
}
