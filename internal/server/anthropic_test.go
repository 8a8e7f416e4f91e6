package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// anthropicBody puts an item into Anthropic's words: blocks, the system prompt
// apart, results of tools from the user.
func anthropicBody(t *testing.T, it *item, limit int) map[string]any {
	body := map[string]any{"model": "tiny", "max_tokens": limit, "temperature": 0}
	if budget := map[string]int{"low": 1024, "medium": 4096, "high": 16384}[it.ReasoningEffort]; budget > 0 {
		body["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
	}
	if it.Schema != nil {
		body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": it.Schema}}
	}
	var messages []any
	for _, m := range it.Messages {
		var blocks []any
		switch c := m["content"].(type) {
		case string:
			blocks = append(blocks, map[string]any{"type": "text", "text": c, "cache_control": map[string]any{"type": "ephemeral"}})
		case []any:
			for _, p := range c {
				p := p.(map[string]any)
				if p["type"] == "text" {
					blocks = append(blocks, p)
					continue
				}
				typ, data, _ := strings.Cut(strings.TrimPrefix(mediaURL(t, p), "data:"), ";base64,")
				kind := p["type"]
				if kind == nil || kind == "image_url" {
					kind = "image"
				}
				if kind == "input_audio" {
					kind = "audio"
				}
				blocks = append(blocks, map[string]any{"type": kind, "source": map[string]any{"type": "base64", "media_type": typ, "data": data}})
			}
		}
		role := m["role"]
		switch role {
		case "system":
			body["system"] = blocks
			continue
		case "tool":
			role, blocks = "user", []any{map[string]any{"type": "tool_result", "tool_use_id": m["tool_call_id"], "content": blocks}}
		}
		for _, c := range calls(m) {
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Args)})
		}
		messages = append(messages, map[string]any{"role": role, "content": blocks})
	}
	body["messages"] = messages
	if tools := it.tools(t, func(name, description string, parameters json.RawMessage) any {
		return map[string]any{"name": name, "description": description, "input_schema": parameters}
	}); tools != nil {
		body["tools"] = tools
	}
	return body
}

func anthropicWhole(t *testing.T, data []byte) said {
	m := unmarshal[anthropicResponse](t, string(data))
	if m.Type != "message" || m.Role != "assistant" || m.Model != "tiny" || !strings.HasPrefix(m.ID, "msg_") || m.Content == nil ||
		m.Usage.InputTokens+m.Usage.CacheReadTokens == 0 || m.Usage.OutputTokens == 0 {
		t.Errorf("message %s", data)
	}
	var s said
	for _, p := range m.Content {
		switch p.Type {
		case "thinking":
			s.Reasoning += *p.Thinking
			if *p.Signature != anthropicSignature {
				t.Errorf("signature %q", *p.Signature)
			}
		case "text":
			s.Content += *p.Text
		case "tool_use":
			s.Calls = append(s.Calls, saidCall{p.ID, p.Name, string(p.Input)})
		default:
			t.Errorf("block %s", quote(p))
		}
	}
	s.Finish = finishOf(t, *m.StopReason, 0, map[string]string{"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls", "stop_sequence": "stop"})
	return s
}

// anthropicStreamed puts the message together as Anthropic's clients do, and
// checks the order of events.
func anthropicStreamed(t *testing.T, data []byte) said {
	var m anthropicResponse
	open := -1
	var args string
	events := sseEvents(t, data)
	for i, e := range events {
		v := unmarshal[struct {
			Type         string
			Index        int
			Message      anthropicResponse
			ContentBlock anthropicPiece `json:"content_block"`
			Usage        anthropicUsage
			Delta        struct {
				Type, Text, Thinking, Signature string
				PartialJSON                     string  `json:"partial_json"`
				StopReason                      *string `json:"stop_reason"`
			}
		}](t, e.data)
		if v.Type != e.name || (i == 0) != (e.name == "message_start") || (i == len(events)-1) != (e.name == "message_stop") {
			t.Fatalf("event %d of %d is %s: %s", i, len(events), e.name, e.data)
		}
		if strings.HasPrefix(e.name, "content_block_") && e.name != "content_block_start" && v.Index != open {
			t.Fatalf("%s of block %d, open is %d", e.name, v.Index, open)
		}
		switch e.name {
		case "message_start":
			m = v.Message
			if m.StopReason != nil || len(m.Content) != 0 {
				t.Errorf("starts with %s", e.data)
			}
		case "content_block_start":
			if open >= 0 || v.Index != len(m.Content) {
				t.Fatalf("block %d starts in block %d", v.Index, open)
			}
			open, args = v.Index, ""
			m.Content = append(m.Content, v.ContentBlock)
		case "content_block_delta":
			p := &m.Content[open]
			switch v.Delta.Type {
			case "text_delta":
				*p.Text += v.Delta.Text
			case "thinking_delta":
				*p.Thinking += v.Delta.Thinking
			case "signature_delta":
				*p.Signature += v.Delta.Signature
			case "input_json_delta":
				args += v.Delta.PartialJSON
			default:
				t.Errorf("delta %s", e.data)
			}
		case "content_block_stop":
			if m.Content[open].Type == "tool_use" {
				m.Content[open].Input = json.RawMessage(args)
			}
			open = -1
		case "message_delta":
			m.StopReason, m.Usage = v.Delta.StopReason, v.Usage
		case "message_stop", "ping":
		default:
			t.Errorf("event %s", e.name)
		}
	}
	return anthropicWhole(t, []byte(quote(m)))
}

const france = `"messages":[{"role":"user","content":"What is the capital of France?"}]`

// TestAnthropicStop: reasons for the end have Anthropic's names, and the sequence
// that ended the answer is told.
func TestAnthropicStop(t *testing.T) {
	h := sharedServer(t)
	var m anthropicResponse
	askOK(t, h, "/v1/messages", `{"model":"tiny","max_tokens":60,"temperature":0,"stop_sequences":["never","of Fr"],`+france+`}`, &m)
	if *m.StopReason != "stop_sequence" || *m.StopSequence != "of Fr" || *m.Content[0].Text != "The capital " || len(m.Content) != 1 {
		t.Errorf("answered %s", quote(m))
	}
	askOK(t, h, "/v1/messages", `{"model":"tiny","max_tokens":60,"temperature":0,`+france+`}`, &m)
	if *m.StopReason != "end_turn" || m.StopSequence != nil || m.Usage.OutputTokens != 13 || m.Usage.InputTokens+m.Usage.CacheReadTokens != 23 {
		t.Errorf("answered %s", quote(m))
	}
	if m.Usage.CacheReadTokens == 0 {
		t.Error("the prompt of the request before is not read from the cache")
	}
}

// TestAnthropicThinking: budgets are efforts, which the prompt holds, and without
// thinking there is none.
func TestAnthropicThinking(t *testing.T) {
	for _, tt := range []struct{ thinking, effort string }{
		{`{"type":"disabled"}`, "none"},
		{`null`, "none"},
		{`{"type":"enabled","budget_tokens":1024}`, "low"},
		{`{"type":"enabled","budget_tokens":2049}`, "medium"},
		{`{"type":"enabled","budget_tokens":32768}`, "high"},
		{`{"type":"enabled","budget_tokens":64000}`, "max"},
		{`{"type":"adaptive"}`, ""},
		{`{"type":"adaptive"},"output_config":{"effort":"low"}`, "low"},
	} {
		var req anthropicRequest
		if err := decodeJSON([]byte(`{"model":"tiny","thinking":`+tt.thinking+`,`+france+`}`), &req); err != nil {
			t.Fatal(err)
		}
		turn, err := req.turn()
		if err != nil || turn.Effort != tt.effort {
			t.Errorf("%s: effort %q, error %v", tt.thinking, turn.Effort, err)
		}
	}
}

// TestAnthropicToolChoice: choices are those of the engine.
func TestAnthropicToolChoice(t *testing.T) {
	h := sharedServer(t)
	const tools = `"tools":[{"name":"get_time","input_schema":{"type":"object","properties":{"city":{"type":"string","maxLength":8}},"required":["city"]}},{"name":"get_weather","input_schema":{"type":"object"}}],`
	for choice, want := range map[string]string{`{"type":"tool","name":"get_time"}`: "tool_use", `{"type":"any","disable_parallel_tool_use":true}`: "tool_use", `{"type":"none"}`: "end_turn"} {
		var m anthropicResponse
		askOK(t, h, "/v1/messages", `{"model":"tiny","max_tokens":200,"temperature":0,`+tools+`"tool_choice":`+choice+`,`+france+`}`, &m)
		calls := 0
		for _, p := range m.Content {
			if p.Type == "tool_use" {
				calls++
			}
		}
		if *m.StopReason != want || (calls == 1) != (want == "tool_use") {
			t.Errorf("%s: answered %s", choice, quote(m))
		}
	}
}

// TestAnthropicCount: the count of tokens is that of the answer's usage.
func TestAnthropicCount(t *testing.T) {
	h := sharedServer(t)
	var n struct {
		InputTokens int `json:"input_tokens"`
	}
	askOK(t, h, "/v1/messages/count_tokens", `{"model":"tiny",`+france+`}`, &n)
	if n.InputTokens != 23 {
		t.Errorf("%d tokens, want 23", n.InputTokens)
	}
}

// TestAnthropicErrors: faults are named by status, type and field in Anthropic's
// shape.
func TestAnthropicErrors(t *testing.T) {
	h := sharedServer(t)
	user := func(block string) string {
		return `{"model":"tiny","max_tokens":9,"messages":[{"role":"user","content":[` + block + `]}]}`
	}
	picture := base64Of(mediaURL(t, map[string]any{"type": "image", "image": "media/000_0.png"}))
	for _, tt := range []struct {
		name, body string
		status     int
		typ        string
		message    string
	}{
		{"no such model", `{"model":"claude",` + france + `}`, 404, "not_found_error", `model "claude" not found`},
		{"no messages", `{"model":"tiny"}`, 400, "invalid_request_error", "messages: is empty"},
		{"role", `{"model":"tiny","messages":[{"role":"system","content":"a"}]}`, 400, "invalid_request_error", "messages[0].role: "},
		{"prefill", `{"model":"tiny","messages":[{"role":"assistant","content":"a"}]}`, 400, "invalid_request_error", "messages[0]: "},
		{"document", user(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}`), 400, "invalid_request_error", "messages[0].content[0].type: documents"},
		{"block", user(`{"type":"search_result"}`), 400, "invalid_request_error", `"search_result"`},
		{"file source", user(`{"type":"image","source":{"type":"file","file_id":"a"}}`), 400, "invalid_request_error", "messages[0].content[0].source.type: "},
		{"no picture", user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`), 400, "invalid_request_error", "messages[0].content[0].source: "},
		{"image of a tool", `{"model":"tiny","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":` + quote(picture) + `}}]}]}]}`, 400, "invalid_request_error", "a tool result cannot hold image"},
		{"server tool", `{"model":"tiny","tools":[{"type":"web_search_20250305","name":"web_search"}],` + france + `}`, 400, "invalid_request_error", "tools[0].type: "},
		{"tool choice", `{"model":"tiny","tool_choice":{"type":"tool","name":"f"},` + france + `}`, 400, "invalid_request_error", "tool_choice.name: "},
		{"stop", `{"model":"tiny","stop_sequences":[""],` + france + `}`, 400, "invalid_request_error", "stop_sequences: "},
		{"budget", `{"model":"tiny","thinking":{"type":"enabled"},` + france + `}`, 400, "invalid_request_error", "thinking.budget_tokens: "},
		{"too long", `{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("word ", 3000) + `"}]}`, 400, "invalid_request_error", ""},
	} {
		status, data := ask(t, h, "/v1/messages", tt.body)
		e := unmarshal[struct {
			Type  string
			Error struct{ Type, Message string }
		}](t, string(data))
		if status != tt.status || e.Type != "error" || e.Error.Type != tt.typ || !strings.Contains(e.Error.Message, tt.message) {
			t.Errorf("%s: status %d: %s", tt.name, status, data)
		}
	}
}

// get asks for a path with headers.
func get(t *testing.T, h *httptest.Server, path string, headers ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, h.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return whole(t, resp)
}

// TestAnthropicModels: the header says in whose shape models and errors are.
func TestAnthropicModels(t *testing.T) {
	h := sharedServer(t)
	_, data := get(t, h, "/v1/models", "anthropic-version", "2023-06-01")
	list := unmarshal[anthropicModelList](t, string(data))
	if len(list.Data) != 1 || list.Data[0].ID != "tiny" || list.Data[0].Type != "model" || *list.LastID != "tiny" || list.HasMore {
		t.Errorf("models %s", data)
	}
	_, data = get(t, h, "/v1/models/tiny", "anthropic-version", "2023-06-01")
	if m := unmarshal[anthropicModel](t, string(data)); m.ID != "tiny" || m.CreatedAt.IsZero() {
		t.Errorf("model %s", data)
	}
	status, data := get(t, h, "/v1/models/none", "anthropic-version", "2023-06-01")
	if e := unmarshal[struct{ Type string }](t, string(data)); status != 404 || e.Type != "error" {
		t.Errorf("status %d: %s", status, data)
	}
}
