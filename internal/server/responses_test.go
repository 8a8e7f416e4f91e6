package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// responsesBody puts an item into the words of OpenAI's responses API: items.
func responsesBody(t *testing.T, it *item, limit int) map[string]any {
	body := map[string]any{
		"model": "tiny", "temperature": 0, "max_output_tokens": limit, "store": false,
		"reasoning": map[string]any{"effort": it.ReasoningEffort, "summary": "auto"},
	}
	if it.Schema != nil {
		body["text"] = map[string]any{"format": map[string]any{"type": "json_schema", "name": "x", "schema": it.Schema, "strict": true}}
	}
	var input []any
	for _, m := range it.Messages {
		if m["role"] == "tool" {
			input = append(input, map[string]any{"type": "function_call_output", "call_id": m["tool_call_id"], "output": m["content"]})
			continue
		}
		for _, c := range calls(m) {
			input = append(input, map[string]any{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": c.Args})
		}
		switch c := m["content"].(type) {
		case string:
			input = append(input, map[string]any{"role": m["role"], "content": c})
		case []any:
			var parts []any
			for _, p := range c {
				p := p.(map[string]any)
				switch p["type"] {
				case "text":
					parts = append(parts, map[string]any{"type": "input_text", "text": p["text"]})
				case "image":
					parts = append(parts, map[string]any{"type": "input_image", "image_url": mediaURL(t, p), "detail": "auto"})
				default:
					parts = append(parts, openAIPart(t, p))
				}
			}
			input = append(input, map[string]any{"type": "message", "role": m["role"], "content": parts})
		}
	}
	body["input"] = input
	if tools := it.tools(t, func(name, description string, parameters json.RawMessage) any {
		return map[string]any{"type": "function", "name": name, "description": description, "parameters": parameters, "strict": false}
	}); tools != nil {
		body["tools"] = tools
	}
	return body
}

func responsesWhole(t *testing.T, data []byte) said {
	return responseSaid(t, unmarshal[responseJSON](t, string(data)))
}

func responseSaid(t *testing.T, r responseJSON) said {
	t.Helper()
	u := r.Usage
	if r.Object != "response" || r.Model != "tiny" || !strings.HasPrefix(r.ID, "resp_") || u.InputTokens == 0 || u.TotalTokens != u.InputTokens+u.OutputTokens ||
		(r.Status == completed) != (r.CompletedAt != nil) || (r.Status == incomplete) != (r.IncompleteDetails != nil) {
		t.Errorf("response %s", quote(r))
	}
	var s said
	for i, item := range r.Output {
		if item.Status != completed && i < len(r.Output)-1 || item.ID == "" {
			t.Errorf("item %s", quote(item))
		}
		switch item.Type {
		case "reasoning":
			s.Reasoning += (*item.Content)[0].Text
		case "message":
			s.Content += (*item.Content)[0].Text
		case "function_call":
			s.Calls = append(s.Calls, saidCall{item.CallID, item.Name, *item.Arguments})
		}
	}
	s.Finish = finishOf(t, r.Status, len(s.Calls), map[string]string{completed: "stop", incomplete: "length"})
	return s
}

// responsesStreamed puts the response together from its deltas, and checks that
// the events that repeat a part or all of it do so.
func responsesStreamed(t *testing.T, data []byte) said {
	var output []*responseItem
	var open *responseItem
	var text string
	events := sseEvents(t, data)
	for i, e := range events {
		v := unmarshal[struct {
			Type        string
			Sequence    int `json:"sequence_number"`
			Response    responseJSON
			OutputIndex int    `json:"output_index"`
			ItemID      string `json:"item_id"`
			Item        *responseItem
			Part        responsePart
			Delta       string
			Text        string
			Arguments   string
		}](t, e.data)
		if v.Type != e.name || v.Sequence != i {
			t.Fatalf("event %d is %s: %s", i, e.name, e.data)
		}
		if v.ItemID != "" && (open == nil || v.ItemID != open.ID || v.OutputIndex != len(output)) {
			t.Fatalf("%s of item %s", e.name, v.ItemID)
		}
		switch e.name {
		case "response.created", "response.in_progress":
			if i > 1 || v.Response.Status != inProgress || v.Response.Usage != nil {
				t.Errorf("event %d: %s", i, e.data)
			}
		case "response.output_item.added":
			if open != nil || v.Item.Status != inProgress {
				t.Fatalf("item %s begins in item %s", e.data, quote(open))
			}
			open, text = v.Item, ""
		case "response.content_part.added":
			if v.Part.Text != "" {
				t.Errorf("part %s", e.data)
			}
		case "response.reasoning_text.delta", "response.output_text.delta", "response.function_call_arguments.delta":
			text += v.Delta
		case "response.reasoning_text.done", "response.output_text.done":
			if v.Text != text {
				t.Errorf("text %q, its deltas %q", v.Text, text)
			}
		case "response.function_call_arguments.done":
			if v.Arguments != text {
				t.Errorf("arguments %q, their deltas %q", v.Arguments, text)
			}
		case "response.content_part.done":
			if v.Part.Text != text {
				t.Errorf("part %q, its deltas %q", v.Part.Text, text)
			}
		case "response.output_item.done":
			output, open = append(output, v.Item), nil
		case "response.completed", "response.incomplete":
			if i != len(events)-1 || !cmp.Equal(quote(v.Response.Output), quote(append([]*responseItem{}, output...))) {
				t.Errorf("event %d of %d: %s, items before %s", i, len(events), e.data, quote(output))
			}
			return responseSaid(t, v.Response)
		default:
			t.Errorf("event %s", e.name)
		}
	}
	t.Fatalf("the stream ends with %s", quote(events[len(events)-1].data))
	return said{}
}

const respond = `"model":"tiny","temperature":0,"max_output_tokens":60,"reasoning":{"effort":"none"}`

// TestResponsesGoOn: a response is kept, and one that goes on from it has its
// conversation, but not its instructions.
func TestResponsesGoOn(t *testing.T) {
	h := sharedServer(t)
	var first, second, whole responseJSON
	askOK(t, h, "/v1/responses", `{`+respond+`,"instructions":"Answer briefly.","input":"My favourite food is cake."}`, &first)
	askOK(t, h, "/v1/responses", `{`+respond+`,"input":"What is my favourite food?","previous_response_id":"`+first.ID+`"}`, &second)
	if s := responseSaid(t, second); s.Content != "Your favourite food is cake." {
		t.Errorf("answered %q", s.Content)
	}
	askOK(t, h, "/v1/responses", `{`+respond+`,"input":[{"role":"user","content":"My favourite food is cake."},{"role":"assistant","content":[{"type":"output_text","text":`+
		quote(responseSaid(t, first).Content)+`}]},{"role":"user","content":"What is my favourite food?"}]}`, &whole)
	if whole.Usage.InputTokens != second.Usage.InputTokens {
		t.Errorf("%d tokens of the prompt, %d if all is given", second.Usage.InputTokens, whole.Usage.InputTokens)
	}
	status, data := get(t, h, "/v1/responses/"+first.ID)
	if got := unmarshal[responseJSON](t, string(data)); status != 200 || quote(got) != quote(first) {
		t.Errorf("status %d: %s", status, data)
	}
	req, err := http.NewRequest(http.MethodDelete, h.URL+"/v1/responses/"+first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if status, _ := get(t, h, "/v1/responses/"+first.ID); resp.StatusCode != 200 || status != 404 {
		t.Errorf("deleted with status %d, then status %d", resp.StatusCode, status)
	}
}

// TestResponsesReasoning: what the model thought comes back to it as an item.
func TestResponsesReasoning(t *testing.T) {
	h := sharedServer(t)
	tokens := func(items string) int {
		var r responseJSON
		askOK(t, h, "/v1/responses", `{`+respond+`,"input":[{"role":"user","content":"What is the capital of France?"},`+items+
			`{"role":"assistant","content":"The capital of France is Paris."},{"role":"user","content":"And of Italy?"}]}`, &r)
		return r.Usage.InputTokens
	}
	none := tokens("")
	content := tokens(`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"I know this fact."}]},`)
	summary := tokens(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I know this fact."}]},`)
	if content <= none || summary != content {
		t.Errorf("%d tokens, %d with content, %d with a summary", none, content, summary)
	}
}

// TestResponsesLogprobs: the tokens of the text have their log-probabilities.
func TestResponsesLogprobs(t *testing.T) {
	h := sharedServer(t)
	var r responseJSON
	askOK(t, h, "/v1/responses", `{`+respond+`,"top_logprobs":2,"include":["message.output_text.logprobs"],"input":"What is the capital of France?"}`, &r)
	part := (*r.Output[0].Content)[0]
	text := ""
	for _, l := range *part.Logprobs {
		text += l.Token
		if len(l.Top) != 2 {
			t.Errorf("token %s", quote(l))
		}
	}
	if text != part.Text || text != "The capital of France is Paris." {
		t.Errorf("tokens %q, text %q", text, part.Text)
	}
}

// TestResponsesErrors: faults are named by status and field.
func TestResponsesErrors(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct {
		name, rest string
		status     int
		param      string
	}{
		{"no input", `"model":"tiny"`, 400, "input"},
		{"item", `"model":"tiny","input":[{"type":"web_search_call"}]`, 400, "input[0].type"},
		{"reference", `"model":"tiny","input":[{"type":"item_reference","id":"a"}]`, 400, "input[0].type"},
		{"role", `"model":"tiny","input":[{"role":"boss","content":"a"}]`, 400, "input[0].role"},
		{"part", `"model":"tiny","input":[{"role":"user","content":[{"type":"hologram"}]}]`, 400, "input[0].content[0].type"},
		{"image", `"model":"tiny","input":[{"role":"user","content":[{"type":"input_image"}]}]`, 400, "input[0].content[0].image_url"},
		{"file", `"model":"tiny","input":[{"role":"user","content":[{"type":"input_image","file_id":"a"}]}]`, 400, "input[0].content[0].file_id"},
		{"arguments", `"model":"tiny","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"no"}]`, 400, "input[0].arguments"},
		{"tool", `"model":"tiny","input":"a","tools":[{"type":"web_search"}]`, 400, "tools[0].type"},
		{"tool choice", `"model":"tiny","input":"a","tool_choice":{"type":"function","name":"f"}`, 400, "tool_choice.name"},
		{"format", `"model":"tiny","input":"a","text":{"format":{"type":"xml"}}`, 400, "text.format.type"},
		{"background", `"model":"tiny","input":"a","background":true`, 400, "background"},
		{"conversation", `"model":"tiny","input":"a","conversation":"c"`, 400, "conversation"},
		{"prompt", `"model":"tiny","input":"a","prompt":{"id":"p"}`, 400, "prompt"},
		{"limit", `"model":"tiny","input":"a","max_output_tokens":0`, 400, "max_output_tokens"},
		{"previous", `"model":"tiny","input":"a","previous_response_id":"resp_x"`, 404, "previous_response_id"},
		{"model", `"model":"gpt","input":"a"`, 404, ""},
	} {
		status, data := ask(t, h, "/v1/responses", "{"+tt.rest+"}")
		msg, _, param, _ := errorOf(t, data)
		if status != tt.status || param != tt.param || msg == "" {
			t.Errorf("%s: status %d: %s", tt.name, status, data)
		}
	}
}

// TestKeptResponsesBounded: the oldest responses go when there are too many.
func TestKeptResponsesBounded(t *testing.T) {
	var k keptResponses
	id := func(i int) string { return "resp_" + strings.Repeat("i", i) }
	for i := range maxKept + 2 {
		k.keep(&responseJSON{ID: id(i)}, nil)
		if _, err := k.find(id(0)); err != nil {
			t.Fatalf("the one that is used always is gone after %d", i)
		}
	}
	if _, err := k.find(id(1)); err == nil || len(k.all) != maxKept {
		t.Errorf("%d are kept", len(k.all))
	}
	big := textMessage("user", strings.Repeat("x", maxKeptBytes))
	k.keep(&responseJSON{ID: "big"}, append(k.all[0].messages, big))
	if len(k.all) != 0 || k.bytes != 0 {
		t.Errorf("%d are kept beside one that is too large, %d bytes", len(k.all), k.bytes)
	}
}
