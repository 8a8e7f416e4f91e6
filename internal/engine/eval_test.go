package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	_ "github.com/inkling-go/inkling/models/inkling"
)

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }

// tiny is the trained checkpoint in a type: its text file, beside the others.
func tiny(t testing.TB, outType convert.OutType) string {
	t.Helper()
	return tinymodel.Inkling.Files(t, outType).Model
}

// convertOnce is the text file of a checkpoint in testdata.
func convertOnce(t testing.TB, outType convert.OutType, dir ...string) string {
	t.Helper()
	return tinymodel.Checkpoint(path.Join(dir...)).Files(t, outType).Model
}

func openTiny(t testing.TB, outType convert.OutType, kv binding.DType) *Engine {
	t.Helper()
	return openModel(t, tiny(t, outType), kv)
}

func openModel(t testing.TB, path string, kv binding.DType) *Engine {
	t.Helper()
	e, err := Open(context.Background(), Options{Model: path, KV: kv, Threads: 1, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// item is a line of an evaluation set.
type item struct {
	set             string // folder of testdata
	ID              string
	Task            string
	ReasoningEffort string          `json:"reasoning_effort"` // of Inkling's set
	Thinking        *bool           `json:"thinking"`         // of Kimi's set
	VideoLayout     string          `json:"video_layout"`     // likewise
	Tools           json.RawMessage `json:"tools"`
	Messages        json.RawMessage `json:"messages"`
	Media           []string        `json:"media"`
	PromptIDs       []int32         `json:"prompt_token_ids"`
	Reference       struct {
		IDs       []int32 `json:"token_ids"`
		Margin    float64 `json:"min_top2_margin"` // of Kimi's set
		Content   string  `json:"content"`
		Reasoning string  `json:"reasoning"`
		ToolCall  *struct {
			ID        string          `json:"id"` // of Kimi's set
			Name      string          `json:"name"`
			Args      json.RawMessage `json:"args"`      // of Inkling's set
			Arguments json.RawMessage `json:"arguments"` // of Kimi's set
		} `json:"tool_call"`
	} `json:"reference"`
}

// readItems reads the evaluation set of Inkling's checkpoint.
func readItems(t testing.TB) []item {
	t.Helper()
	return readSet(t, "inkling-tiny-eval")
}

func readSet(t testing.TB, set string) []item {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, set, "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		it := item{set: set}
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
	effort := it.ReasoningEffort
	if it.Thinking != nil && !*it.Thinking {
		effort = "none"
	}
	dir := testutil.Testdata(t, it.set)
	return &Request{
		Conversation: conv,
		Chat:         chat.Options{Effort: effort, AddGenerationPrompt: true},
		Sampling:     Sampling{TopP: 1, RepeatPenalty: 1},
		MaxTokens:    200,

		ParallelCalls: true,
		Load:          LoadLocal(dir),
		Local:         LocalPaths(dir),
		Video:         VideoSampling{Layout: media.ClipLayout(it.VideoLayout)},
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
