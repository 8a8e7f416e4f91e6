package server

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const greedy = `"model":"tiny","temperature":0,"max_tokens":60,"reasoning_effort":"none"`

func TestChatCompletion(t *testing.T) {
	h := sharedServer(t)
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"What is the capital of France?"}]}`, &resp)
	if got := resp.Choices[0].Message.Content.text; got != "The capital of France is Paris." {
		t.Errorf("answered %q", got)
	}
	if *resp.Choices[0].FinishReason != "stop" || resp.Object != "chat.completion" || resp.Model != "tiny" || !strings.HasPrefix(resp.ID, "chatcmpl-") {
		t.Errorf("%+v", resp)
	}
	if u := resp.Usage; u.PromptTokens != 23 || u.CompletionTokens != 13 || u.TotalTokens != 36 {
		t.Errorf("usage %+v", u)
	}
}

// joined puts the chunks of a stream together.
func joined(t *testing.T, chunks []string) *chatResponse {
	t.Helper()
	if last := chunks[len(chunks)-1]; last != "[DONE]" {
		t.Fatalf("the stream ends with %s", last)
	}
	var all *chatResponse
	answers := map[int]*chatChoice{}
	n := 0
	for _, text := range chunks[:len(chunks)-1] {
		var c chatResponse
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if c.Object != "chat.completion.chunk" {
			t.Fatalf("chunk %s", text)
		}
		if all == nil {
			all = &chatResponse{ID: c.ID, Created: c.Created, Model: c.Model, SystemFingerprint: c.SystemFingerprint}
		}
		if c.ID != all.ID || c.Created != all.Created || c.Model != all.Model {
			t.Errorf("chunk of another answer: %s", text)
		}
		if c.Usage != nil {
			all.Usage = c.Usage
		}
		for _, ch := range c.Choices {
			a := answers[ch.Index]
			if a == nil {
				a = &chatChoice{Index: ch.Index, Message: &chatAnswer{}}
				answers[ch.Index] = a
				n = max(n, ch.Index+1)
			}
			addDelta(t, a, &ch)
		}
	}
	for i := range n {
		if m := answers[i].Message; m.Content.text == "" && len(m.ToolCalls) > 0 {
			m.Content = nullText
		}
		all.Choices = append(all.Choices, *answers[i])
	}
	return all
}

func addDelta(t *testing.T, a, ch *chatChoice) {
	t.Helper()
	m, d := a.Message, ch.Delta
	if d.Role != "" {
		m.Role = d.Role
	}
	m.Content = text(m.Content.text + d.Content.text)
	m.ReasoningContent += d.ReasoningContent
	for _, c := range d.ToolCalls {
		if *c.Index == len(m.ToolCalls) {
			m.ToolCalls = append(m.ToolCalls, toolCallJSON{ID: c.ID, Type: c.Type, Function: toolFunctionJSON{Name: c.Function.Name}})
		}
		m.ToolCalls[*c.Index].Function.Arguments += c.Function.Arguments
	}
	if ch.Logprobs != nil {
		if a.Logprobs == nil {
			a.Logprobs = &chatLogprobs{}
		}
		a.Logprobs.Content = append(a.Logprobs.Content, ch.Logprobs.Content...)
	}
	if ch.FinishReason != nil {
		if a.FinishReason != nil {
			t.Error("a second finish reason")
		}
		a.FinishReason = ch.FinishReason
	}
}

// TestStreamEqualsAnswer: the chunks of a stream, put together, are the answer
// that is not streamed, for every kind of request.
func TestStreamEqualsAnswer(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct{ name, body string }{
		{"logprobs", `"logprobs":true,"top_logprobs":3,"messages":[{"role":"user","content":"What is the capital of France?"}]`},
		{"two answers", `"n":2,"messages":[{"role":"user","content":"What is 2 + 2?"}]`},
		{"sampled", `"temperature":2,"seed":7,"n":3,"messages":[{"role":"user","content":"Hi there!"}]`},
		{"cut short", `"max_completion_tokens":4,"messages":[{"role":"user","content":"What is the capital of France?"}]`},
		{"stopped", `"stop":["of Fr"],"messages":[{"role":"user","content":"What is the capital of France?"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) { bothWays(t, h, greedy+","+tt.body) })
	}
}

// bothWays sends a request with and without stream and returns the answer.
func bothWays(t *testing.T, h *httptest.Server, body string) *chatResponse {
	t.Helper()
	var whole chatResponse
	askOK(t, h, "/v1/chat/completions", "{"+body+"}", &whole)
	got := joined(t, events(t, h, "/v1/chat/completions", `{`+body+`,"stream":true,"stream_options":{"include_usage":true}}`))
	for _, r := range []*chatResponse{&whole, got} {
		r.ID, r.Object, r.Created = "", "", 0
		r.Usage.PromptTokensDetails.CachedTokens = 0 // the second time more is there
		for i := range r.Choices {
			r.Choices[i].Logprobs.round()
			for j := range r.Choices[i].Message.ToolCalls {
				call := &r.Choices[i].Message.ToolCalls[j]
				if call.ID == "" {
					t.Error("a tool call without an id")
				}
				call.ID = ""
			}
		}
	}
	if diff := cmp.Diff(strings.Split(quote(whole), ","), strings.Split(quote(got), ",")); diff != "" {
		t.Errorf("answer (-) and stream (+):\n%s", diff)
	}
	return &whole
}

// round takes away the digits of log-probabilities that depend on how many rows of
// the prompt were computed together.
func (l *chatLogprobs) round() {
	if l == nil {
		return
	}
	for i := range l.Content {
		c := &l.Content[i]
		c.Logprob = rounded(c.Logprob)
		for j := range c.Top {
			c.Top[j].Logprob = rounded(c.Top[j].Logprob)
		}
	}
}

func rounded(v float64) float64 { return math.Round(v*1e3)/1e3 + 0 }

// TestLogprobs: the token that greedy sampling takes is the likeliest one, and the
// bytes of all are the content.
func TestLogprobs(t *testing.T) {
	h := sharedServer(t)
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", `{`+greedy+`,"logprobs":true,"top_logprobs":20,"messages":[{"role":"user","content":"What is the capital of France?"}]}`, &resp)
	var got []byte
	for _, tok := range resp.Choices[0].Logprobs.Content {
		if len(tok.Top) != 20 || tok.Top[0].Token != tok.Token || tok.Top[0].Logprob != tok.Logprob || tok.Logprob > 0 || tok.Logprob < -0.01 {
			t.Errorf("token %s", quote(tok))
		}
		for _, b := range tok.Bytes {
			got = append(got, byte(b))
		}
	}
	if string(got) != resp.Choices[0].Message.Content.text {
		t.Errorf("bytes of %q, content %q", got, resp.Choices[0].Message.Content.text)
	}
}

// TestHistory: what an assistant thought comes back to it by either name.
func TestHistory(t *testing.T) {
	h := sharedServer(t)
	prompt := map[string]int{}
	for name, reasoning := range map[string]string{
		"none": "", "reasoning_content": `"reasoning_content":"I know this fact.",`, "reasoning": `"reasoning":"I know this fact.",`,
	} {
		var resp chatResponse
		askOK(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"What is the capital of France?"},{"role":"assistant",`+reasoning+
			`"content":"The capital of France is Paris."},{"role":"user","content":"And of Italy?"}]}`, &resp)
		prompt[name] = resp.Usage.PromptTokens
	}
	if prompt["reasoning"] != prompt["reasoning_content"] || prompt["reasoning"] <= prompt["none"] {
		t.Errorf("tokens of the prompts: %v", prompt)
	}
}

// TestNoEscapes: text that is HTML or spells control tokens is text.
func TestNoEscapes(t *testing.T) {
	h := sharedServer(t)
	const text = "</b>&\u2028<|end_message|>"
	status, data := ask(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"Hi"}],"regex":`+quote(regexp.QuoteMeta(text))+`}`)
	var resp chatResponse
	if err := json.Unmarshal(data, &resp); err != nil || status != 200 {
		t.Fatalf("status %d: %s", status, data)
	}
	if got := resp.Choices[0].Message.Content.text; got != text || !strings.Contains(string(data), `"</b>&`) {
		t.Errorf("answered %s", data)
	}
}

// TestKimi: the other family answers through the same routes.
func TestKimi(t *testing.T) {
	o := testOptions(t)
	o.Models = []*Model{fileModel(t, kimiFile(t))}
	_, h := newTestServer(t, o)
	got := bothWays(t, h, `"temperature":0,"max_tokens":100,"reasoning_effort":"none","messages":[{"role":"user","content":"What is the capital of France?"}]`)
	if text := got.Choices[0].Message.Content.text; text != "The capital of France is Paris." || got.Model != "kimi-tiny-F32" {
		t.Errorf("%s answered %q", got.Model, text)
	}
}

func TestSpell(t *testing.T) {
	for in, want := range map[string]string{
		"abc": "abc", "é": "é", "\xc3": `\xc3`, "a\xe2\x82": `a\xe2\x82`, "\x82\xacb": `\x82\xacb`, "\ufffd": "\ufffd", "": "",
	} {
		if got := spell([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
