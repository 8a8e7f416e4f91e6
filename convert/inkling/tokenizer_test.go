package inkling

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// edited is the checkpoint for tests with its tokenizer.json changed.
func edited(t *testing.T, edit func(tok map[string]any)) *checkpointtest.Checkpoint {
	t.Helper()
	c := checkpointtest.Load(t, tinyRandom)
	var tok map[string]any
	if err := json.Unmarshal(c.Files["tokenizer.json"], &tok); err != nil {
		t.Fatal(err)
	}
	edit(tok)
	var err error
	if c.Files["tokenizer.json"], err = json.Marshal(tok); err != nil {
		t.Fatal(err)
	}
	return c
}

// added calls do with every added token.
func added(tok map[string]any, do func(token map[string]any)) {
	for _, a := range tok["added_tokens"].([]any) {
		do(a.(map[string]any))
	}
}

// TestPublishedNumbers is trap 28 in a vocabulary with the published size and
// numbers, whose config has been saved again with eos 2.
func TestPublishedNumbers(t *testing.T) {
	ids := map[string]int{
		"<|endoftext|>": 199999, "<|message_user|>": 200000, "<|message_model|>": 200001, "<|message_system|>": 200002,
		"<|message_tool|>": 200003, "<|content_text|>": 200004, "<|content_image|>": 200005,
		"<|content_model_end_sampling|>": 200006, "<|content_thinking|>": 200008, "<|end_message|>": 200010,
		"<|content_audio_input|>": 200020, "<|content_tool_error|>": 200022, "<|unused_200024|>": 200024,
		"<|audio_end|>": 200043, "<|content_invoke_tool_json|>": 200049, "<|unused_200053|>": 200053,
		"<|unused_200054|>": 200054, "<|content_invoke_tool_text|>": 200057,
	}
	c := edited(t, func(tok map[string]any) {
		added(tok, func(token map[string]any) { token["id"] = ids[token["content"].(string)] })
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), c.Files["tokenizer.json"], 0o666); err != nil {
		t.Fatal(err)
	}
	p := &planner{
		Planner: convert.Planner{Src: &convert.Source{Dir: dir}},
		c: &config{
			text: textConfig{vocabSize: 201024}, eosIDs: []int64{2}, imageID: 200054, audioID: 200053,
			vision: &visionConfig{}, audio: &audioConfig{},
		},
		processor: &processorConfig{imageToken: "<|unused_200054|>", audioToken: "<|unused_200053|>"},
	}
	kv, err := p.tokenizerKeys()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]any)
	for _, x := range kv {
		got[x.Key] = x.Value
	}
	for key, want := range map[string]any{
		"tokenizer.ggml.eos_token_id": uint32(200006), "tokenizer.ggml.bos_token_id": uint32(200006),
		"inkling.image_token_id": uint32(200054), "inkling.audio_token_id": uint32(200053),
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if n := len(got["tokenizer.ggml.tokens"].([]string)); n != 201024 {
		t.Errorf("%d tokens, want 201024", n)
	}
	const note = "eos_token_id [2] in config.json is not used: the id of <|content_model_end_sampling|> is 200006"
	if !slices.Equal(p.Notes, []string{note}) {
		t.Errorf("notes %q, want %q", p.Notes, note)
	}
}

func TestRefusesTokenizer(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(tok map[string]any)
		want string
	}{
		{"another pattern", func(tok map[string]any) {
			steps := tok["pre_tokenizer"].(map[string]any)["pretokenizers"].([]any)
			steps[0].(map[string]any)["pattern"] = map[string]any{"Regex": `\s+`}
		}, "tokenizer.json: unsupported: the pattern that splits text is not that of the Inkling family"},
		{"no end of turn", func(tok map[string]any) {
			added(tok, func(token map[string]any) {
				if token["content"] == endOfTurn {
					token["content"] = "<|other|>"
				}
			})
		}, "tokenizer.json: unsupported: no token <|content_model_end_sampling|>"},
		{"no image slot", func(tok map[string]any) {
			added(tok, func(token map[string]any) {
				if token["content"] == "<|unused_200054|>" {
					token["content"] = "<|image|>"
				}
			})
		}, "tokenizer.json: no token <|unused_200054|>, the placeholder of image_token_id"},
		{"more tokens than rows", func(tok map[string]any) {
			added(tok, func(token map[string]any) { token["id"] = token["id"].(float64) + 1000 })
		}, "tokenizer.json: 2042 tokens, but vocab_size is 1088"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			converttest.WantError(t, converttest.Refused(t, edited(t, tc.edit).Write(t)), tc.want)
		})
	}
}
