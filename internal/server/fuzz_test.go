package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/store"
)

// fuzzBodies sends bodies to routes of a server whose model cannot be loaded, so that all that comes before and after it runs: reading,
// checks, errors in the protocol's form. Nothing may panic, and every answer must be JSON.
func fuzzBodies(f *testing.F, paths []string, seeds ...string) {
	f.Helper()
	for i := range paths {
		for _, s := range seeds {
			f.Add(uint8(i), []byte(s))
		}
	}
	broken := filepath.Join(f.TempDir(), "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUF"), 0o600); err != nil {
		f.Fatal(err)
	}
	st, err := store.Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	var log bytes.Buffer
	s, err := New(Options{
		Models: []*Model{{Name: "tiny", Path: broken, Modified: time.Unix(1, 0)}}, Store: st, KeepAlive: Forever, Version: "test",
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		path := paths[int(route)%len(paths)]
		log.Reset()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
		if strings.Contains(log.String(), "msg=panic") {
			t.Fatalf("%s: %s", path, log.String())
		}
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("%s: status %d", path, w.Code)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: status %d with %q, which is not JSON", path, w.Code, w.Body.Bytes())
		}
	})
}

func FuzzOpenAI(f *testing.F) {
	fuzzBodies(
		f, []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings"},
		`{"model":"tiny","messages":[{"role":"system","content":"s"},{"role":"user","name":"n","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ==","detail":"low"}},{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}}]},{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"c"}],"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false}`,
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":5,"n":2,"stop":["a","b"],"seed":1,"temperature":0.5,"top_p":0.9,"logprobs":true,"top_logprobs":3,"logit_bias":{"5":-100},"frequency_penalty":1,"presence_penalty":-1,"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`,
		`{"model":"tiny","prompt":["a",[1,2]],"echo":true,"logprobs":2,"best_of":1,"suffix":"s","stop":"x"}`,
		`{"model":"tiny","input":["a","b"],"encoding_format":"base64","dimensions":3}`,
		`{"model":"absent","messages":[]}`,
		`{"messages":[{"role":"user","content":"`+strings.Repeat("[", 200)+`"}],"x":`+strings.Repeat("[", 200),
	)
}

func FuzzOllama(f *testing.F) {
	fuzzBodies(
		f, []string{"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/create", "/api/copy", "/api/delete"},
		`{"model":"tiny","messages":[{"role":"user","content":"a","images":["QQ=="]},{"role":"assistant","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","tool_name":"f","content":"c"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"think":"low","format":{"type":"object"},"stream":false,"keep_alive":"5m","options":{"num_predict":3,"temperature":0.5,"top_k":4,"stop":["x"],"num_ctx":100,"seed":-1}}`,
		`{"model":"tiny","prompt":"a","system":"s","raw":true,"suffix":"x","context":[1],"template":"t","keep_alive":-1,"format":"json"}`,
		`{"model":"tiny","input":["a"],"truncate":true,"dimensions":2}`,
		`{"model":"tiny","prompt":"a"}`,
		`{"model":"tiny","verbose":true}`,
		`{"model":"new","from":"tiny","system":"s","template":"{{ x }}","parameters":{"stop":["a"],"num_ctx":5},"messages":[{"role":"user","content":"a"}],"files":{"a.gguf":"sha256:0"},"stream":false}`,
		`{"source":"tiny","destination":"../../x"}`,
		`{"model":""}`,
	)
}

func FuzzAnthropic(f *testing.F) {
	fuzzBodies(
		f, []string{"/v1/messages", "/v1/messages/count_tokens"},
		`{"model":"tiny","max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"c"}],"is_error":true}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":1024},"stop_sequences":["x"],"stream":true,"temperature":1,"top_k":5,"metadata":{"user_id":"u"}}`,
		`{"model":"tiny","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`,
		`{"model":"tiny","max_tokens":0,"messages":[{"role":"x","content":null}]}`,
	)
}

func FuzzResponses(f *testing.F) {
	fuzzBodies(
		f, []string{"/v1/responses"},
		`{"model":"tiny","instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"o"},{"type":"reasoning","summary":[]}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}],"tool_choice":"required","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"reasoning":{"effort":"low"},"max_output_tokens":5,"store":false,"stream":true,"previous_response_id":"resp_x"}`,
		`{"model":"tiny","input":"a","top_logprobs":2,"include":["message.output_text.logprobs"]}`,
		`{"model":"tiny","input":[{"role":"user","content":"a"}]}`,
	)
}
