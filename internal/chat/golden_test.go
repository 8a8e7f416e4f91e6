package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/safetensors"
	"github.com/inkling-go/inkling/internal/token"
)

const (
	tinyDir   = "../../testdata/inkling-tiny"
	randomDir = "../../testdata/inkling-tiny-random"
	devFile   = "../../testdata/inkling-tiny-eval/dev.jsonl"
)

// loadModel reads a model folder's vocabulary and chat template.
func loadModel(t testing.TB, dir string) (*token.Vocab, string) {
	t.Helper()
	v, err := token.LoadTokenizerJSON(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	return v, string(template)
}

// devItem is a line of dev.jsonl: a request, the reference's prompt and what the model then generated.
type devItem struct {
	ID        string          `json:"id"`
	Effort    string          `json:"reasoning_effort"`
	Tools     json.RawMessage `json:"tools"`
	Messages  json.RawMessage `json:"messages"`
	PromptIDs []int32         `json:"prompt_token_ids"`
	Reference struct {
		IDs       []int32 `json:"token_ids"`
		Text      string  `json:"text"`
		Content   *string `json:"content"`
		Reasoning *string `json:"reasoning"`
		ToolCall  *struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"tool_call"`
	} `json:"reference"`
}

func devItems(t testing.TB) []devItem {
	t.Helper()
	f, err := os.Open(devFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var items []devItem
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var item devItem
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	if lines.Err() != nil || len(items) != 119 {
		t.Fatalf("%d items (%v), want 119", len(items), lines.Err())
	}
	return items
}

// slotRuns returns slots for EncodeSegments that take the counts from the runs of placeholders in the golden prompt.
func slotRuns(v *token.Vocab, media []Part, golden []int32) func(int) (int32, int) {
	var runs []int
	for i, id := range golden {
		if !isSlot(v, id) {
			continue
		}
		if i == 0 || golden[i-1] != id {
			runs = append(runs, 0)
		}
		runs[len(runs)-1]++
	}
	return func(medium int) (int32, int) {
		id, _ := SlotID(v, media[medium].Kind)
		return id, runs[medium]
	}
}

// TestDevPrompts compares the prompts of the evaluation set with those of the reference: through the native renderer, and through
// the model's template, which shows that the Jinja path and the native one agree.
func TestDevPrompts(t *testing.T) {
	v, template := loadModel(t, tinyDir)
	native, kind, err := NewRenderer(v, template)
	if err != nil || kind != KindInkling {
		t.Fatalf("NewRenderer: kind %q, %v; want %q", kind, err, KindInkling)
	}
	viaJinja, err := newJinja(v, template)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range devItems(t) {
		c, err := ParseMessages([]byte(`{"messages":` + string(item.Messages) + `,"tools":` + string(item.Tools) + `}`))
		if err != nil {
			t.Fatalf("item %s: %v", item.ID, err)
		}
		for name, r := range map[string]Renderer{"native": native, "jinja": viaJinja} {
			segs, media, err := r.Render(c, Options{Effort: item.Effort, AddGenerationPrompt: true})
			if err != nil {
				t.Errorf("item %s, %s: %v", item.ID, name, err)
				continue
			}
			ids, _, err := v.EncodeSegments(segs, slotRuns(v, media, item.PromptIDs))
			if err != nil {
				t.Errorf("item %s, %s: %v", item.ID, name, err)
				continue
			}
			if d := cmp.Diff(item.PromptIDs, ids); d != "" {
				t.Errorf("item %s, %s: prompt (-want +got):\n%s", item.ID, name, d)
			}
		}
	}
}

// TestDevOutputs parses what the reference generated.
func TestDevOutputs(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	endSampling, _ := v.ID(tokEndSampling)
	for _, item := range devItems(t) {
		ref := item.Reference
		got := parseAll(NewParser(v), ref.IDs)
		want := output{Stopped: true, Stop: endSampling}
		if ref.Content != nil {
			want.Content = *ref.Content
		}
		if ref.Reasoning != nil {
			want.Reasoning = *ref.Reasoning
		}
		if ref.ToolCall != nil {
			// The arguments are the model's own bytes.
			_, args, _ := strings.Cut(ref.Text, `"args":`)
			args, _, _ = strings.Cut(args, "}"+tokEndMessage)
			want.Calls = []ToolCall{{Name: ref.ToolCall.Name, Arguments: json.RawMessage(args)}}
			var compact bytes.Buffer
			if err := json.Compact(&compact, ref.ToolCall.Args); err != nil || compact.String() != args {
				t.Errorf("item %s: cut the arguments %s out of the text, the file says %s", item.ID, args, compact.String())
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("item %s: (-want +got):\n%s", item.ID, d)
		}
		if text := v.DecodeWithSpecial(ref.IDs); text != ref.Text {
			t.Errorf("item %s: decoded %q, want %q", item.ID, text, ref.Text)
		}
	}
}

// TestFixtureTemplate renders the goldens of a model whose template is not Inkling's protocol although its tokens are.
func TestFixtureTemplate(t *testing.T) {
	v, template := loadModel(t, filepath.Join(randomDir, "original"))
	r, kind, err := NewRenderer(v, template)
	if err != nil || kind != KindJinja {
		t.Fatalf("NewRenderer: kind %q, %v; want %q", kind, err, KindJinja)
	}
	var golden struct {
		Chat []struct {
			Messages json.RawMessage
			Kwargs   struct {
				Effort json.RawMessage `json:"reasoning_effort"`
			}
			AddGenerationPrompt bool `json:"add_generation_prompt"`
			Text                string
			IDs                 []int32
		}
	}
	readJSON(t, filepath.Join(randomDir, "goldens", "tokenizer.json"), &golden)
	if len(golden.Chat) != 10 {
		t.Fatalf("%d prompts, want 10", len(golden.Chat))
	}
	for _, g := range golden.Chat {
		c, err := ParseMessages(g.Messages)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Effort: strings.Trim(string(g.Kwargs.Effort), `"`), AddGenerationPrompt: g.AddGenerationPrompt}
		segs, media, err := r.Render(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := Spell(v, segs, media); got != g.Text {
			t.Errorf("text %q, want %q", got, g.Text)
		}
		ids, _, err := v.EncodeSegments(segs, slotRuns(v, media, g.IDs))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(g.IDs, ids); d != "" {
			t.Errorf("prompt %q (-want +got):\n%s", g.Text, d)
		}
	}
}

// TestFixtureMediaPrompts compares expanded prompts with images and sounds, and where their slots lie.
func TestFixtureMediaPrompts(t *testing.T) {
	v, template := loadModel(t, filepath.Join(randomDir, "original"))
	r, _, err := NewRenderer(v, template)
	if err != nil {
		t.Fatal(err)
	}
	for file, names := range map[string][]string{
		"image_prompts": {"image0", "image1", "image2", "three_images"},
		"audio_prompts": {"audio0", "audio1", "image_and_audio"},
	} {
		var golden struct {
			Facts map[string]json.RawMessage
		}
		readJSON(t, filepath.Join(randomDir, "goldens", file+".json"), &golden)
		arrays, err := safetensors.OpenFile(filepath.Join(randomDir, "goldens", file+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		defer arrays.Close()
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				want := goldenIDs(t, arrays, name+".input_ids")
				var kwargs struct {
					Effort json.RawMessage `json:"reasoning_effort"`
				}
				if err := json.Unmarshal(golden.Facts[name+".template_kwargs"], &kwargs); err != nil {
					t.Fatal(err)
				}
				c, err := ParseMessages(golden.Facts[name+".messages"])
				if err != nil {
					t.Fatal(err)
				}
				o := Options{Effort: strings.Trim(string(kwargs.Effort), `"`), AddGenerationPrompt: true}
				segs, media, err := r.Render(c, o)
				if err != nil {
					t.Fatal(err)
				}
				ids, slots, err := v.EncodeSegments(segs, slotRuns(v, media, want))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, ids); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				for i, s := range slots {
					id, _ := SlotID(v, media[i].Kind)
					if s.Media != i || want[s.Pos] != id || want[s.Pos+s.N-1] != id || want[s.Pos-1] == id || want[s.Pos+s.N] == id {
						t.Errorf("slot %d is %+v, not a run of id %d", i, s, id)
					}
				}
			})
		}
	}
}

func goldenIDs(t *testing.T, c *safetensors.Checkpoint, name string) []int32 {
	t.Helper()
	x, ok := c.Tensor(name)
	if !ok {
		t.Fatalf("golden file has no %s", name)
	}
	values, err := c.Ints(x)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, len(values))
	for i, id := range values {
		ids[i] = int32(id)
	}
	return ids
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// output is a whole parsed turn.
type output struct {
	Reasoning, Content string
	Calls              []ToolCall // without their random ids
	Stop               int32
	Stopped            bool
	Warnings           int
}

func parseAll(p Parser, ids []int32) output {
	var o output
	take := func(deltas []Delta) {
		for _, d := range deltas {
			switch d.Kind {
			case ReasoningDelta:
				o.Reasoning += d.Text
			case ContentDelta:
				o.Content += d.Text
			case ToolCallDelta:
				o.Calls = append(o.Calls, ToolCall{Name: d.Call.Name, Arguments: d.Call.Arguments})
			}
		}
	}
	for _, id := range ids {
		take(p.Push(id))
	}
	take(p.Finish())
	o.Stop, o.Stopped = p.Stop()
	o.Warnings = len(p.Warnings())
	return o
}
