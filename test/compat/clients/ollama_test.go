package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
	capability "github.com/ollama/ollama/types/model"
)

func ollama(t *testing.T) *api.Client {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	return api.NewClient(u, http.DefaultClient)
}

// talk sends a chat and puts the lines of the answer together.
func talk(t *testing.T, req *api.ChatRequest) api.ChatResponse {
	t.Helper()
	var whole api.ChatResponse
	req.Model, req.Options = model, map[string]any{"temperature": 0, "num_predict": 200}
	err := ollama(t).Chat(t.Context(), req, func(r api.ChatResponse) error {
		m := whole.Message
		m.Content, m.Thinking, m.ToolCalls = m.Content+r.Message.Content, m.Thinking+r.Message.Thinking, append(m.ToolCalls, r.Message.ToolCalls...)
		whole = r
		whole.Message = m
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestOllamaChat(t *testing.T) {
	got := talk(t, &api.ChatRequest{Messages: []api.Message{{Role: "user", Content: question}}, Think: &api.ThinkValue{Value: false}})
	if got.Message.Content != wanted || !got.Done || got.DoneReason != "stop" || got.EvalCount != 13 || got.TotalDuration == 0 {
		t.Errorf("answered %+v", got)
	}
}

func TestOllamaMediaAndThinking(t *testing.T) {
	for _, name := range []string{"colour", "speech"} {
		it := task(t, name)
		got := talk(t, &api.ChatRequest{
			Messages: []api.Message{{Role: "user", Content: it.text(), Images: []api.ImageData{it.medium(t)}}}, Think: &api.ThinkValue{Value: "high"},
		})
		if got.Message.Content != it.Reference.Content || got.Message.Thinking != it.Reference.Reasoning {
			t.Errorf("%s: answered %q after %q, want %q after %q", name, got.Message.Content, got.Message.Thinking, it.Reference.Content, it.Reference.Reasoning)
		}
	}
}

func TestOllamaTools(t *testing.T) {
	it := task(t, "tool_call")
	var tools api.Tools
	for _, tool := range it.Tools {
		data, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{
			"name": tool.Function.Name, "description": tool.Function.Description, "parameters": tool.Function.Parameters,
		}})
		if err != nil {
			t.Fatal(err)
		}
		var one api.Tool
		if err := json.Unmarshal(data, &one); err != nil {
			t.Fatal(err)
		}
		tools = append(tools, one)
	}
	req := &api.ChatRequest{Messages: []api.Message{{Role: "user", Content: it.text()}}, Tools: tools, Think: &api.ThinkValue{Value: "high"}}
	got := talk(t, req)
	if len(got.Message.ToolCalls) != 1 || got.Message.Content != "" {
		t.Fatalf("answered %+v", got)
	}
	call := got.Message.ToolCalls[0]
	checkCall(t, it, call.Function.Name, call.Function.Arguments.String())
	got.Message.Role = "assistant"
	req.Messages = append(req.Messages, got.Message, api.Message{Role: "tool", ToolName: call.Function.Name, ToolCallID: call.ID, Content: `{"time":"12:30"}`})
	if after := talk(t, req); after.Message.Content == "" || len(after.Message.ToolCalls) > 0 {
		t.Errorf("after the tool's result %+v", after)
	}
}

func TestOllamaGenerate(t *testing.T) {
	var text string
	err := ollama(t).Generate(t.Context(), &api.GenerateRequest{
		Model: model, Prompt: question, Format: json.RawMessage(`{"enum":["Paris"]}`), Think: &api.ThinkValue{Value: false},
	}, func(r api.GenerateResponse) error {
		text += r.Response
		return nil
	})
	if err != nil || text != `"Paris"` {
		t.Errorf("error %v, answered %q", err, text)
	}
}

func TestOllamaServer(t *testing.T) {
	c, ctx := ollama(t), t.Context()
	if err := c.Heartbeat(ctx); err != nil {
		t.Error(err)
	}
	if v, err := c.Version(ctx); err != nil || v == "" {
		t.Errorf("version %q, error %v", v, err)
	}
	shown, err := c.Show(ctx, &api.ShowRequest{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(shown.Capabilities, capability.CapabilityVision) || !slices.Contains(shown.Capabilities, capability.CapabilityTools) || shown.Details.Family != "inkling" {
		t.Errorf("shown %+v", shown)
	}
	e, err := c.Embed(ctx, &api.EmbedRequest{Model: model, Input: []string{"red", "blue"}})
	if err != nil || len(e.Embeddings) != 2 {
		t.Errorf("error %v, vectors %+v", err, e)
	}
	running, err := c.ListRunning(ctx)
	if err != nil || len(running.Models) != 1 || running.Models[0].Name != model {
		t.Errorf("error %v, running %+v", err, running)
	}
	var bad api.StatusError
	if _, err := c.Show(ctx, &api.ShowRequest{Model: "none"}); !errors.As(err, &bad) || bad.StatusCode != 404 || bad.ErrorMessage == "" {
		t.Errorf("error %v", err)
	}
	if err := c.Pull(ctx, &api.PullRequest{Model: "llama3"}, func(api.ProgressResponse) error { return nil }); !errors.As(err, &bad) || bad.StatusCode != 400 {
		t.Errorf("error %v", err)
	}
}

// TestOllamaModels makes a model of a file, one of that model, and removes both.
func TestOllamaModels(t *testing.T) {
	c, ctx := ollama(t), t.Context()
	names := func(ctx context.Context) (names []string) {
		list, err := c.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Models {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		return names
	}
	shown, err := c.Show(ctx, &api.ShowRequest{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	data := modelFile(t, shown.Modelfile)
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if err := c.CreateBlob(ctx, digest, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	var last string
	progress := func(p api.ProgressResponse) error { last = p.Status; return nil }
	if err := c.Create(ctx, &api.CreateRequest{Model: "base", Files: map[string]string{"tiny.gguf": digest}}, progress); err != nil || last != "success" {
		t.Fatalf("error %v, the last status is %q", err, last)
	}
	if err := c.Create(ctx, &api.CreateRequest{Model: "brief", From: "base", System: "Answer briefly.", Parameters: map[string]any{"temperature": 0.0}}, progress); err != nil {
		t.Fatal(err)
	}
	if err := c.Copy(ctx, &api.CopyRequest{Source: "brief", Destination: "me/brief:v1"}); err != nil {
		t.Fatal(err)
	}
	if got := names(ctx); !slices.Equal(got, []string{"base:latest", "brief:latest", "me/brief:v1", model}) {
		t.Errorf("models %q", got)
	}
	for _, name := range []string{"base", "brief", "me/brief:v1"} {
		if err := c.Delete(ctx, &api.DeleteRequest{Model: name}); err != nil {
			t.Error(err)
		}
	}
	if got := names(ctx); !slices.Equal(got, []string{model}) {
		t.Errorf("models %q", got)
	}
}

// modelFile reads the file that a Modelfile of a path is about.
func modelFile(t *testing.T, modelfile string) []byte {
	t.Helper()
	path, ok := strings.CutPrefix(strings.TrimSpace(modelfile), "FROM ")
	if !ok {
		t.Fatalf("Modelfile %q", modelfile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
