package inkling

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// TestKeysFollowConfig sets one thing in a checkpoint and looks for it in the keys
// and the notes.
func TestKeysFollowConfig(t *testing.T) {
	processor := func(edit func(image map[string]any)) func(*checkpointtest.Checkpoint) {
		return func(c *checkpointtest.Checkpoint) {
			var p map[string]any
			if err := json.Unmarshal(c.Files["processor_config.json"], &p); err != nil {
				panic(err)
			}
			edit(p["image_processor"].(map[string]any))
			c.Files["processor_config.json"], _ = json.Marshal(p)
		}
	}
	for _, tc := range []struct {
		name string
		edit func(*checkpointtest.Checkpoint)
		text map[string]any // nil: the key must be absent
		proj map[string]any
		note string // a part of it
	}{
		{
			name: "log scaling off",
			edit: set("log_scaling_n_floor", nil),
			text: map[string]any{"inkling.log_scaling_n_floor": uint32(0), "inkling.log_scaling_alpha": float32(0)},
		},
		{
			name: "vocabulary without padding",
			edit: set("unpadded_vocab_size", nil),
			text: map[string]any{"inkling.unpadded_vocab_size": uint32(0)},
		},
		{
			name: "context of the port's class",
			edit: set("max_position_embeddings", 131072),
			text: map[string]any{"inkling.context_length": uint32(4096)},
			note: "max_position_embeddings 131072 is a class default, model_max_length 4096 is used",
		},
		{
			name: "expert width of the port's class",
			edit: set("moe_intermediate_size", 3072),
			text: map[string]any{"inkling.expert_feed_forward_length": uint32(64)},
			note: "moe_intermediate_size 3072 is a class default, intermediate_size 64 is used",
		},
		{
			name: "re-saved eos", // trap 28
			edit: func(c *checkpointtest.Checkpoint) {
				c.Config["eos_token_id"], c.Config["bos_token_id"] = 2, 1
				c.Section("text_config")["eos_token_id"] = 2
			},
			text: map[string]any{"tokenizer.ggml.eos_token_id": uint32(1031), "tokenizer.ggml.bos_token_id": uint32(1031)},
			note: "eos_token_id [2] in config.json is not used: the id of <|content_model_end_sampling|> is 1031",
		},
		{
			name: "several eos",
			edit: func(c *checkpointtest.Checkpoint) { c.Config["eos_token_id"] = []int{1024, 1031} },
			text: map[string]any{"tokenizer.ggml.eos_token_id": uint32(1031)},
		},
		{
			name: "no slots in the config",
			edit: func(c *checkpointtest.Checkpoint) {
				delete(c.Config, "image_token_id")
				delete(c.Config, "audio_token_id")
			},
			text: map[string]any{"inkling.image_token_id": uint32(1040), "inkling.audio_token_id": uint32(1039)},
		},
		{
			name: "bins of the port's class",
			edit: in("audio_config", "mel_vocab_size", 256),
			proj: map[string]any{"clip.audio.num_mel_bins": uint32(80)},
		},
		{
			name: "pictures made larger",
			edit: processor(func(image map[string]any) { image["rescale_image_frac"] = 2 }),
			proj: map[string]any{"inkling.vision.rescale_image_frac": float32(2), "inkling.vision.rescale_max_long_edge": uint32(2048)},
		},
		{
			name: "pictures made larger without a limit",
			edit: processor(func(image map[string]any) {
				image["rescale_image_frac"] = 1.5
				image["rescale_image_max_upscaled_long_edge"] = nil
			}),
			proj: map[string]any{"inkling.vision.rescale_image_frac": float32(1.5), "inkling.vision.rescale_max_long_edge": uint32(0)},
		},
		{
			name: "colours",
			edit: processor(func(image map[string]any) { image["image_std"] = []float64{0.5, 0.25, 1} }),
			proj: map[string]any{"clip.vision.image_std": []float32{0.5, 0.25, 1}},
		},
		{
			name: "no processor",
			edit: func(c *checkpointtest.Checkpoint) { delete(c.Files, "processor_config.json") },
			proj: map[string]any{
				"clip.vision.image_std":                []float32{0.26862954, 0.26130258, 0.27577711},
				"inkling.vision.rescale_image_frac":    nil,
				"inkling.vision.rescale_max_long_edge": nil,
			},
		},
		{
			name: "sampling",
			edit: func(c *checkpointtest.Checkpoint) {
				c.Files["generation_config.json"] = []byte(`{"do_sample":true,"temperature":0.75,"top_k":40,"top_p":0.5,"min_p":0.25,"repetition_penalty":1.5}`)
			},
			text: map[string]any{
				"general.sampling.temp": float32(0.75), "general.sampling.top_k": int32(40), "general.sampling.top_p": float32(0.5),
				"general.sampling.min_p": float32(0.25), "general.sampling.penalty_repeat": float32(1.5),
			},
		},
		{
			name: "no sampling",
			edit: func(c *checkpointtest.Checkpoint) { delete(c.Files, "generation_config.json") },
			text: map[string]any{"general.sampling.temp": nil},
		},
		{
			name: "licence",
			edit: func(c *checkpointtest.Checkpoint) {
				c.Files["README.md"] = []byte("---\nlicense: other\nlicense_name: \"a licence\"\ntags:\n- license: x\n---\n# Model\n")
			},
			text: map[string]any{"general.license": "other", "general.license.name": "a licence", "general.license.link": nil},
			proj: map[string]any{"general.license": "other"},
		},
		{
			name: "template in the tokenizer's config",
			edit: func(c *checkpointtest.Checkpoint) {
				delete(c.Files, "chat_template.jinja")
				c.Files["tokenizer_config.json"] = []byte(`{"chat_template":[{"name":"tool_use","template":"a"},{"name":"default","template":"b"}]}`)
			},
			text: map[string]any{"tokenizer.chat_template": "b"},
		},
		{
			name: "no template",
			edit: func(c *checkpointtest.Checkpoint) { delete(c.Files, "chat_template.jinja") },
			text: map[string]any{"tokenizer.chat_template": nil},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			plan, notes := planned(t, c.Write(t))
			for kind, want := range map[convert.Kind]map[string]any{convert.Text: tc.text, convert.MMProj: tc.proj} {
				for key, value := range want {
					if diff := cmp.Diff(value, plan[kind][key]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", key, diff)
					}
				}
			}
			if tc.note != "" && !slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(s, tc.note) }) {
				t.Errorf("notes %q, want one with %q", notes, tc.note)
			}
			if tc.note == "" && len(notes) > 1 {
				t.Errorf("notes %q, want only the one on multi-token prediction", notes)
			}
		})
	}
}

// TestLocalLayers has the three ways to say which layers are local.
func TestLocalLayers(t *testing.T) {
	for _, tc := range []struct {
		name, json string
		want       []bool
	}{
		{"by default all but every sixth", `{}`, []bool{true, true, true, true, true, false, true, true}},
		{"null is the default", `{"local_layer_ids":null}`, []bool{true, true, true, true, true, false, true, true}},
		{"by number", `{"local_layer_ids":[7,0]}`, []bool{true, false, false, false, false, false, false, true}},
		{"none", `{"local_layer_ids":[]}`, make([]bool, 8)},
		{
			"by kind", `{"layer_types":["hybrid","hybrid_sliding","hybrid","hybrid","hybrid","hybrid","hybrid","hybrid"]}`,
			[]bool{false, true, false, false, false, false, false, false},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := convert.ParseFields("config.json", []byte(tc.json))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, localLayers(f, 8)); diff != "" || f.Err() != nil {
				t.Errorf("%v (-want +got):\n%s", f.Err(), diff)
			}
		})
	}
}

// planned converts a checkpoint and returns the keys by kind, and the notes.
func planned(t *testing.T, dir string) (map[convert.Kind]map[string]any, []string) {
	t.Helper()
	files, report := converttest.Run(t, dir, convert.OutAuto)
	kv := make(map[convert.Kind]map[string]any)
	for kind, f := range files {
		kv[kind] = make(map[string]any)
		for _, key := range f.Keys() {
			kv[kind][key], _ = f.Value(key)
		}
	}
	return kv, report.Notes
}

// FuzzConfig feeds the config reader with JSON: it may refuse, never panic.
func FuzzConfig(f *testing.F) {
	for _, path := range []string{tiny, tinyRandom} {
		data, err := os.ReadFile(path + "/config.json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model_type":"inkling","num_hidden_layers":1e300,"local_layer_ids":[-1]}`))
	f.Add([]byte(`{"text_config":{"layer_types":[null],"num_hidden_layers":1},"vision_config":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := convert.ParseFields("config.json", data)
		if err != nil {
			return
		}
		c, err := parseConfig(fields)
		if err == nil && int64(len(c.text.local)) != c.text.numHiddenLayers {
			t.Errorf("%d layers, %d of them known", c.text.numHiddenLayers, len(c.text.local))
		}
	})
}
