package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/session"
)

// devItem is a line of the evaluation set of the trained checkpoint.
type devItem struct {
	ID        string          `json:"id"`
	Task      string          `json:"task"`
	Effort    string          `json:"reasoning_effort"`
	Tools     json.RawMessage `json:"tools"`
	Messages  json.RawMessage `json:"messages"`
	PromptIDs []int32         `json:"prompt_token_ids"`
	Reference struct {
		IDs       []int32 `json:"token_ids"`
		Content   string  `json:"content"`
		Reasoning string  `json:"reasoning"`
		ToolCall  *struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"tool_call"`
	} `json:"reference"`
}

// TestDevSet asks the first item of each task of the evaluation set, as a user
// would with --messages and --json; package engine has all of them.
func TestDevSet(t *testing.T) {
	set := filepath.Join("..", "..", "testdata", "inkling-tiny-eval")
	data, err := os.ReadFile(filepath.Join(set, "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// Paths in the file count from its folder.
	dir := t.TempDir()
	media, err := filepath.Abs(filepath.Join(set, "media"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(media, filepath.Join(dir, "media")); err != nil {
		t.Fatal(err)
	}
	var tasks []string
	for line := range bytes.Lines(data) {
		var it devItem
		if err := json.Unmarshal(line, &it); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(tasks, it.Task) {
			continue
		}
		tasks = append(tasks, it.Task)
		t.Run(it.Task, func(t *testing.T) { it.check(t, dir) })
	}
	if len(tasks) < 10 {
		t.Errorf("%d tasks: %q", len(tasks), tasks)
	}
}

func (it *devItem) check(t *testing.T, dir string) {
	body, err := json.Marshal(map[string]json.RawMessage{"messages": it.Messages, "tools": it.Tools})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, it.ID+".json")
	if err := os.WriteFile(path, body, 0o666); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"inkling-run", "run", filepath.Join(models, "tiny-F32.gguf"), "--messages", path, "--json", "--effort", it.Effort, "--kv", "f32", "-t", "1"}
	if code := run(args, strings.NewReader("not read"), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit status %d: %s", code, &stderr)
	}
	var got session.Result
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &stdout)
	}
	want := it.Reference
	if d := cmp.Diff(it.PromptIDs, got.PromptTokenIDs); d != "" {
		t.Errorf("prompt (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want.IDs, got.TokenIDs); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
	if got.Text != want.Content || got.Reasoning != want.Reasoning {
		t.Errorf("%q after %q, want %q after %q", got.Text, got.Reasoning, want.Content, want.Reasoning)
	}
	if got.Usage.TotalTokens != len(it.PromptIDs)+len(want.IDs) {
		t.Errorf("usage %+v of %d and %d tokens", got.Usage, len(it.PromptIDs), len(want.IDs))
	}
	finish, calls := "stop", 0
	if want.ToolCall != nil {
		finish, calls = "tool_calls", 1
	}
	if got.FinishReason != finish || len(got.ToolCalls) != calls {
		t.Fatalf("finish reason %q with calls %v, want %q with %d", got.FinishReason, got.ToolCalls, finish, calls)
	}
	if calls == 1 {
		var gotArgs, wantArgs any
		if err := json.Unmarshal([]byte(got.ToolCalls[0].Function.Arguments), &gotArgs); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want.ToolCall.Args, &wantArgs); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(wantArgs, gotArgs); d != "" || got.ToolCalls[0].Function.Name != want.ToolCall.Name {
			t.Errorf("calls %+v, want %+v", got.ToolCalls[0], want.ToolCall)
		}
	}
}
