package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is an answer in no protocol's words.
type said struct {
	Reasoning, Content string
	Calls              []saidCall
	Finish             string // stop, length, tool_calls
}

type saidCall struct{ ID, Name, Args string }

// protocol is how a client of a protocol asks and reads.
type protocol struct {
	name, path string
	body       func(t *testing.T, it *item, limit int) map[string]any
	whole      func(t *testing.T, data []byte) said
	stream     func(t *testing.T, data []byte) said
}

func protocols() []protocol {
	return []protocol{
		{"openai", "/v1/chat/completions", chatBody, chatWhole, chatStreamed},
		{"responses", "/v1/responses", responsesBody, responsesWhole, responsesStreamed},
		{"ollama", "/api/chat", ollamaBody, ollamaWhole, ollamaStreamed},
		{"anthropic", "/v1/messages", anthropicBody, anthropicWhole, anthropicStreamed},
	}
}

// ask asks once for a whole answer and once for a stream, and returns the answer
// after it has seen that they are equal.
func (p *protocol) ask(t *testing.T, h *httptest.Server, it *item, limit int) said {
	t.Helper()
	body := p.body(t, it, limit)
	var got [2]said
	for i, read := range []func(*testing.T, []byte) said{p.whole, p.stream} {
		body["stream"] = i == 1
		text, err := encodeJSON(body) // without escapes, which responses repeat
		if err != nil {
			t.Fatal(err)
		}
		status, data := ask(t, h, p.path, string(text))
		if status != 200 {
			t.Fatalf("%s: status %d: %s", p.name, status, data)
		}
		if bytes.Contains(data, []byte("\ufffd")) || bytes.Contains(data, []byte(`\u003c`)) || bytes.Contains(data, []byte(`\ufffd`)) {
			t.Errorf("%s: a broken character or an escape in %s", p.name, data)
		}
		got[i] = read(t, data)
		for j := range got[i].Calls {
			if got[i].Calls[j].ID == "" {
				t.Errorf("%s: a call without an id in %s", p.name, data)
			}
			got[i].Calls[j].ID = ""
		}
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("%s: answer (-) and stream (+):\n%s", p.name, diff)
	}
	return got[0]
}

// sseEvent is an event of a stream.
type sseEvent struct {
	name string
	data string
}

func sseEvents(t *testing.T, data []byte) (all []sseEvent) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSuffix(string(data), "\n\n"), "\n\n") {
		var e sseEvent
		for _, line := range strings.Split(text, "\n") {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "event":
				e.name = value
			case "data":
				e.data = value
			default:
				t.Fatalf("line %q of an event", line)
			}
		}
		all = append(all, e)
	}
	return all
}

func unmarshal[T any](t *testing.T, data string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// tools are the tools of an item as the form of a protocol has them.
func (it *item) tools(t *testing.T, form func(name, description string, parameters json.RawMessage) any) (all []any) {
	t.Helper()
	if string(it.Tools) == "null" || it.Tools == nil {
		return nil
	}
	type tool struct {
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	for _, tool := range unmarshal[[]tool](t, string(it.Tools)) {
		all = append(all, form(tool.Function.Name, tool.Function.Description, tool.Function.Parameters))
	}
	return all
}

// calls are those of a message of an item.
func calls(m map[string]any) (all []saidCall) {
	list, _ := m["tool_calls"].([]any)
	for _, c := range list {
		c := c.(map[string]any)
		f := c["function"].(map[string]any)
		all = append(all, saidCall{c["id"].(string), f["name"].(string), quote(f["arguments"])})
	}
	return all
}

func chatBody(t *testing.T, it *item, limit int) map[string]any {
	body := unmarshal[map[string]any](t, "{"+it.openAI(t)+"}")
	body["max_tokens"] = limit
	if it.Schema != nil {
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "schema": it.Schema}}
	}
	return body
}

func chatSaid(c *chatChoice) said {
	s := said{Reasoning: c.Message.ReasoningContent, Content: c.Message.Content.text, Finish: *c.FinishReason}
	for _, call := range c.Message.ToolCalls {
		s.Calls = append(s.Calls, saidCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return s
}

func chatWhole(t *testing.T, data []byte) said {
	resp := unmarshal[chatResponse](t, string(data))
	return chatSaid(&resp.Choices[0])
}

func chatStreamed(t *testing.T, data []byte) said {
	var chunks []string
	for _, e := range sseEvents(t, data) {
		chunks = append(chunks, e.data)
	}
	return chatSaid(&joined(t, chunks).Choices[0])
}

// TestProtocols asks for one item of each task by each protocol, pictures, sounds,
// tools and thinking among them, and gets the reference's answers, streamed or not.
func TestProtocols(t *testing.T) {
	h := sharedServer(t)
	for _, p := range protocols()[1:] { // TestEvaluationSet is the first one's
		for _, it := range firstOfTasks(t) {
			t.Run(p.name+"/"+it.Task, func(t *testing.T) {
				want := said{Reasoning: it.Reference.Reasoning, Content: it.Reference.Content, Finish: "stop"}
				if c := it.Reference.ToolCall; c != nil {
					want.Calls, want.Finish = []saidCall{{Name: c.Name, Args: quote(c.Args)}}, "tool_calls"
				}
				if diff := cmp.Diff(want, p.ask(t, h, &it, 200)); diff != "" {
					t.Errorf("reference (-) and answer (+):\n%s", diff)
				}
			})
		}
	}
}

// TestKimiProtocols: the other family answers by all protocols, and takes the
// pictures of tools.
func TestKimiProtocols(t *testing.T) {
	m := fileModel(t, kimiFile(t))
	m.Name = "tiny"
	o := testOptions(t)
	o.Models = []*Model{m}
	_, h := newTestServer(t, o)
	it := item{ReasoningEffort: "none", Messages: []map[string]any{{"role": "user", "content": "What is the capital of France?"}}}
	want := said{Content: "The capital of France is Paris.", Finish: "stop"}
	for _, p := range protocols() {
		if diff := cmp.Diff(want, p.ask(t, h, &it, 100)); diff != "" {
			t.Errorf("%s:\n%s", p.name, diff)
		}
	}
	picture := mediaURL(t, map[string]any{"type": "image", "image": "media/000_0.png"})
	var n, less struct {
		InputTokens int `json:"input_tokens"`
	}
	const ask = `{"model":"tiny","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"functions.f:0","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions.f:0","content":[%s]}]}]}`
	askOK(t, h, "/v1/messages/count_tokens", fmt.Sprintf(ask, `{"type":"image","source":{"type":"url","url":`+quote(picture)+`}}`), &n)
	askOK(t, h, "/v1/messages/count_tokens", fmt.Sprintf(ask, ""), &less)
	if n.InputTokens <= less.InputTokens+1 {
		t.Errorf("%d tokens with a picture, %d without", n.InputTokens, less.InputTokens)
	}
}

// TestCutAnywhere ends answers after each of their tokens: what is there until then
// is the beginning of the whole answer, in whole characters and without a trace of
// the protocol of the model, by each protocol of the server.
func TestCutAnywhere(t *testing.T) {
	h := sharedServer(t)
	items := map[string]item{
		"characters of many bytes": {
			ReasoningEffort: "none", Schema: json.RawMessage(`{"const":"é中😀<b>&\u2028"}`),
			Messages: []map[string]any{{"role": "user", "content": "Hi there!"}},
		},
	}
	for _, it := range firstOfTasks(t) {
		if it.Task == "tool_call" { // after a thought
			items[it.Task] = it
		}
	}
	for name, it := range items {
		var texts []said
		for _, p := range protocols() {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				full := p.ask(t, h, &it, 200)
				texts = append(texts, full)
				for n := 1; ; n++ {
					cut := p.ask(t, h, &it, n)
					if strings.Contains(cut.Content+cut.Reasoning, "<|") || !strings.HasPrefix(full.Content, cut.Content) || !strings.HasPrefix(full.Reasoning, cut.Reasoning) {
						t.Errorf("after %d tokens %+v, whole %+v", n, cut, full)
					}
					if cut.Finish != "length" {
						if diff := cmp.Diff(full, cut); diff != "" {
							t.Errorf("%d tokens are enough, but:\n%s", n, diff)
						}
						return
					}
				}
			})
		}
		for _, s := range texts[1:] {
			if diff := cmp.Diff(texts[0], s); diff != "" {
				t.Errorf("%s: two protocols differ:\n%s", name, diff)
			}
		}
	}
}

// finishOf translates a protocol's reason for the end.
func finishOf(t *testing.T, reason string, calls int, words map[string]string) string {
	t.Helper()
	finish, ok := words[reason]
	if !ok {
		t.Fatalf("the answer ends with %q", reason)
	}
	if calls > 0 && finish == "stop" {
		return "tool_calls"
	}
	return finish
}

func mediaURL(t *testing.T, p map[string]any) string {
	t.Helper()
	part := openAIPart(t, p)
	if u, ok := part["image_url"].(map[string]any); ok {
		return u["url"].(string)
	}
	a := part["input_audio"].(map[string]any)
	return fmt.Sprintf("data:audio/%s;base64,%s", a["format"], a["data"])
}

func base64Of(url string) string {
	_, payload, _ := strings.Cut(url, ",")
	return payload
}
