package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ollamaBody puts an item into Ollama's words: media as lists of base64, calls with
// objects.
func ollamaBody(t *testing.T, it *item, limit int) map[string]any {
	body := map[string]any{"model": "tiny", "options": map[string]any{"temperature": 0, "num_predict": limit}, "think": any(it.ReasoningEffort)}
	if it.ReasoningEffort == "none" {
		body["think"] = false
	}
	if it.Schema != nil {
		body["format"] = it.Schema
	}
	var messages []map[string]any
	for _, m := range it.Messages {
		out := map[string]any{"role": m["role"], "content": ""}
		switch c := m["content"].(type) {
		case string:
			out["content"] = c
		case []any:
			var images []string
			for _, p := range c {
				if p := p.(map[string]any); p["type"] == "text" {
					out["content"] = out["content"].(string) + p["text"].(string)
				} else {
					images = append(images, base64Of(mediaURL(t, p)))
				}
			}
			out["images"] = images
		}
		var list []any
		for _, c := range calls(m) {
			list = append(list, map[string]any{"function": map[string]any{"name": c.Name, "arguments": json.RawMessage(c.Args)}})
		}
		if list != nil {
			out["tool_calls"] = list
		}
		if m["role"] == "tool" {
			out["tool_name"] = m["name"]
		}
		messages = append(messages, out)
	}
	body["messages"] = messages
	if tools := it.tools(t, func(name, description string, parameters json.RawMessage) any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": description, "parameters": parameters}}
	}); tools != nil {
		body["tools"] = tools
	}
	return body
}

// ollamaLine is a line of an answer; its embedded pointers cannot be read into.
type ollamaLine struct {
	Model      string
	CreatedAt  time.Time `json:"created_at"`
	Message    *ollamaAnswer
	Response   *string
	Thinking   string
	Done       bool
	DoneReason string `json:"done_reason"`
	Logprobs   []ollamaLogprob

	TotalDuration   int64 `json:"total_duration"`
	LoadDuration    int64 `json:"load_duration"`
	PromptEvalCount int   `json:"prompt_eval_count"`
	EvalCount       int   `json:"eval_count"`
	EvalDuration    int64 `json:"eval_duration"`
}

func ollamaWhole(t *testing.T, data []byte) said {
	l := unmarshal[ollamaLine](t, string(data))
	if !l.Done || l.Message == nil || l.EvalCount == 0 || l.PromptEvalCount == 0 || l.TotalDuration < l.EvalDuration || l.CreatedAt.IsZero() {
		t.Errorf("answer %s", data)
	}
	s := said{Reasoning: l.Message.Thinking, Content: l.Message.Content}
	for _, c := range l.Message.ToolCalls {
		s.Calls = append(s.Calls, saidCall{c.ID, c.Function.Name, string(c.Function.Arguments)})
	}
	s.Finish = finishOf(t, l.DoneReason, len(s.Calls), map[string]string{"stop": "stop", "length": "length"})
	return s
}

func ollamaStreamed(t *testing.T, data []byte) said {
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	whole := unmarshal[ollamaLine](t, lines[len(lines)-1])
	if whole.Message.Content != "" || !whole.Done {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
	for _, text := range lines[:len(lines)-1] {
		l := unmarshal[ollamaLine](t, text)
		if l.Done || l.Message.Role != "assistant" || l.EvalCount != 0 {
			t.Errorf("line %s", text)
		}
		whole.Message.Content += l.Message.Content
		whole.Message.Thinking += l.Message.Thinking
		whole.Message.ToolCalls = append(whole.Message.ToolCalls, l.Message.ToolCalls...)
	}
	return ollamaWhole(t, []byte(quote(lineJSON(whole))))
}

// lineJSON writes a line as ollamaWhole reads it.
func lineJSON(l ollamaLine) map[string]any {
	return map[string]any{
		"message": l.Message, "done": l.Done, "done_reason": l.DoneReason, "created_at": l.CreatedAt,
		"total_duration": l.TotalDuration, "eval_duration": l.EvalDuration, "eval_count": l.EvalCount, "prompt_eval_count": l.PromptEvalCount,
	}
}

const ollamaGreedy = `"model":"tiny","think":false,"options":{"temperature":0,"num_predict":60}`

// TestOllamaGenerate: the text of a prompt is in response, of a thought in
// thinking, and streamed as lines.
func TestOllamaGenerate(t *testing.T) {
	h := sharedServer(t)
	var whole ollamaLine
	askOK(t, h, "/api/generate", `{`+ollamaGreedy+`,"stream":false,"prompt":"What is the capital of France?"}`, &whole)
	if *whole.Response != "The capital of France is Paris." || whole.Message != nil || whole.PromptEvalCount != 23 || whole.EvalCount != 13 || whole.DoneReason != "stop" {
		t.Errorf("answered %s", quote(whole))
	}
	status, data := ask(t, h, "/api/generate", `{"model":"tiny","think":"high","options":{"temperature":0},"prompt":"What is 47 + 38?"}`)
	if status != 200 {
		t.Fatalf("status %d: %s", status, data)
	}
	var response, thinking string
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for i, text := range lines {
		l := unmarshal[ollamaLine](t, text)
		response, thinking = response+*l.Response, thinking+l.Thinking
		if l.Done != (i == len(lines)-1) {
			t.Errorf("line %d of %d is %s", i, len(lines), text)
		}
	}
	if response != "The answer is 85." || thinking == "" {
		t.Errorf("answered %q after %q", response, thinking)
	}
}

// TestOllamaSettings: what a request sets is what the answer has.
func TestOllamaSettings(t *testing.T) {
	h := sharedServer(t)
	generate := func(rest string) ollamaLine {
		t.Helper()
		var l ollamaLine
		askOK(t, h, "/api/generate", `{"model":"tiny:latest","stream":false,"think":false,`+rest+`}`, &l)
		return l
	}
	const france = `"prompt":"What is the capital of France?"`
	for _, tt := range []struct{ name, rest, want, reason string }{
		{"stop", `"options":{"temperature":0,"stop":["of Fr"]},` + france, "The capital ", "stop"},
		{"num_predict", `"options":{"temperature":0,"num_predict":3},` + france, "The capital", "length"},
		{"no limit", `"options":{"temperature":0,"num_predict":-1},` + france, "The capital of France is Paris.", "stop"},
		{"enough num_ctx", `"options":{"temperature":0,"num_ctx":2048},` + france, "The capital of France is Paris.", "stop"},
		{"format", `"format":{"enum":["Paris"]},"options":{"seed":1},` + france, `"Paris"`, "stop"},
		{"raw", `"raw":true,"options":{"temperature":0},"prompt":"<|message_user|><|content_text|>What is the capital of France?<|end_message|><|message_model|><|content_text|>"`, "The capital of France is Paris.", "stop"},
	} {
		if l := generate(tt.rest); *l.Response != tt.want || l.DoneReason != tt.reason {
			t.Errorf("%s: answered %q, the end is %s", tt.name, *l.Response, l.DoneReason)
		}
	}
	if l := generate(`"format":"json","options":{"seed":3},` + france); !json.Valid([]byte(*l.Response)) || (*l.Response)[0] != '{' {
		t.Errorf("format json: answered %q", *l.Response)
	}
	sampled := `"options":{"temperature":2,"seed":7},"prompt":"Hi there!"`
	if a, b := generate(sampled), generate(sampled); *a.Response != *b.Response {
		t.Errorf("one seed, but %q and %q", *a.Response, *b.Response)
	}
	if l := generate(`"logprobs":true,"top_logprobs":2,"options":{"temperature":0},` + france); len(l.Logprobs) == 0 || len(l.Logprobs[0].Top) != 2 {
		t.Errorf("log-probabilities %s", quote(l.Logprobs))
	}
}

// TestOllamaSystem: system is the system message.
func TestOllamaSystem(t *testing.T) {
	h := sharedServer(t)
	var a, b ollamaLine
	askOK(t, h, "/api/generate", `{`+ollamaGreedy+`,"stream":false,"system":"Answer briefly.","prompt":"Hi there!"}`, &a)
	askOK(t, h, "/api/chat", `{`+ollamaGreedy+`,"stream":false,"messages":[{"role":"system","content":"Answer briefly."},{"role":"USER","content":"Hi there!"}]}`, &b)
	if a.PromptEvalCount != b.PromptEvalCount || *a.Response != b.Message.Content {
		t.Errorf("generate %s, chat %s", quote(a), quote(b))
	}
}

// TestOllamaLoadUnload: a request without anything to answer to loads the model or
// takes it out of memory, as its keep_alive says.
func TestOllamaLoadUnload(t *testing.T) {
	s, h := newTestServer(t, testOptions(t))
	names := func() (all []string) {
		_, data := get(t, h, "/api/ps")
		for _, m := range unmarshal[struct{ Models []struct{ Name string } }](t, string(data)).Models {
			all = append(all, m.Name)
		}
		return all
	}
	for _, step := range []struct {
		path, body, reason string
		loaded             []string
	}{
		{"/api/generate", `{"model":"tiny"}`, "load", []string{"tiny"}},
		{"/api/generate", `{"model":"tiny","keep_alive":0,"stream":false}`, "unload", nil},
		{"/api/chat", `{"model":"tiny","messages":[],"keep_alive":"1h"}`, "load", []string{"tiny"}},
		{"/api/chat", `{"model":"tiny","keep_alive":"0s"}`, "unload", nil},
		{"/api/chat", `{"model":"tiny","keep_alive":0}`, "unload", nil},
	} {
		var l ollamaLine
		askOK(t, h, step.path, step.body, &l)
		if l.DoneReason != step.reason || !l.Done || l.Model != "tiny" {
			t.Errorf("%s %s: %s", step.path, step.body, quote(l))
		}
		eventually(t, "the models are those", func() bool { return cmp.Equal(names(), step.loaded) })
	}
	var l ollamaLine
	askOK(t, h, "/api/generate", `{`+ollamaGreedy+`,"prompt":"Hi there!","stream":false,"keep_alive":0}`, &l)
	eventually(t, "the model is gone", func() bool { return len(s.pool.list()) == 0 })
}

// TestOllamaErrors: faults are named by status and field in Ollama's shape.
func TestOllamaErrors(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"no such model", "/api/chat", `{"model":"llama9","messages":[{"role":"user","content":"a"}]}`, 404, `model "llama9" not found`},
		{"wrong type", "/api/chat", `{"model":"tiny","messages":{}}`, 400, "messages: is an object, want an array"},
		{"role", "/api/chat", `{"model":"tiny","messages":[{"role":"boss","content":"a"}]}`, 400, "messages[0].role: "},
		{"think", "/api/chat", `{"model":"tiny","think":"a lot"}`, 400, "think: want true"},
		{"format", "/api/generate", `{"model":"tiny","format":"yaml"}`, 400, "format: want"},
		{"schema", "/api/generate", `{"model":"tiny","prompt":"a","format":{"not":{"type":"object","minProperties":1}}}`, 400, "format: "},
		{"options", "/api/generate", `{"model":"tiny","options":{"top_p":2}}`, 400, "options.top_p: is 2"},
		{"num_ctx", "/api/generate", `{"model":"tiny","prompt":"a","options":{"num_ctx":99999}}`, 400, "options.num_ctx: is 99999"},
		{"mirostat", "/api/generate", `{"model":"tiny","options":{"mirostat":1}}`, 400, "options.mirostat: "},
		{"suffix", "/api/generate", `{"model":"tiny","prompt":"a","suffix":"b"}`, 400, "suffix: "},
		{"template", "/api/generate", `{"model":"tiny","prompt":"a","template":"b"}`, 400, "template: "},
		{"context", "/api/generate", `{"model":"tiny","prompt":"a","context":[1]}`, 400, "context: "},
		{"image", "/api/generate", `{"model":"tiny","prompt":"a","images":["!!"]}`, 400, "images[0]: not base64"},
		{"no image", "/api/generate", `{"model":"tiny","prompt":"a","images":["aGVsbG8="]}`, 400, ""},
		{"too long", "/api/generate", `{"model":"tiny","prompt":"` + strings.Repeat("word ", 3000) + `"}`, 400, ""},
		{"pull without a store", "/api/pull", `{"model":"hf.co/a/b"}`, 501, "no store"},
		{"push", "/api/push", `{"model":"tiny"}`, 501, "not pushed"},
		{"no route", "/api/nothing", `{}`, 404, "no such route"},
	} {
		status, data := ask(t, h, tt.path, tt.body)
		e := unmarshal[struct{ Error string }](t, string(data))
		if status != tt.status || e.Error == "" || !strings.Contains(e.Error, tt.message) {
			t.Errorf("%s: status %d: %s", tt.name, status, data)
		}
	}
}

// TestOllamaEmbed: both routes give the vectors that /v1/embeddings gives.
func TestOllamaEmbed(t *testing.T) {
	h := sharedServer(t)
	var want struct {
		Data []struct{ Embedding []float32 }
	}
	askOK(t, h, "/v1/embeddings", `{"model":"tiny","input":["red","blue"]}`, &want)
	var got struct {
		Model      string
		Embeddings [][]float32
		Count      int `json:"prompt_eval_count"`
	}
	askOK(t, h, "/api/embed", `{"model":"tiny","input":["red","blue"]}`, &got)
	if got.Model != "tiny" || got.Count == 0 || len(got.Embeddings) != 2 || !cmp.Equal(got.Embeddings[1], want.Data[1].Embedding) {
		t.Errorf("answered %s", quote(got))
	}
	var one struct{ Embedding []float32 }
	askOK(t, h, "/api/embeddings", `{"model":"tiny","prompt":"red"}`, &one)
	if !cmp.Equal(one.Embedding, want.Data[0].Embedding) {
		t.Error("the older route has another vector")
	}
	got.Embeddings = nil
	askOK(t, h, "/api/embed", `{"model":"tiny","input":""}`, &got)
	if got.Embeddings == nil || len(got.Embeddings) != 0 {
		t.Errorf("of no text %s", quote(got))
	}
}
