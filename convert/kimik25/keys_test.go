package kimik25

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// TestKeys compares the keys with the schema, whose values for this checkpoint are
// worked out by hand from its config.json.
func TestKeys(t *testing.T) {
	files, _ := converttest.Run(t, tinyRandom, convert.OutBF16)
	want := map[string]any{
		"general.architecture": "deepseek2", "general.type": "model", "general.name": "m",
		"general.size_label": "8x791K", // 1,307,416 weights, less 7/8 of the 589,824 of the experts
		"general.file_type":  uint32(32), "general.quantization_version": uint32(2),
		"general.sampling.temp": float32(0), // do_sample is false

		"deepseek2.block_count": uint32(4), "deepseek2.context_length": uint32(262144), "deepseek2.vocab_size": uint32(1056),
		"deepseek2.embedding_length": uint32(128), "deepseek2.feed_forward_length": uint32(192),
		"deepseek2.attention.head_count": uint32(4), "deepseek2.attention.head_count_kv": uint32(1),
		"deepseek2.attention.layer_norm_rms_epsilon": float32(1e-5),
		"deepseek2.attention.q_lora_rank":            uint32(96), "deepseek2.attention.kv_lora_rank": uint32(64),
		"deepseek2.attention.key_length": uint32(64 + 16), "deepseek2.attention.value_length": uint32(64),
		"deepseek2.attention.key_length_mla": uint32(32 + 16), "deepseek2.attention.value_length_mla": uint32(32),
		"deepseek2.rope.dimension_count": uint32(16), "deepseek2.rope.freq_base": float32(50000),
		"deepseek2.rope.scaling.type": "yarn", "deepseek2.rope.scaling.factor": float32(64),
		"deepseek2.rope.scaling.original_context_length": uint32(4096),
		"deepseek2.rope.scaling.yarn_beta_fast":          float32(32), "deepseek2.rope.scaling.yarn_beta_slow": float32(1),
		"deepseek2.rope.scaling.yarn_log_multiplier": float32(0.1),
		"deepseek2.leading_dense_block_count":        uint32(1), "deepseek2.expert_count": uint32(8),
		"deepseek2.expert_used_count": uint32(3), "deepseek2.expert_shared_count": uint32(1),
		"deepseek2.expert_feed_forward_length": uint32(64), "deepseek2.expert_group_count": uint32(1),
		"deepseek2.expert_group_used_count": uint32(1), "deepseek2.expert_gating_func": uint32(2),
		"deepseek2.expert_weights_scale": float32(2.827), "deepseek2.expert_weights_norm": true,
		"kimi.media_token_id": uint32(1034),
	}
	if diff := cmp.Diff(want, converttest.Keys(files[convert.Text])); diff != "" {
		t.Errorf("text keys (-want +got):\n%s", diff)
	}
	want = map[string]any{
		"general.architecture": "clip", "general.type": "mmproj", "general.name": "m",
		"general.size_label": "1.0M", "general.file_type": uint32(32), "general.quantization_version": uint32(2),
		"clip.has_vision_encoder": true, "clip.projector_type": "kimik25", "clip.use_gelu": true,
		"clip.vision.projection_dim": uint32(128), "clip.vision.image_size": uint32(8 * 14), "clip.vision.patch_size": uint32(14),
		"clip.vision.embedding_length": uint32(144), "clip.vision.feed_forward_length": uint32(288),
		"clip.vision.block_count": uint32(3), "clip.vision.attention.head_count": uint32(4),
		"clip.vision.attention.layer_norm_epsilon": float32(1e-5), "clip.vision.projector.scale_factor": uint32(2),
		"clip.vision.image_mean":       []float32{0.5, 0.5, 0.5},
		"clip.vision.image_std":        []float32{0.5, 0.5, 0.5},
		"clip.vision.image_min_pixels": uint32(8 * 196), "clip.vision.image_max_pixels": uint32(16384 * 196),
		"vision.pos_emb_height": uint32(8), "vision.pos_emb_width": uint32(8), "vision.pos_emb_time": uint32(4),
		"kimi.image.side_patch_limit": uint32(512),
		"kimi.video.layout":           "chunks", "kimi.video.sample_fps": float32(2), "kimi.video.frames_per_chunk": uint32(4),
		"kimi.video.frame_patch_limit": uint32(4096), "kimi.video.timestamp_mode": "hh:mm:ss.fff",
	}
	if diff := cmp.Diff(want, converttest.Keys(files[convert.MMProj])); diff != "" {
		t.Errorf("mmproj keys (-want +got):\n%s", diff)
	}
}

// TestTokenizerKeys compares the vocabulary's keys with tokenizer.json, which says
// the same as the tiktoken.model that the converter reads.
func TestTokenizerKeys(t *testing.T) {
	var tok struct {
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
	}
	data, err := os.ReadFile(filepath.Join(tinyRandom, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &tok); err != nil {
		t.Fatal(err)
	}
	tokens, types := make([]string, 1056), slices.Repeat([]int64{1}, 1056)
	for s, id := range tok.Model.Vocab {
		tokens[id] = s
	}
	for _, a := range tok.Added {
		tokens[a.ID], types[a.ID] = a.Content, 3
	}
	for id := 1040; id < 1056; id++ {
		tokens[id], types[id] = "[PAD"+strconv.Itoa(id)+"]", 5
	}
	files, _ := converttest.Run(t, tinyRandom, convert.OutAuto)
	f := files[convert.Text]
	gotTokens, err := f.Strs("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	gotTypes, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tokens, gotTokens) + cmp.Diff(types, gotTypes); diff != "" {
		t.Errorf("tokens and types (-want +got):\n%s", diff)
	}
	if merges, err := f.Strs("tokenizer.ggml.merges"); err != nil || len(merges) != len(tok.Model.Merges) {
		t.Errorf("%d merges (%v), want %d", len(merges), err, len(tok.Model.Merges))
	}
	template, err := os.ReadFile(filepath.Join(tinyRandom, "chat_template.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "kimi-k2", "tokenizer.ggml.eos_token_id": uint32(1026),
		"tokenizer.ggml.bos_token_id": uint32(1024), "tokenizer.ggml.add_bos_token": false, "tokenizer.chat_template": string(template),
	} {
		if got, _ := f.Value(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// TestVideoKeys checks the layout of clips by what a checkpoint ships, and where
// the numbers come from.
func TestVideoKeys(t *testing.T) {
	media := func(c *checkpointtest.Checkpoint, kv map[string]any) {
		delete(c.Files, "processor_config.json")
		data, err := json.Marshal(map[string]any{"media_proc_cfg": kv})
		if err != nil {
			t.Fatal(err)
		}
		c.Files["preprocessor_config.json"] = data
	}
	plain := func(c *checkpointtest.Checkpoint) {
		delete(c.Config, "use_unified_vision_chunk")
		delete(c.Files, "processor_config.json")
		c.Files["chat_template.jinja"] = []byte("{{ messages }}")
	}
	for _, tc := range []struct {
		name string
		edit func(c *checkpointtest.Checkpoint)
		want map[string]any
	}{
		{"nothing says chunks", plain, map[string]any{"kimi.video.layout": "clip"}},
		{"unified chunks", func(c *checkpointtest.Checkpoint) {
			plain(c)
			c.Config["use_unified_vision_chunk"] = true
		}, map[string]any{"kimi.video.layout": "chunks"}},
		{"template with the placeholder", func(c *checkpointtest.Checkpoint) {
			plain(c)
			c.Files["chat_template.jinja"] = []byte("<|kimi_k25_video_placeholder|>")
		}, map[string]any{"kimi.video.layout": "chunks"}},
		{"template with media_begin", func(c *checkpointtest.Checkpoint) {
			plain(c)
			c.Files["chat_template.jinja"] = []byte("<|media_begin|>")
		}, map[string]any{"kimi.video.layout": "chunks"}},
		{"published processor", func(c *checkpointtest.Checkpoint) {
			plain(c)
			media(c, map[string]any{
				"in_patch_limit": 100, "in_patch_limit_each_frame": 50, "in_patch_limit_video": 600, "patch_limit_on_one_side": 20,
				"sample_fps": 1.5, "max_num_frames_each_video": 9, "temporal_merge_kernel_size": 3, "timestamp_mode": "mm:ss",
				"image_mean": []float64{0.1, 0.2, 0.3}, "fixed_output_tokens": nil, "merge_kernel_size": 2, "patch_size": 14,
			})
		}, map[string]any{
			"kimi.video.layout": "chunks", "clip.vision.image_max_pixels": uint32(100 * 196), "kimi.video.frame_patch_limit": uint32(50),
			"kimi.video.patch_limit": uint32(600), "kimi.image.side_patch_limit": uint32(20), "kimi.video.sample_fps": float32(1.5),
			"kimi.video.max_frames": uint32(9), "kimi.video.frames_per_chunk": uint32(3), "kimi.video.timestamp_mode": "mm:ss",
			"clip.vision.image_mean": []float32{0.1, 0.2, 0.3},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			files, _ := converttest.Run(t, c.Write(t), convert.OutAuto)
			for key, want := range tc.want {
				got, _ := files[convert.MMProj].Value(key)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}
