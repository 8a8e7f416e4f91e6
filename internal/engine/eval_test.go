package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/testutil"
	_ "github.com/inkling-go/inkling/models/inkling"
)

var ggufDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		panic(err)
	}
	ggufDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var converted sync.Map // from outtype to func() error

// tiny converts the trained checkpoint once per type and returns the text file.
func tiny(t testing.TB, outType convert.OutType) string {
	t.Helper()
	once, _ := converted.LoadOrStore(outType, sync.OnceValue(func() error {
		_, err := convert.Run(context.Background(), convert.Options{
			Dir: filepath.Join("..", "..", "testdata", "inkling-tiny"), OutDir: ggufDir, OutType: outType,
		})
		return err
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(ggufDir, "inkling-tiny-"+strings.ToUpper(string(outType))+".gguf")
}

func openTiny(t testing.TB, outType convert.OutType, kv binding.DType) *Engine {
	t.Helper()
	e, err := Open(context.Background(), Options{Model: tiny(t, outType), KV: kv, Threads: 1, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// item is a line of the evaluation set.
type item struct {
	ID              string
	Task            string
	ReasoningEffort string          `json:"reasoning_effort"`
	Tools           json.RawMessage `json:"tools"`
	Messages        json.RawMessage `json:"messages"`
	Media           []string        `json:"media"`
	PromptIDs       []int32         `json:"prompt_token_ids"`
	Reference       struct {
		IDs       []int32 `json:"token_ids"`
		Content   string  `json:"content"`
		Reasoning string  `json:"reasoning"`
		ToolCall  *struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"tool_call"`
	} `json:"reference"`
}

func readItems(t testing.TB) []item {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, "inkling-tiny-eval", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var it item
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	return items
}

func (it *item) hasAudio() bool {
	return slices.ContainsFunc(it.Media, func(m string) bool { return strings.HasSuffix(m, ".wav") })
}

func (it *item) request(t testing.TB) *Request {
	t.Helper()
	body := map[string]json.RawMessage{"messages": it.Messages}
	if len(it.Tools) > 0 && string(it.Tools) != "null" {
		body["tools"] = it.Tools
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	conv, err := chat.ParseMessages(text)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{
		Conversation: conv,
		Chat:         chat.Options{Effort: it.ReasoningEffort, AddGenerationPrompt: true},
		Sampling:     Sampling{TopP: 1, RepeatPenalty: 1},
		MaxTokens:    200,
		Load:         LoadLocal(testutil.Testdata(t, "inkling-tiny-eval")),
	}
}

// TestDevSet answers the evaluation set in float32: prompt and answer are the
// reference's, token by token.
func TestDevSet(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	sound, others := 0, 0
	for _, it := range readItems(t) {
		if it.hasAudio() {
			sound++
		} else {
			others++
		}
		res, err := e.Generate(context.Background(), it.request(t))
		if err != nil {
			t.Errorf("item %s: %v", it.ID, err)
			continue
		}
		if !slices.Equal(res.PromptIDs, it.PromptIDs) {
			t.Errorf("item %s (%s): prompt %v, want %v", it.ID, it.Task, res.PromptIDs, it.PromptIDs)
		}
		if !slices.Equal(res.IDs, it.Reference.IDs) {
			t.Errorf("item %s (%s): answered %q, want %q", it.ID, it.Task, e.Spell(res.IDs), e.Spell(it.Reference.IDs))
		}
		if res.Text != it.Reference.Content || res.Reasoning != it.Reference.Reasoning {
			t.Errorf("item %s (%s): text %q after %q, want %q after %q", it.ID, it.Task, res.Text, res.Reasoning, it.Reference.Content, it.Reference.Reasoning)
		}
	}
	if sound != 22 || others != 97 {
		t.Errorf("%d items with sound and %d others, want 22 and 97", sound, others)
	}
}
