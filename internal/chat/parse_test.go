package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMessages(t *testing.T) {
	user := func(parts ...Part) Conversation {
		return Conversation{Messages: []Message{{Role: User, List: true, Content: parts}}}
	}
	part := func(p string) string { return `[{"role":"user","content":[` + p + `]}]` }
	for _, tc := range []struct {
		name, json string
		want       Conversation
	}{
		{"empty array", `[]`, Conversation{}},
		{
			"string content", `[{"role":"user","content":"a"},{"role":"user","content":""},{"role":"assistant","content":null}]`,
			Conversation{Messages: []Message{
				{Role: User, Content: []Part{{Text: "a"}}}, {Role: User, Content: []Part{}}, {Role: Assistant},
			}},
		},
		{
			"object with tools", `{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"b":1.0,"a":{"d":"\u00e9<","c":[true,null]}}]}`,
			Conversation{
				Messages: []Message{{Role: User, Content: []Part{{Text: "a"}}}},
				Tools:    []Tool{Tool(`{"b":1.0,"a":{"d":"é<","c":[true,null]}}`)},
			},
		},
		{"null tools", `{"messages":[],"tools":null}`, Conversation{}},
		{
			"text parts", part(`{"type":"text","text":"a"},{"type":"input_text","text":"b"},{"text":"c"},"d"`),
			user(Part{Text: "a"}, Part{Text: "b"}, Part{Text: "c"}, Part{Text: "d"}),
		},
		{
			"HF images", part(`{"type":"image"},{"type":"image","image":"a.png"},{"type":"image","url":"http://x/b.png"},{"type":"image","path":"c"},{"type":"image","base64":"QQ=="}`),
			user(Part{Kind: Image}, Part{Kind: Image, Source: "a.png"}, Part{Kind: Image, Source: "http://x/b.png"}, Part{Kind: Image, Source: "c"},
				Part{Kind: Image, Source: "data:application/octet-stream;base64,QQ=="}),
		},
		{
			"OpenAI images", part(`{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ==","detail":"low"}},{"type":"image_url","image_url":"u"},{"type":"input_image","image_url":"v"}`),
			user(Part{Kind: Image, Source: "data:image/png;base64,QQ=="}, Part{Kind: Image, Source: "u"}, Part{Kind: Image, Source: "v"}),
		},
		{
			"sounds", part(`{"type":"audio","audio":"a.wav"},{"type":"audio_url","audio_url":{"url":"b"}},{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},
			{"type":"input_audio","input_audio":{"data":"data:audio/mp3;base64,QQ==","format":"mp3"}},{"type":"input_audio","input_audio":{"data":"QQ=="}},{"type":"audio"}`),
			user(Part{Kind: Audio, Source: "a.wav"}, Part{Kind: Audio, Source: "b"}, Part{Kind: Audio, Source: "data:audio/wav;base64,QQ=="},
				Part{Kind: Audio, Source: "data:audio/mp3;base64,QQ=="}, Part{Kind: Audio, Source: "data:application/octet-stream;base64,QQ=="}, Part{Kind: Audio}),
		},
		{
			"videos", part(`{"type":"video","video":"a.mp4","fps":1.5},{"type":"video_url","video_url":{"url":"b"},"num_frames":8},{"type":"video","nframes":4.0}`),
			user(Part{Kind: Video, Source: "a.mp4", FPS: 1.5}, Part{Kind: Video, Source: "b", Frames: 8}, Part{Kind: Video, Frames: 4}),
		},
		{
			"assistant", `[{"role":"assistant","reasoning_content":"r","content":"c","tool_calls":[
				{"id":"1","type":"function","function":{"name":"f","arguments":{"b":1,"a":2.0}}},
				{"id":"2","type":"function","function":{"name":"g","arguments":"{\"x\": 1e3, \"x\":2}"}},
				{"name":"h"},{"function":{"name":"i","arguments":"not json"}}]},{"role":"assistant","reasoning":"other spelling"}]`,
			Conversation{Messages: []Message{
				{Role: Assistant, Reasoning: "r", Content: []Part{{Text: "c"}}, ToolCalls: []ToolCall{
					{ID: "1", Name: "f", Arguments: json.RawMessage(`{"b":1,"a":2.0}`)},
					{ID: "2", Name: "g", Arguments: json.RawMessage(`{"x": 1e3, "x":2}`)},
					{Name: "h", Arguments: json.RawMessage(`{}`)},
					{Name: "i", Arguments: json.RawMessage(`{}`)},
				}},
				{Role: Assistant, Reasoning: "other spelling"},
			}},
		},
		{
			"tool", `[{"role":"tool","name":"f","tool_call_id":"1","content":"r"},{"role":"tool","content":[1,{"b":2,"a":3}]}]`,
			Conversation{Messages: []Message{
				{Role: ToolRole, Name: "f", ToolCallID: "1", Content: []Part{{Text: "r"}}},
				{Role: ToolRole, Result: json.RawMessage(`[1,{"b":2,"a":3}]`)},
			}},
		},
		{"broken surrogate", `[{"role":"user","content":"\ud800x"}]`, Conversation{Messages: []Message{{Role: User, Content: []Part{{Text: "\uFFFDx"}}}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseMessages([]byte(tc.json))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestParseMessagesErrors(t *testing.T) {
	part := func(p string) string {
		return `[{"role":"user","content":"x"},{"role":"user","content":["x",` + p + `]}]`
	}
	for _, tc := range []struct{ json, want string }{
		{``, "json: unexpected EOF"},
		{`[`, "json: unexpected EOF"},
		{`[] []`, "text after the value at offset"},
		{`[] }`, "text after the value at offset"},
		{`{"messages":`, "unexpected EOF"},
		{`{}`, "messages are null, want an array"},
		{`7`, "messages are a number"},
		{`{"messages":[],"tools":{}}`, "tools are an object, want an array"},
		{`{"messages":[],"tools":[7]}`, "tool 0 is a number"},
		{`[7]`, "message 0: is a number, want an object"},
		{`[{}]`, `message 0: unknown role ""`},
		{`[{"Role":"user"}]`, `message 0: unknown role ""`},
		{`[{"role":"user","content":"a"},{"role":"critic"}]`, `message 1: unknown role "critic"`},
		{`[{"role":7}]`, "message 0: role is a number, want a string"},
		{`[{"role":"user","name":{}}]`, "name is an object"},
		{`[{"role":"user","tool_call_id":[]}]`, "tool_call_id is an array"},
		{`[{"role":"assistant","reasoning_content":true}]`, "reasoning_content is a boolean"},
		{`[{"role":"user","content":{"text":"x"}}]`, "message 0: content is an object"},
		{`[{"role":"assistant","tool_calls":{}}]`, "tool_calls are an object"},
		{`[{"role":"assistant","tool_calls":[1]}]`, "tool call 0 is a number"},
		{`[{"role":"assistant","tool_calls":[{"id":"1","function":{}}]}]`, "message 0: tool call 0: has no name"},
		{`[{"role":"assistant","tool_calls":[{"id":1}]}]`, "id is a number"},
		{part(`7`), "message 1: part 1: is a number"},
		{part(`{"type":"hologram"}`), `message 1: part 1: unknown type "hologram"`},
		{part(`{"type":7}`), "message 1: part 1: type is a number"},
		{part(`{"type":"text","text":[]}`), "message 1: part 1: text is an array"},
		{part(`{"type":"image_url"}`), "message 1: part 1: image_url without a URL"},
		{part(`{"type":"image_url","image_url":{"detail":"low"}}`), "image_url without a URL"},
		{part(`{"type":"image","image":["a"]}`), "image is an array, want a string"},
		{part(`{"type":"input_audio"}`), "input_audio without a URL"},
		{part(`{"type":"input_audio","input_audio":{"format":"wav"}}`), "input_audio without data"},
		{part(`{"type":"input_audio","input_audio":{"data":7}}`), "data is a number"},
		{part(`{"type":"video","video":"a","fps":"2"}`), "fps is a string"},
		{part(`{"type":"video","video":"a","fps":0}`), "fps is 0, want a number above 0"},
		{part(`{"type":"video","video":"a","fps":1e999}`), "fps is 1e999"},
		{part(`{"type":"video","video":"a","num_frames":"2"}`), "num_frames is a string"},
		{part(`{"type":"video","video":"a","nframes":1.5}`), "nframes is 1.5, want a whole number from 1"},
		{part(`{"type":"video","video":"a","num_frames":0}`), "num_frames is 0, want a whole number from 1"},
		{strings.Repeat("[", 600) + strings.Repeat("]", 600), "nesting deeper than 500"},
	} {
		if _, err := ParseMessages([]byte(tc.json)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.80s: error %v, want one with %q", tc.json, err, tc.want)
		}
	}
}

// TestCanonicalJSON checks the spelling of values against Python's
// json.dumps(json.loads(x), sort_keys=True, separators=(",", ":"), ensure_ascii=False), worked out by hand.
func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{`{"a":{"d":1,"c":[{"f":1,"e":2}]},"a":{"y":1,"x":2}}`, `{"a":{"x":2,"y":1}}`},
		{` [ 1 , 2 ] `, `[1,2]`},
		{`{"é":1,"z":2,"Z":3,"😀":4,"":5,"｡":6}`, `{"":5,"Z":3,"z":2,"é":1,"｡":6,"😀":4}`}, // by code point, not by UTF-16 unit
		{`"<a href='x'>&amp;</a>"`, `"<a href='x'>&amp;</a>"`},
		{`"\u003c\u00e9\u2028\ud83d\ude38\/\u007f"`, "\"<é\u2028😸/\x7f\""},
		{`"\"\\\b\f\n\r\t\u0000\u001f"`, `"\"\\\b\f\n\r\t\u0000\u001f"`},
		{`[0,-0,7,-7,123456789012345678901234567890]`, `[0,0,7,-7,123456789012345678901234567890]`},
		{`[1.0,-0.0,2.50,1e6,1E6,1e-3,0.0001]`, `[1.0,-0.0,2.5,1000000.0,1000000.0,0.001,0.0001]`},
		{`[0.00001,1e15,1e16,1.5e300,123456789012345678.0,5e-324]`, `[1e-05,1000000000000000.0,1e+16,1.5e+300,1.2345678901234568e+17,5e-324]`},
		{`[true,false,null,{},[],""]`, `[true,false,null,{},[],""]`},
	} {
		got, err := canonical([]byte(tc.in))
		if err != nil || got != tc.want {
			t.Errorf("canonical(%s) = %s, %v; want %s", tc.in, got, err, tc.want)
		}
		if again, err := canonical([]byte(got)); err != nil || again != got {
			t.Errorf("canonical of its own output %s is %s, %v", got, again, err)
		}
	}
}
