package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

func TestResultJSON(t *testing.T) {
	s := &Session{Options: &Options{}, load: 1500 * time.Microsecond, Settings: engine.Sampling{Seed: 7}}
	full := &engine.Result{
		Text: "<b> & 中", Reasoning: "hm",
		ToolCalls: []chat.ToolCall{{ID: "call_1", Name: "f", Arguments: json.RawMessage(`{"x": 1.0}`)}},
		PromptIDs: []int32{1, 2, 3, 4, 5}, IDs: []int32{6, 7}, FinishReason: engine.FinishToolCalls, Cached: 1,
		PromptTime: 2 * time.Second, GenerateTime: 500 * time.Millisecond,
	}
	for _, tc := range []struct {
		name string
		res  *engine.Result
		want string
	}{
		{"full", full, `{"text":"<b> & 中","reasoning":"hm",` +
			`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1.0}"}}],` +
			`"token_ids":[6,7],"prompt_token_ids":[1,2,3,4,5],"finish_reason":"tool_calls",` +
			`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1}},` +
			`"timings":{"load_ms":1.5,"prompt_ms":2000,"prompt_per_second":2,"predicted_ms":500,"predicted_per_second":4},"seed":7}`},
		{"no tool calls, no time", &engine.Result{Text: "a", PromptIDs: []int32{1}, IDs: []int32{2}, FinishReason: engine.FinishStop}, `{"text":"a","reasoning":"","tool_calls":[],` +
			`"token_ids":[2],"prompt_token_ids":[1],"finish_reason":"stop",` +
			`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"prompt_tokens_details":{"cached_tokens":0}},` +
			`"timings":{"load_ms":1.5,"prompt_ms":0,"prompt_per_second":0,"predicted_ms":0,"predicted_per_second":0},"seed":7}`},
		{"guesses", &engine.Result{
			Text: "a", PromptIDs: []int32{1}, IDs: []int32{2}, FinishReason: engine.FinishStop,
			Drafts: engine.Drafts{Rounds: 5, Drafted: []int{5, 4}, Accepted: []int{3, 1}},
		}, `{"text":"a","reasoning":"","tool_calls":[],` +
			`"token_ids":[2],"prompt_token_ids":[1],"finish_reason":"stop",` +
			`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"prompt_tokens_details":{"cached_tokens":0}},` +
			`"timings":{"load_ms":1.5,"prompt_ms":0,"prompt_per_second":0,"predicted_ms":0,"predicted_per_second":0,` +
			`"draft_n":9,"draft_n_accepted":4,"draft_by_depth":[{"drafted":5,"accepted":3},{"drafted":4,"accepted":1}]},"seed":7}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			if err := PrintResult(&b, NewResult(tc.res, s)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want+"\n", b.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTimingsLine(t *testing.T) {
	res := &engine.Result{PromptIDs: make([]int32, 30), Cached: 10, IDs: make([]int32, 8), PromptTime: 2 * time.Second, GenerateTime: 500 * time.Millisecond}
	res.Drafts = engine.Drafts{Rounds: 3, Drafted: []int{3, 2}, Accepted: []int{3, 1}}
	const want = "prompt: 20 tokens, 10.0 tok/s and 10 cached; answer: 8 tokens, 16.0 tok/s, 4 of 5 guesses right; load: 40 ms"
	if got := timingsOf(res, 40*time.Millisecond).String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
