package inkling

import (
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// foreign is a file as another tool writes it: the random model's with other keys (nil
// deletes one) and tensors.
type foreign struct {
	name   string
	keys   map[string]any
	change func(testutil.Tensor) []testutil.Tensor
	want   string // of the error; empty: it loads
}

// with returns a change that adds a tensor behind the one with the name.
func with(name string, more testutil.Tensor) func(testutil.Tensor) []testutil.Tensor {
	return func(x testutil.Tensor) []testutil.Tensor {
		if x.Name == name {
			return []testutil.Tensor{x, more}
		}
		return []testutil.Tensor{x}
	}
}

// run opens the file by open and compares the error.
func (tc foreign) run(t *testing.T, file string, open func(path string) (close func(), err error)) {
	t.Run(tc.name, func(t *testing.T) {
		done, err := open(testutil.Rewrite(t, file, tc.keys, tc.change))
		if err == nil {
			defer done()
		}
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("error %v\nwant  %s", err, tc.want)
		}
	})
}

// TestForeignText has text files as llama.cpp's branch, Unsloth, Mesh-LLM and others
// write them, or as they would if they took another model's habits.
func TestForeignText(t *testing.T) {
	vector := func(name string) testutil.Tensor {
		return testutil.Tensor{Name: name, Dims: []int64{8}, Values: make([]float32, 8)}
	}
	for _, tc := range []foreign{
		{"keys that a reader can do without", map[string]any{
			prefix + "vocab_size": nil, prefix + "unpadded_vocab_size": nil, prefix + "expert_gating_func": nil,
			prefix + "log_scaling_n_floor": nil, prefix + "log_scaling_alpha": nil,
		}, nil, ""},
		{"keys we have no use for", map[string]any{
			"general.quantized_by": "Unsloth", "quantize.imatrix.file": "imatrix.gguf", "quantize.imatrix.chunks_count": int32(100),
			prefix + "rope.freq_base": float32(10000), prefix + "expert_weights_norm": true, "general.tags": []string{"a"},
		}, nil, ""},
		{"heads in another width", map[string]any{prefix + "attention.head_count_kv": []uint64{4, 2, 4, 4, 4, 2, 4, 2}}, nil, ""},
		{
			"heads for too few layers",
			map[string]any{prefix + "attention.head_count_kv": []int32{4, 2}},
			nil,
			`key "inkling.attention.head_count_kv": 2 values for 8 layers`,
		},
		{
			"heads as one number",
			map[string]any{prefix + "attention.head_count_kv": uint32(4)},
			nil,
			"is uint32 4, want an array of integers",
		},
		{
			"sliding as numbers",
			map[string]any{prefix + "attention.sliding_window_pattern": []int32{1, 0, 1, 1, 1, 0, 1, 0}},
			nil,
			`key "inkling.attention.sliding_window_pattern"`,
		},
		{
			"sliding as a period",
			map[string]any{prefix + "attention.sliding_window_pattern": uint32(6)},
			nil,
			`key "inkling.attention.sliding_window_pattern"`,
		},
		{
			"dense layers under DeepSeek's name",
			map[string]any{prefix + "dense_block_count": nil, prefix + "leading_dense_block_count": uint32(2)},
			nil,
			`key "inkling.dense_block_count"`,
		},
		{"another router", map[string]any{prefix + "expert_gating_func": uint32(1)}, nil, `key "inkling.expert_gating_func": 1, want 2 (sigmoid)`},
		{"gate and up in one", nil, func(x testutil.Tensor) []testutil.Tensor {
			if strings.HasSuffix(x.Name, "ffn_gate_exps.weight") {
				x.Name = strings.Replace(x.Name, "gate_exps", "gate_up_exps", 1)
			}
			return []testutil.Tensor{x}
		}, `tensor "blk.2.ffn_gate_exps.weight"`},
		{"shared experts side by side", nil, func(x testutil.Tensor) []testutil.Tensor {
			if strings.HasSuffix(x.Name, "ffn_up_shexp.weight") { // DeepSeek's way
				x.Dims = []int64{x.Dims[0], x.Dims[1] * x.Dims[2]}
			}
			return []testutil.Tensor{x}
		}, `tensor "blk.2.ffn_up_shexp.weight": shape [128 128], want [128 64 2]`},
		{
			"scales beside the weights", nil, with("output_norm.weight", vector("blk.2.ffn_gate_exps.scale")),
			`tensor "blk.2.ffn_gate_exps.scale" is not part of this architecture`,
		},
		{"frequencies", nil, with("output_norm.weight", vector("rope_freqs.weight")), `tensor "rope_freqs.weight" is not part of this architecture`},
		{
			"layers for prediction among the others", nil, with("output_norm.weight", vector("blk.8.nextn.eh_proj.weight")),
			`tensor "blk.8.nextn.eh_proj.weight" is not part of this architecture`,
		},
		{"Mesh-LLM: the same, and counted", map[string]any{
			prefix + "nextn_predict_layers": uint32(1), prefix + "block_count": uint32(9),
			prefix + "attention.head_count_kv":          []int32{4, 2, 4, 4, 4, 2, 4, 2, 4},
			prefix + "attention.sliding_window_pattern": []bool{true, false, true, true, true, false, true, false, true},
		}, with("output_norm.weight", vector("blk.8.nextn.eh_proj.weight")), ""},
		{"counted by another number", map[string]any{
			prefix + "nextn_predict_layers": uint32(2), prefix + "block_count": uint32(9),
			prefix + "attention.head_count_kv":          []int32{4, 2, 4, 4, 4, 2, 4, 2, 4},
			prefix + "attention.sliding_window_pattern": []bool{true, false, true, true, true, false, true, false, true},
		}, with("output_norm.weight", vector("blk.8.nextn.eh_proj.weight")), `key "inkling.nextn_predict_layers": 2, but 1 blocks`},
		{"counted, but left out", map[string]any{prefix + "nextn_predict_layers": uint32(2)}, nil, ""},
		{"another architecture", map[string]any{"general.architecture": "inkling2"}, nil, `architecture "inkling2" is not supported`},
	} {
		tc.run(t, randomFiles(t).Model, func(path string) (func(), error) {
			m, err := models.Open(openGGUF(t, path), models.Params{Backend: newBackend(t)})
			if err != nil {
				return nil, err
			}
			return m.Close, nil
		})
	}
}

// TestForeignTowers has mmproj files.
func TestForeignTowers(t *testing.T) {
	for _, tc := range []foreign{
		{"llama.cpp: without our keys", map[string]any{
			"inkling.vision.temporal_patch_size": nil, "inkling.vision.rescale_image_frac": nil, "inkling.vision.rescale_max_long_edge": nil,
		}, nil, ""},
		{"kind for both towers", map[string]any{
			"clip.projector_type": "inkling", "clip.vision.projector_type": nil, "clip.audio.projector_type": nil,
		}, nil, ""},
		{"more keys and tensors", map[string]any{"clip.use_gelu": true}, with("v.hmlp.final_norm.weight", testutil.Tensor{
			Name: "v.patch_bias", Dims: []int64{8}, Values: make([]float32, 8),
		}), ""},
		{
			"an early converter's width",
			map[string]any{"clip.vision.projection_dim": uint32(6144)},
			nil,
			"clip.vision.projection_dim 6144 and clip.audio.projection_dim 128 differ",
		},
		{"a tower without its tensors", nil, func(x testutil.Tensor) []testutil.Tensor {
			return slices.DeleteFunc([]testutil.Tensor{x}, func(x testutil.Tensor) bool { return strings.HasPrefix(x.Name, "a.") })
		}, `tensor "a.dmel.embedding.weight"`},
		{"another projector", map[string]any{"clip.vision.projector_type": "pixtral"}, nil, `clip.vision.projector_type "pixtral" is not supported`},
		{"no projector named", map[string]any{"clip.vision.projector_type": nil, "clip.audio.projector_type": nil}, nil, "names no projector type"},
	} {
		tc.run(t, randomFiles(t).MMProj, func(path string) (func(), error) {
			p, err := models.OpenProjector(openGGUF(t, path), models.Params{Backend: newBackend(t)})
			if err != nil {
				return nil, err
			}
			return p.Close, nil
		})
	}
}
