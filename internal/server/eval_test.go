package server

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

// item is a line of the evaluation set.
type item struct {
	ID, Task        string
	ReasoningEffort string           `json:"reasoning_effort"`
	Tools           json.RawMessage  `json:"tools"`
	Messages        []map[string]any `json:"messages"`
	Schema          json.RawMessage  // not in the set: the form of the answer
	Reference       struct {
		Content, Reasoning string
		ToolCall           *struct {
			Name string
			Args json.RawMessage
		} `json:"tool_call"`
	}
}

// firstOfTasks reads the first item of each task.
func firstOfTasks(t *testing.T) []item {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, "inkling-tiny-eval", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var items []item
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var it item
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			t.Fatal(err)
		}
		if !seen[it.Task] {
			items = append(items, it)
		}
		seen[it.Task] = true
	}
	return items
}

// openAI puts media into the parts that OpenAI's API has for them.
func (it *item) openAI(t *testing.T) string {
	t.Helper()
	for _, m := range it.Messages {
		parts, _ := m["content"].([]any)
		for i, p := range parts {
			parts[i] = openAIPart(t, p.(map[string]any))
		}
	}
	body := fmt.Sprintf(`"model":"tiny","temperature":0,"max_tokens":200,"reasoning_effort":%q,"messages":%s`, it.ReasoningEffort, quote(it.Messages))
	if it.Tools != nil && string(it.Tools) != "null" {
		body += `,"tools":` + string(it.Tools)
	}
	return body
}

func openAIPart(t *testing.T, p map[string]any) map[string]any {
	t.Helper()
	read := func(path any) string {
		data, err := os.ReadFile(filepath.Join(testutil.Testdata(t, "inkling-tiny-eval"), path.(string)))
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(data)
	}
	switch p["type"] {
	case "image":
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + read(p["image"]), "detail": "high"}}
	case "audio":
		return map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": read(p["audio"]), "format": "wav"}}
	}
	return p
}

// TestEvaluationSet asks for one item of each task, pictures, sounds and tools
// among them, and gets the reference's answers, streamed or not.
func TestEvaluationSet(t *testing.T) {
	h := sharedServer(t)
	items := firstOfTasks(t)
	if len(items) != 19 {
		t.Errorf("%d tasks, want 19", len(items))
	}
	for _, it := range items {
		t.Run(it.Task, func(t *testing.T) {
			got := bothWays(t, h, it.openAI(t)).Choices[0]
			if got.Message.Content.text != it.Reference.Content || got.Message.ReasoningContent != it.Reference.Reasoning {
				t.Errorf("answered %q after %q, want %q after %q", got.Message.Content.text, got.Message.ReasoningContent, it.Reference.Content, it.Reference.Reasoning)
			}
			want := it.Reference.ToolCall
			if want == nil {
				if len(got.Message.ToolCalls) > 0 || *got.FinishReason != "stop" {
					t.Errorf("calls %s, the end %s", quote(got.Message.ToolCalls), *got.FinishReason)
				}
				return
			}
			if len(got.Message.ToolCalls) != 1 || *got.FinishReason != "tool_calls" || got.Message.Content.kind != isNull {
				t.Fatalf("answered %s", quote(got))
			}
			var a, b any
			call := got.Message.ToolCalls[0]
			if err := json.Unmarshal([]byte(call.Function.Arguments), &a); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(want.Args, &b); err != nil {
				t.Fatal(err)
			}
			if call.Function.Name != want.Name || quote(a) != quote(b) || call.Type != "function" {
				t.Errorf("call %s, want %s%s", quote(call), want.Name, want.Args)
			}
		})
	}
}
