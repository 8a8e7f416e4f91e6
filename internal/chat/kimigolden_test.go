package chat

import (
	"bufio"
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
	kimiTinyDir   = "../../testdata/kimi-tiny"
	kimiRandomDir = "../../testdata/kimi-k25-tiny-random"
	kimiDevFile   = "../../testdata/kimi-tiny-eval/dev.jsonl"
)

// kimiItem is a line of dev.jsonl: a request, the reference's prompt and what the model then generated.
type kimiItem struct {
	ID       string          `json:"id"`
	Thinking bool            `json:"thinking"`
	Tools    json.RawMessage `json:"tools"`
	Messages json.RawMessage `json:"messages"`
	Media    []struct {
		Kind       string          `json:"kind"`
		Layout     string          `json:"layout"`
		Timestamps []*string       `json:"timestamps"`
		Tokens     json.RawMessage `json:"tokens"` // a number for a picture, one for each block of a clip
	} `json:"media_items"`
	PromptIDs []int32 `json:"prompt_token_ids"`
	Reference struct {
		IDs       []int32 `json:"token_ids"`
		Text      string  `json:"text"`
		Content   *string `json:"content"`
		Reasoning *string `json:"reasoning"`
		ToolCall  *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"arguments"`
		} `json:"tool_call"`
	} `json:"reference"`
}

func kimiItems(t testing.TB) []kimiItem {
	t.Helper()
	f, err := os.Open(kimiDevFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var items []kimiItem
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var item kimiItem
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	if lines.Err() != nil || len(items) != 84 {
		t.Fatalf("%d items (%v), want 84", len(items), lines.Err())
	}
	return items
}

// conversation reads the item's request and lays its clips out as the file says. rows has the rows of each media segment.
func (item kimiItem) conversation(t testing.TB) (c Conversation, rows []int) {
	t.Helper()
	c, err := ParseMessages([]byte(`{"messages":` + string(item.Messages) + `,"tools":` + string(item.Tools) + `}`))
	if err != nil {
		t.Fatalf("item %s: %v", item.ID, err)
	}
	media := c.Media()
	if len(media) != len(item.Media) {
		t.Fatalf("item %s: %d media in the messages, %d in the list", item.ID, len(media), len(item.Media))
	}
	for i, m := range item.Media {
		if m.Kind == "image" {
			var n int
			if err := json.Unmarshal(m.Tokens, &n); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, n)
			continue
		}
		var blocks []int
		if err := json.Unmarshal(m.Tokens, &blocks); err != nil {
			t.Fatal(err)
		}
		for j, n := range blocks {
			b := Block{Rows: n}
			if m.Timestamps[j] != nil {
				b.Label = *m.Timestamps[j]
			}
			media[i].Blocks = append(media[i].Blocks, b)
		}
		rows = append(rows, blocks...)
	}
	return c, rows
}

// TestKimiDevPrompts compares the prompts of the evaluation set with those of the reference: through the native renderer, and through
// the model's template, which shows that the Jinja path and the native one agree.
func TestKimiDevPrompts(t *testing.T) {
	v, template := loadModel(t, kimiTinyDir)
	native, kind, err := NewRenderer(v, template)
	if err != nil || kind != KindKimi {
		t.Fatalf("NewRenderer: kind %q, %v; want %q", kind, err, KindKimi)
	}
	viaJinja, err := newJinja(v, template)
	if err != nil {
		t.Fatal(err)
	}
	layouts := map[string]int{}
	for _, item := range kimiItems(t) {
		c, rows := item.conversation(t)
		for _, m := range item.Media {
			layouts[m.Layout]++
		}
		o := Options{AddGenerationPrompt: true}
		if !item.Thinking {
			o.Effort = "none"
		}
		for name, r := range map[string]Renderer{"native": native, "jinja": viaJinja} {
			segs, media, err := r.Render(c, o)
			if err != nil {
				t.Errorf("item %s, %s: %v", item.ID, name, err)
				continue
			}
			ids, slots, err := v.EncodeSegments(segs, func(m int) (int32, int) {
				id, _ := SlotID(v, media[m].Kind)
				if p := media[m]; p.Kind == Video && p.Blocks[p.Block].Rows != rows[m] {
					t.Errorf("item %s, %s: medium %d is block %d of %v", item.ID, name, m, p.Block, p.Blocks)
				}
				return id, rows[m]
			})
			if err != nil {
				t.Errorf("item %s, %s: %v", item.ID, name, err)
				continue
			}
			if d := cmp.Diff(item.PromptIDs, ids); d != "" {
				t.Errorf("item %s, %s: prompt (-want +got):\n%s", item.ID, name, d)
			}
			if len(slots) != len(rows) {
				t.Errorf("item %s, %s: %d slots, want %d", item.ID, name, len(slots), len(rows))
			}
		}
	}
	if layouts["clip"] == 0 || layouts["chunks"] == 0 {
		t.Errorf("layouts %v, want both", layouts)
	}
}

// TestKimiDevOutputs parses what the reference generated.
func TestKimiDevOutputs(t *testing.T) {
	v, _ := loadModel(t, kimiTinyDir)
	end, _ := v.ID(tokImEnd)
	for _, item := range kimiItems(t) {
		ref := item.Reference
		want := output{Stopped: true, Stop: end}
		var wantIDs []string
		if ref.Content != nil {
			want.Content = *ref.Content
		}
		if ref.Reasoning != nil {
			want.Reasoning = *ref.Reasoning
		}
		if ref.ToolCall != nil {
			// The arguments are the model's own bytes.
			_, args, _ := strings.Cut(ref.Text, tokCallArguments)
			args, _, _ = strings.Cut(args, tokCallEnd)
			want.Calls = []ToolCall{{Name: ref.ToolCall.Name, Arguments: json.RawMessage(args)}}
			wantIDs = []string{ref.ToolCall.ID}
			if a, err := canonical(ref.ToolCall.Args); err != nil || a != args {
				t.Errorf("item %s: cut the arguments %s out of the text, the file says %s", item.ID, args, a)
			}
		}
		got := parseAll(NewParserAfter(v, item.PromptIDs), ref.IDs)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("item %s: (-want +got):\n%s", item.ID, d)
		}
		if d := cmp.Diff(wantIDs, callIDs(NewParserAfter(v, item.PromptIDs), ref.IDs)); d != "" {
			t.Errorf("item %s: ids of calls (-want +got):\n%s", item.ID, d)
		}
	}
}

// callIDs returns the ids of the calls in what a model generated; parseAll leaves them out.
func callIDs(p Parser, ids []int32) []string {
	var out []string
	for _, id := range ids {
		for _, d := range p.Push(id) {
			if d.Kind == ToolCallDelta {
				out = append(out, d.Call.ID)
			}
		}
	}
	return out
}

// TestKimiFixtureTemplate renders the goldens of a model whose template is not quite Kimi's protocol although its tokens are.
func TestKimiFixtureTemplate(t *testing.T) {
	v, template := loadModel(t, filepath.Join(kimiRandomDir, "original"))
	r, kind, err := NewRenderer(v, template)
	if err != nil || kind != KindJinja {
		t.Fatalf("NewRenderer: kind %q, %v; want %q", kind, err, KindJinja)
	}
	var golden struct {
		Chat []struct {
			Messages json.RawMessage
			Kwargs   struct {
				Thinking *bool
			}
			AddGenerationPrompt bool `json:"add_generation_prompt"`
			Text                string
			IDs                 []int32
		}
	}
	readJSON(t, filepath.Join(kimiRandomDir, "goldens", "tokenizer.json"), &golden)
	if len(golden.Chat) != 6 {
		t.Fatalf("%d prompts, want 6", len(golden.Chat))
	}
	for _, g := range golden.Chat {
		c, err := ParseMessages(g.Messages)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{AddGenerationPrompt: g.AddGenerationPrompt}
		if g.Kwargs.Thinking != nil && *g.Kwargs.Thinking {
			o.Effort = "high"
		}
		segs, media, err := r.Render(c, o)
		if err != nil {
			t.Fatal(err)
		}
		// The golden is the template's own output, before a clip's placeholder becomes the blocks.
		want := strings.ReplaceAll(g.Text, videoPlaceholder, tokMediaBegin+"video"+tokMediaContent+tokMediaPad+tokMediaEnd)
		if got := Spell(v, segs, media); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}

// TestKimiFixturePrompts renders prompts with media like those that the reference fed to the fixture, and compares the ids. Its
// placeholder of clips, a token of its own, is the one of pictures here.
func TestKimiFixturePrompts(t *testing.T) {
	v, template := loadModel(t, filepath.Join(kimiRandomDir, "original"))
	r, _, err := NewRenderer(v, template)
	if err != nil {
		t.Fatal(err)
	}
	st, err := safetensors.OpenFile(filepath.Join(kimiRandomDir, "goldens", "prompts.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	image := Part{Kind: Image}
	text := func(s string) Part { return Part{Text: s} }
	clip := func(labels ...string) Part {
		p := Part{Kind: Video}
		for _, l := range labels {
			p.Blocks = append(p.Blocks, Block{Label: l})
		}
		return p
	}
	const t0, t2 = "00:00:00.000", "00:00:02.000"
	for name, parts := range map[string][]Part{
		"image0":                             {image, text("Что это?")},
		"image1":                             {image, text("Explain step by step.")},
		"two_images":                         {text("Compare "), image, text(" with "), image, text("List three facts.")},
		"video_t2":                           {clip(t0), text("Qué hay?")},
		"video_t3":                           {clip(t0), text("What do you see?")},
		"video_t4":                           {clip(t0), text("Why?")},
		"video_t5":                           {clip(t0, t2), text("Describe it.")},
		"video_t6":                           {clip(t0, t2), text("Which is the largest?")},
		"mixed":                              {image, text(" and "), clip(t0), text(" and "), image, text("List three facts.")},
		"media_order_image1_and_t3":          {image, text(" and "), clip(), text("Qué hay?")},
		"media_order_image1_and_t6_one_clip": {image, text(" and "), clip(), text("Which colour is the circle?")},
		"media_order_image1_and_t1_with_temporal_row": {image, text(" and "), clip(), text("Which is the largest?")},
	} {
		t.Run(name, func(t *testing.T) {
			x, ok := st.Tensor(name + ".input_ids")
			if !ok {
				t.Fatal("no golden")
			}
			wide, err := st.Ints(x)
			if err != nil {
				t.Fatal(err)
			}
			pad, _ := v.ID(tokMediaPad)
			placeholder, _ := v.ID(videoPlaceholder)
			var want []int32
			for _, id := range wide {
				if int32(id) == placeholder {
					id = int64(pad)
				}
				want = append(want, int32(id))
			}
			c := Conversation{Messages: []Message{{Role: User, Content: parts, List: true}}}
			segs, media, err := r.Render(c, Options{AddGenerationPrompt: true})
			if err != nil {
				t.Fatal(err)
			}
			ids, _, err := v.EncodeSegments(segs, slotRuns(v, media, want))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, ids); d != "" {
				t.Errorf("ids (-want +got):\n%s", d)
			}
		})
	}
}

// kimiVocab returns the vocabulary of kimi-tiny.
func kimiVocab(t testing.TB) *token.Vocab {
	v, _ := loadModel(t, kimiTinyDir)
	return v
}
