package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/models"
)

// TestStop ends an answer at each of its parts.
func TestStop(t *testing.T) {
	e := openWith(t, Options{})
	whole := generate(t, e, question("What is the capital of France?"))
	for i := range len(whole.Text) {
		for _, n := range []int{1, 4, 9} {
			stop := whole.Text[i:min(i+n, len(whole.Text))]
			r := question("What is the capital of France?")
			r.Stop = []string{"not in it", stop}
			pieces := ""
			r.OnDelta = func(d chat.Delta) error { pieces += d.Text; return nil }
			res := generate(t, e, r)
			before, _, _ := strings.Cut(whole.Text, stop)
			if res.Text != before || pieces != before || res.StopSequence != stop || res.FinishReason != FinishStop {
				t.Errorf("stop %q: %q in pieces %q, finished by %s %q, want %q", stop, res.Text, pieces, res.FinishReason, res.StopSequence, before)
			}
		}
	}
	r := question("What is the capital of France?")
	r.Stop = []string{whole.Text + "!"}
	if res := generate(t, e, r); res.Text != whole.Text || res.StopSequence != "" {
		t.Errorf("held back: %q, want %q", res.Text, whole.Text)
	}
}

// TestLogprobs compares with a log-softmax of the same logits in float64.
func TestLogprobs(t *testing.T) {
	e := openWith(t, Options{})
	m := watch(t, e)
	var rows [][]float32
	m.after = func(_ []models.Batch, out models.Outputs) error {
		rows = append(rows, slices.Clone(out.Logits))
		return nil
	}
	r := question("What is the capital of France?")
	r.Logprobs, r.TopLogprobs = true, 5
	r.Sampling.Temperature, r.Sampling.Seed = 1.5, 3 // changes the choice, not what is told
	r.LogitBias = map[int32]float32{40: 3}
	var tokens []Token
	r.OnToken = func(tok Token) error { tokens = append(tokens, tok); return nil }
	res := generate(t, e, r)
	if len(tokens) != len(res.IDs) || len(rows) < len(tokens) {
		t.Fatalf("%d tokens, %d steps of %d ids", len(tokens), len(rows), len(res.IDs))
	}
	for i, tok := range tokens {
		want := logSoftmax(rows[i])
		if d := math.Abs(float64(tok.Logprob) - want[tok.ID]); d > 1e-6*max(1, math.Abs(want[tok.ID])) {
			t.Errorf("token %d: %v, want %v", i, tok.Logprob, want[tok.ID])
		}
		order := make([]int32, len(want))
		for id := range order {
			order[id] = int32(id)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return -compare(want[a], want[b]) })
		for j, top := range tok.Top {
			if top.ID != order[j] || math.Abs(float64(top.Logprob)-want[top.ID]) > 1e-6*max(1, math.Abs(want[top.ID])) {
				t.Errorf("token %d, place %d: %d with %v, want %d with %v", i, j, top.ID, top.Logprob, order[j], want[order[j]])
			}
		}
		if len(tok.Top) != 5 {
			t.Errorf("token %d: %d places, want 5", i, len(tok.Top))
		}
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// logSoftmax by its definition.
func logSoftmax(logits []float32) []float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, float64(l))
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = float64(l) - top - math.Log(sum)
	}
	return out
}

// TestKinds: tokens know which part of the answer they belong to.
func TestKinds(t *testing.T) {
	e := openWith(t, Options{})
	items := readItems(t)
	it := items[slices.IndexFunc(items, func(it item) bool { return it.Task == "tool_call" && it.Reference.Reasoning != "" })]
	r := it.request(t)
	var text [ControlToken + 1]string // by kind
	r.OnToken = func(tok Token) error { text[tok.Kind] += string(tok.Piece); return nil }
	res := generate(t, e, r)
	call := res.ToolCalls[0]
	body := `{"name":"` + call.Name + `","args":` + string(call.Arguments) + "}"
	want := [ControlToken + 1]string{ContentToken: res.Text, ReasoningToken: it.Reference.Reasoning, ToolToken: call.Name + body}
	if text != want {
		t.Errorf("kinds %q, want %q", text, want)
	}
}

// TestRequestErrors: what can not be kept is the caller's fault, and says so.
func TestRequestErrors(t *testing.T) {
	e := openWith(t, Options{})
	for _, c := range []struct {
		name, param string
		change      func(*Request)
	}{
		{"temperature", "", func(r *Request) { r.Sampling.Temperature = -1 }},
		{"negative limit", "max_tokens", func(r *Request) { r.MaxTokens = -1 }},
		{"empty stop string", "stop", func(r *Request) { r.Stop = []string{""} }},
		{"broken stop string", "stop", func(r *Request) { r.Stop = []string{"\xff"} }},
		{"long stop string", "stop", func(r *Request) { r.Stop = []string{strings.Repeat("x", 2000)} }},
		{"many stop strings", "stop", func(r *Request) { r.Stop = make([]string, 100) }},
		{"log-probabilities", "top_logprobs", func(r *Request) { r.TopLogprobs = 21 }},
		{"bias of no token", "logit_bias", func(r *Request) { r.LogitBias = map[int32]float32{99999: 1} }},
		{"bias NaN", "logit_bias", func(r *Request) { r.LogitBias = map[int32]float32{1: nan} }},
		{"unknown choice", "tool_choice", func(r *Request) { r.ToolChoice.Mode = "maybe" }},
		{"no tools", "tool_choice", func(r *Request) { r.ToolChoice.Mode = ToolsRequired }},
		{"unknown tool", "tool_choice", func(r *Request) {
			r.Conversation.Tools = []chat.Tool{chat.Tool(`{"name":"a"}`)}
			r.ToolChoice = ToolChoice{ToolsFunction, "b"}
		}},
		{"raw and empty", "", func(r *Request) { r.Raw = true }},
		{"unknown role", "", func(r *Request) { r.Conversation.Messages[0].Role = "nobody" }},
	} {
		r := question("?")
		c.change(r)
		_, err := e.Generate(context.Background(), r)
		var bad *RequestError
		if !errors.As(err, &bad) || bad.Param != c.param {
			t.Errorf("%s: error %#v, want one of %q", c.name, err, c.param)
		}
	}
}

// TestEmbed: vectors are the means of the hidden states, of length 1, whatever
// the chunks, and answers are as ever afterwards.
func TestEmbed(t *testing.T) {
	e, small := openWith(t, Options{Parallel: 2}), openWith(t, Options{UBatch: 3})
	texts := []string{"The sky is blue.", "What is the capital of France?", "The sky is blue."}
	got, n, err := e.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	chunked, _, err := small.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[0], got[2]) || slices.Equal(got[0], got[1]) || n != 2*len(e.vocab.Encode(texts[0]))+len(e.vocab.Encode(texts[1])) {
		t.Errorf("%d tokens; equal texts must have equal vectors, and others not", n)
	}
	for i, v := range got {
		length, cos := 0.0, 0.0
		for j, x := range v {
			length += float64(x) * float64(x)
			cos += float64(x) * float64(chunked[i][j])
		}
		if len(v) != e.Config().Embd || math.Abs(length-1) > 1e-5 || math.Abs(cos-1) > 1e-5 {
			t.Errorf("text %d: %d values of length² %v, in chunks at cosine %v", i, len(v), length, cos)
		}
	}
	if res := generate(t, e, question("What is the capital of France?")); res.Text != "The capital of France is Paris." {
		t.Errorf("afterwards: %q", res.Text)
	}
	var bad *RequestError
	if _, _, err := e.Embed(context.Background(), []string{""}); !errors.As(err, &bad) {
		t.Errorf("an empty text: error %v", err)
	}
	if _, _, err := e.Embed(context.Background(), []string{strings.Repeat("word ", 3000)}); !errors.Is(err, ErrContextFull) {
		t.Errorf("a long text: error %v", err)
	}
	r := question("?")
	res := generate(t, e, r)
	if n, err := e.CountTokens(context.Background(), r); err != nil || n != res.PromptTokens {
		t.Errorf("counted %d tokens, %v, want %d", n, err, res.PromptTokens)
	}
}
