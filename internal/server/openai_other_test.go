package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// joinedCompletion puts the chunks of a stream together.
func joinedCompletion(t *testing.T, chunks []string) *completionsResponse {
	t.Helper()
	if last := chunks[len(chunks)-1]; last != "[DONE]" {
		t.Fatalf("the stream ends with %s", last)
	}
	all := &completionsResponse{}
	for _, text := range chunks[:len(chunks)-1] {
		var c completionsResponse
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all.ID, all.Object, all.Created, all.Model, all.SystemFingerprint = c.ID, c.Object, c.Created, c.Model, c.SystemFingerprint
		if c.Usage != nil {
			all.Usage = c.Usage
		}
		for _, ch := range c.Choices {
			for len(all.Choices) <= ch.Index {
				all.Choices = append(all.Choices, completionChoice{Index: len(all.Choices)})
			}
			all.Choices[ch.Index].add(ch)
		}
	}
	return all
}

// rawPrompt is what the template makes of a question; the model answers in its
// protocol.
const rawPrompt = `<|message_system|><|content_text|>Thinking effort level: 0.0<|end_message|><|message_user|><|content_text|>What is the capital of France?<|end_message|><|message_model|>`

func TestCompletions(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct {
		name, body string
		want       []string // the texts; nil: not checked
	}{
		{"a prompt of the template", `"max_tokens":40,"prompt":` + quote(rawPrompt), []string{"The capital of France is Paris."}},
		{"plain text", `"prompt":"The capital of France is"`, []string{" P"}},
		{"plain text with a stop", `"prompt":"The capital of France is","stop":"."`, []string{" P"}},
		{"echo", `"echo":true,"prompt":"The capital of France is","max_tokens":1`, []string{"The capital of France is P"}},
		{
			"two prompts, two answers", `"n":2,"max_tokens":40,"prompt":[` + quote(rawPrompt) + `,` + quote(strings.Replace(rawPrompt, "France", "Italy", 1)) + `]`,
			[]string{"The capital of France is Paris.", "The capital of France is Paris.", "The capital of Italy is Rome.", "The capital of Italy is Rome."},
		},
		{"logprobs", `"logprobs":2,"max_tokens":40,"prompt":` + quote(rawPrompt), []string{"The capital of France is Paris."}},
		{"ids", `"max_tokens":40,"prompt":[1212,1214,312,310,311,25,220,15,13,15,1220,1210,1214,394,267,259,541,393,929,1101,30,1220,1211]`, []string{"The capital of France is Paris."}},
		{"lists of ids", `"prompt":[[260,541],[260]]`, []string{"", ""}},
		{"stop", `"stop":" is","max_tokens":40,"prompt":` + quote(rawPrompt), []string{"The capital of France"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `"model":"tiny","temperature":0,` + tt.body
			var whole completionsResponse
			askOK(t, h, "/v1/completions", "{"+body+"}", &whole)
			got := joinedCompletion(t, events(t, h, "/v1/completions", `{`+body+`,"stream":true,"stream_options":{"include_usage":true}}`))
			for _, r := range []*completionsResponse{&whole, got} {
				r.ID, r.Created = "", 0
				r.Usage.PromptTokensDetails.CachedTokens = 0
				for i := range r.Choices {
					r.Choices[i].Logprobs.round()
				}
			}
			if diff := cmp.Diff(&whole, got); diff != "" {
				t.Errorf("answer (-) and stream (+):\n%s", diff)
			}
			for i, want := range tt.want {
				if i >= len(whole.Choices) || !strings.HasPrefix(whole.Choices[i].Text, want) {
					t.Errorf("answer %d of %s, want %q", i, quote(whole.Choices), want)
				}
			}
			t.Log(quote(whole.Choices))
		})
	}
}

func (l *completionLogprobs) round() {
	if l == nil {
		return
	}
	for i, v := range l.TokenLogprobs {
		l.TokenLogprobs[i] = rounded(v)
		for k, v := range l.TopLogprobs[i] {
			l.TopLogprobs[i][k] = rounded(v)
		}
	}
}

func TestBadCompletions(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct{ name, body, param string }{
		{"no prompt", `{}`, "prompt"},
		{"empty prompt", `{"prompt":["a",""]}`, "prompt[1]"},
		{"ids that are none", `{"prompt":[1,2.5]}`, "prompt[1]"},
		{"ids and text", `{"prompt":[1,"a"]}`, "prompt"},
		{"an id too high", `{"prompt":[1000000]}`, ""},
		{"empty ids", `{"prompt":[[]]}`, "prompt[0]"},
		{"echo of ids", `{"prompt":[1],"echo":true}`, "echo"},
		{"suffix", `{"prompt":"a","suffix":"b"}`, "suffix"},
		{"echo with logprobs", `{"prompt":"a","echo":true,"logprobs":1}`, "echo"},
		{"best_of", `{"prompt":"a","best_of":2}`, "best_of"},
		{"logprobs", `{"prompt":"a","logprobs":6}`, "logprobs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, data := ask(t, h, "/v1/completions", tt.body)
			if _, _, param, _ := errorOf(t, data); status != http.StatusBadRequest || param != tt.param {
				t.Errorf("status %d, param %q: %s", status, param, data)
			}
		})
	}
}

func TestModels(t *testing.T) {
	h := sharedServer(t)
	for path, want := range map[string]string{
		"/v1/models":             `{"object":"list","data":[{"id":"tiny","object":"model","created":`,
		"/v1/models/tiny":        `{"id":"tiny","object":"model","created":`,
		"/v1/models/Tiny:latest": `{"id":"tiny","object":"model","created":`,
	} {
		resp, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var buf [200]byte
		n, _ := resp.Body.Read(buf[:])
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(buf[:n]), want) {
			t.Errorf("%s: status %d: %s", path, resp.StatusCode, buf[:n])
		}
	}
}

type embeddingsAnswer struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
	}
}

func TestEmbeddings(t *testing.T) {
	h := sharedServer(t)
	var floats, encoded embeddingsAnswer
	const body = `"model":"tiny","input":["The sky is blue.","What is the capital of France?"]`
	askOK(t, h, "/v1/embeddings", `{`+body+`}`, &floats)
	askOK(t, h, "/v1/embeddings", `{`+body+`,"encoding_format":"base64"}`, &encoded)
	if len(floats.Data) != 2 || floats.Data[1].Index != 1 || floats.Usage.PromptTokens < 10 {
		t.Fatalf("%+v", floats)
	}
	for i := range floats.Data {
		var v []float32
		var text string
		if err := json.Unmarshal(floats.Data[i].Embedding, &v); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded.Data[i].Embedding, &text); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != 4*len(v) {
			t.Fatalf("%d bytes for %d values: %v", len(raw), len(v), err)
		}
		length := 0.0
		for j, x := range v {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:])); got != x {
				t.Fatalf("value %d of text %d: %g and %g", j, i, x, got)
			}
			length += float64(x) * float64(x)
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("text %d: length %g, want 1", i, math.Sqrt(length))
		}
	}
}

func TestBadEmbeddings(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct{ name, body, param string }{
		{"no input", `{}`, "input"},
		{"empty text", `{"input":["a",""]}`, "input[1]"},
		{"ids", `{"input":[[1,2]]}`, "input[0]"},
		{"format", `{"input":"a","encoding_format":"int8"}`, "encoding_format"},
		{"dimensions", `{"input":"a","dimensions":7}`, "dimensions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, data := ask(t, h, "/v1/embeddings", tt.body)
			if _, _, param, _ := errorOf(t, data); status != http.StatusBadRequest || param != tt.param {
				t.Errorf("status %d, param %q: %s", status, param, data)
			}
		})
	}
}
