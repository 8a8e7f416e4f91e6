package inkling

import (
	"encoding/json"
	"fmt"
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
	local := []bool{true, false, true, true, true, false, true, false}
	kvHeads := []int32{4, 2, 4, 4, 4, 2, 4, 2}
	want := map[string]any{
		"general.architecture": "inkling", "general.type": "model", "general.name": "m",
		"general.size_label": "8x1.4M", // 8 experts; 1,449,496 weights with one of them in each layer
		"general.file_type":  uint32(32), "general.quantization_version": uint32(2),
		"general.sampling.temp": float32(0), // do_sample is false

		"inkling.block_count": uint32(8), "inkling.context_length": uint32(4096), "inkling.vocab_size": uint32(1088),
		"inkling.embedding_length": uint32(128), "inkling.feed_forward_length": uint32(192),
		"inkling.expert_feed_forward_length": uint32(64), "inkling.expert_count": uint32(8),
		"inkling.expert_used_count": uint32(3), "inkling.expert_shared_count": uint32(2),
		"inkling.expert_gating_func": uint32(2), "inkling.expert_weights_scale": float32(4),
		"inkling.attention.head_count": uint32(8), "inkling.attention.head_count_kv": kvHeads,
		"inkling.attention.key_length": uint32(32), "inkling.attention.value_length": uint32(32),
		"inkling.attention.key_length_swa": uint32(16), "inkling.attention.value_length_swa": uint32(16),
		"inkling.attention.layer_norm_rms_epsilon": float32(1e-6), "inkling.attention.sliding_window": uint32(16),
		"inkling.attention.sliding_window_pattern": local,
		"inkling.d_rel": uint32(8), "inkling.rel_extent": uint32(32), "inkling.rel_extent_swa": uint32(16),
		"inkling.shortconv_kernel": uint32(4), "inkling.dense_block_count": uint32(2),
		"inkling.logit_scale_denom": float32(6), "inkling.log_scaling_n_floor": uint32(24),
		"inkling.log_scaling_alpha": float32(0.1), "inkling.unpadded_vocab_size": uint32(1042),
		"inkling.image_token_id": uint32(1040), "inkling.audio_token_id": uint32(1039),
	}
	if diff := cmp.Diff(want, converttest.Keys(files[convert.Text])); diff != "" {
		t.Errorf("text keys (-want +got):\n%s", diff)
	}
	want = map[string]any{
		"general.architecture": "clip", "general.type": "mmproj", "general.name": "m",
		"general.size_label": "1.6M", "general.file_type": uint32(32), "general.quantization_version": uint32(2),
		"clip.has_vision_encoder": true, "clip.has_audio_encoder": true,
		"clip.vision.projector_type": "inkling", "clip.vision.projection_dim": uint32(128),
		"clip.vision.image_size": uint32(40), "clip.vision.patch_size": uint32(40),
		"clip.vision.embedding_length": uint32(3), "clip.vision.feed_forward_length": uint32(0),
		"clip.vision.block_count": uint32(2), "clip.vision.attention.head_count": uint32(1),
		"clip.vision.attention.layer_norm_epsilon": float32(1e-6),
		"clip.vision.image_mean":                   []float32{0.48145466, 0.4578275, 0.40821073},
		"clip.vision.image_std":                    []float32{0.26862954, 0.26130258, 0.27577711},
		"clip.audio.projector_type":                "inkling", "clip.audio.projection_dim": uint32(128),
		"clip.audio.embedding_length": uint32(128), "clip.audio.feed_forward_length": uint32(0),
		"clip.audio.block_count": uint32(0), "clip.audio.attention.head_count": uint32(1),
		"clip.audio.attention.layer_norm_epsilon": float32(1e-6), "clip.audio.num_mel_bins": uint32(80),
		"inkling.vision.rescale_max_long_edge": uint32(2048),
	}
	if diff := cmp.Diff(want, converttest.Keys(files[convert.MMProj])); diff != "" {
		t.Errorf("mmproj keys (-want +got):\n%s", diff)
	}
}

// TestTokenizerKeys compares the vocabulary's keys with tokenizer.json.
func TestTokenizerKeys(t *testing.T) {
	files, _ := converttest.Run(t, tinyRandom, convert.OutBF16)
	f := files[convert.Text]
	c := checkpointtest.Load(t, tinyRandom)
	var tok struct {
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges []any
		}
	}
	if err := json.Unmarshal(c.Files["tokenizer.json"], &tok); err != nil {
		t.Fatal(err)
	}
	tokens, err := f.Strs("tokenizer.ggml.tokens")
	if err != nil {
		t.Fatal(err)
	}
	types, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	want, wantTypes := make([]string, 1088), make([]int64, 1088)
	for i := range want {
		want[i], wantTypes[i] = fmt.Sprintf("[PAD%d]", i), 5
	}
	for s, id := range tok.Model.Vocab {
		want[id], wantTypes[id] = s, 1
	}
	for _, a := range tok.Added {
		want[a.ID], wantTypes[a.ID] = a.Content, 3
	}
	if diff := cmp.Diff(want, tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTypes, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if merges, err := f.Strs("tokenizer.ggml.merges"); len(merges) != len(tok.Model.Merges) {
		t.Errorf("%d merges (%v), want %d", len(merges), err, len(tok.Model.Merges))
	}
	for key, want := range map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "inkling", "tokenizer.ggml.add_bos_token": false,
		"tokenizer.ggml.eos_token_id": uint32(1031), "tokenizer.ggml.bos_token_id": uint32(1031),
		"tokenizer.chat_template": string(c.Files["chat_template.jinja"]),
	} {
		if got, _ := f.Value(key); !cmp.Equal(got, want) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}
