package kimik25

import (
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// drop returns a change that leaves out the tensors called name, be it in a layer.
func drop(name string) func(testutil.Tensor) []testutil.Tensor {
	return func(x testutil.Tensor) []testutil.Tensor {
		if x.Name == name || strings.HasPrefix(x.Name, "blk.") && strings.HasSuffix(x.Name, "."+name) {
			return nil
		}
		return []testutil.Tensor{x}
	}
}

// with returns a change that adds tensors behind the one with the name.
func with(name string, more ...testutil.Tensor) func(testutil.Tensor) []testutil.Tensor {
	return func(x testutil.Tensor) []testutil.Tensor {
		if x.Name == name {
			return append([]testutil.Tensor{x}, more...)
		}
		return []testutil.Tensor{x}
	}
}

// wantOpen checks that a file opened, or the error's text.
func wantOpen(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

// TestForeignText has text files as other tools write them.
func TestForeignText(t *testing.T) {
	vector := testutil.Tensor{Name: "rope_freqs.weight", Dims: []int64{8}, Values: make([]float32, 8)}
	for _, tc := range []struct {
		name   string
		keys   map[string]any // nil deletes one
		change func(testutil.Tensor) []testutil.Tensor
		want   string // of the error; empty: it loads
	}{
		{"llama.cpp: without our keys", map[string]any{
			prefix + "attention.latent_norm_rms_epsilon": nil, prefix + "vocab_size": nil,
		}, nil, ""},
		{"llama.cpp: keys we have no use for", map[string]any{
			"general.quantized_by": "Unsloth", "general.repo_url": "https://example.org", "quantize.imatrix.file": "imatrix.gguf",
			"quantize.imatrix.chunks_count": int32(100), prefix + "attention.head_count_kv": uint32(1), "general.tags": []string{"a"},
		}, nil, ""},
		{"DeepSeek's: no groups", map[string]any{prefix + "expert_group_count": nil, prefix + "expert_group_used_count": uint32(0)}, nil, ""},
		{"older: no gating function is a softmax", map[string]any{prefix + "expert_gating_func": nil}, drop("exp_probs_b.bias"), ""},
		{"tied", nil, drop("output.weight"), ""},
		{
			"older: keys and values in one",
			map[string]any{prefix + "attention.key_length_mla": nil, prefix + "attention.value_length_mla": nil},
			nil,
			"attention.value_length_mla",
		},
		{"older: their tensor", nil, func(x testutil.Tensor) []testutil.Tensor {
			if strings.HasSuffix(x.Name, "attn_k_b.weight") {
				x.Name = strings.Replace(x.Name, "attn_k_b", "attn_kv_b", 1)
			}
			return []testutil.Tensor{x}
		}, `tensor "blk.0.attn_k_b.weight"`},
		{"layers for prediction in the file", nil, with("output_norm.weight", testutil.Tensor{
			Name: "blk.61.nextn.eh_proj.weight", Dims: []int64{8}, Values: make([]float32, 8),
		}), `tensor "blk.61.nextn.eh_proj.weight" is not part of this architecture`},
		{"frequencies", nil, with("output_norm.weight", vector), `tensor "rope_freqs.weight" is not part of this architecture`},
		{"another scaling", map[string]any{prefix + "rope.scaling.type": "linear"}, nil, `key "deepseek2.rope.scaling.type": "linear", want yarn or none`},
		{"another router", map[string]any{prefix + "expert_gating_func": uint32(3)}, nil, `key "deepseek2.expert_gating_func": 3`},
		{"another architecture", map[string]any{"general.architecture": "deepseek"}, nil, `architecture "deepseek" is not supported`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := openGGUF(t, testutil.Rewrite(t, randomFiles(t).Model, tc.keys, tc.change))
			m, err := models.Open(f, models.Params{Backend: newBackend(t)})
			if err == nil {
				defer m.Close()
			}
			wantOpen(t, err, tc.want)
		})
	}
}

// TestForeignTower has mmproj files as other tools write them.
func TestForeignTower(t *testing.T) {
	ours := []string{
		"kimi.image.side_patch_limit", "kimi.image.pad_input", "kimi.video.layout", "kimi.video.sample_fps", "kimi.video.max_frames",
		"kimi.video.frames_per_chunk", "kimi.video.timestamp_mode", "kimi.video.frame_patch_limit", "kimi.video.patch_limit",
	}
	without := func(more map[string]any) map[string]any {
		keys := map[string]any{}
		for _, k := range ours {
			keys[k] = nil
		}
		for k, v := range more {
			keys[k] = v
		}
		return keys
	}
	for _, tc := range []struct {
		name   string
		keys   map[string]any
		change func(testutil.Tensor) []testutil.Tensor
		want   string
	}{
		{"llama.cpp: without our keys", without(nil), nil, ""},
		{"without sizes of the position table", without(map[string]any{
			"vision.pos_emb_width": nil, "vision.pos_emb_height": nil, "vision.pos_emb_time": nil,
		}), nil, ""},
		{"without a limit of pixels", without(map[string]any{"clip.vision.image_max_pixels": nil, "clip.vision.image_min_pixels": nil}), nil, ""},
		{"kind by tower", without(map[string]any{"clip.projector_type": nil, "clip.vision.projector_type": "kimik25"}), nil, ""},
		{"more keys and tensors", map[string]any{"clip.vision.wa_pattern": uint32(0)}, with("v.post_ln.weight", testutil.Tensor{
			Name: "v.rope_freqs.weight", Dims: []int64{8}, Values: make([]float32, 8),
		}), ""},
		{"kimivl has a table of another shape", map[string]any{"clip.projector_type": "kimivl"}, nil, `tensor "v.position_embd.weight": shape [144 8 8], want [144 64 1]`},
		{"another merge", map[string]any{"clip.vision.projector.scale_factor": uint32(4)}, nil, `key "clip.vision.projector.scale_factor": 4, want 2`},
		{"another projector", map[string]any{"clip.projector_type": "pixtral"}, nil, `clip.projector_type "pixtral" is not supported`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := openGGUF(t, testutil.Rewrite(t, randomFiles(t).MMProj, tc.keys, tc.change))
			p, err := models.OpenProjector(f, models.Params{Backend: newBackend(t)})
			if err == nil {
				defer p.Close()
			}
			wantOpen(t, err, tc.want)
		})
	}
}
