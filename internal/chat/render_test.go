package chat

import (
	"encoding/json"
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
			for range 100 {
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
