package inkling

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/gguf"
)

// matrices returns the names of the tensors of a checkpoint that end in one of the
// suffixes.
func matrices(c *checkpointtest.Checkpoint, suffixes ...string) []string {
	var names []string
	for _, x := range c.Tensors {
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(x.Name, s) }) {
			names = append(names, x.Name)
		}
	}
	return names
}

// mlx rewrites a checkpoint in the port's spelling as MLX's converters do.
func mlx(t *testing.T, c *checkpointtest.Checkpoint, fused bool) *checkpointtest.Checkpoint {
	t.Helper()
	names := strings.NewReplacer(
		"model.language_model.", "language_model.model.", "lm_head.", "language_model.lm_head.",
		"model.vision_tower.", "vision_tower.", "model.audio_tower.", "audio_tower.",
		".mlp.gate.weight", ".mlp.gate_weight", ".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias",
		".mlp.gate.global_scale", ".mlp.global_scale", ".self_attn.rel_logits_proj.proj", ".self_attn.rel_proj",
		".conv1d.", ".conv.", ".mlp.experts.", ".mlp.switch_mlp.",
	)
	for _, x := range c.Tensors {
		x.Name = names.Replace(x.Name)
		if strings.Contains(x.Name, ".conv.") {
			x.Shape = []int64{x.Shape[0], x.Shape[2], 1}
		}
		if strings.Contains(x.Name, "switch_mlp") || strings.Contains(x.Name, "shared_experts") {
			x.Name += ".weight"
		}
	}
	if fused {
		for _, name := range matrices(c, ".self_attn.q_proj.weight") {
			base := strings.TrimSuffix(name, "q_proj.weight")
			q := c.Get(t, name)
			q.Name = base + "qkvr_proj.weight"
			for _, other := range []string{"k", "v", "r"} {
				x := c.Get(t, base+other+"_proj.weight")
				q.Data = append(q.Data, x.Data...)
				q.Shape = []int64{q.Shape[0] + x.Shape[0], q.Shape[1]}
				c.Remove(x.Name)
			}
		}
	}
	return c
}

// TestQuantised converts a checkpoint and twins of it that are quantised, and compares
// the weights. Rounding to four bits costs a relative error near 0.09, to eight near
// 0.02; a wrong order of nibbles leaves no correlation, and a missing scale an error
// of orders of magnitude.
func TestQuantised(t *testing.T) {
	want, _ := converttest.Run(t, tiny, convert.OutF32)
	expertsOf := []string{".experts.w13_weight", ".experts.w2_weight"}
	linear := []string{"q_proj.weight", "o_proj.weight", "gate_proj.weight", "up_proj.weight", "down_proj.weight", "gate_up_proj.weight", "lm_head.weight", "embed_tokens.weight"}
	for _, tc := range []struct {
		name       string
		make       func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint
		rel, corr  float64
		quantised  int // tensors of the text file that are not exact
		autoType   gguf.Type
		autoTensor string
	}{
		{"ModelOpt NVFP4", func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
			for _, name := range matrices(c, expertsOf...) {
				c.NVFP4(t, name, false)
			}
			c.Files["hf_quant_config.json"] = []byte(`{"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head"]}}`)
			return c
		}, 0.11, 0.994, 9, gguf.Q4_K, "blk.4.ffn_gate_exps.weight"},
		{"compressed-tensors NVFP4", func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
			for _, name := range matrices(c, append(expertsOf, ".attn.wq_du.weight")...) {
				c.NVFP4(t, name, true)
			}
			c.Config["quantization_config"] = map[string]any{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}
			return c
		}, 0.11, 0.994, 9 + 6, gguf.Q4_K, "blk.4.ffn_gate_exps.weight"},
		{"FP8 in blocks", func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
			for _, name := range matrices(c, append(expertsOf, ".attn.wq_du.weight", ".mlp.w13_dn.weight")...) {
				if strings.HasPrefix(name, "model.llm.") {
					c.FP8(t, name, 128)
				}
			}
			c.Config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}
			return c
		}, 0.03, 0.999, 9 + 6 + 6, gguf.Q8_0, "blk.4.ffn_gate_exps.weight"},
		{"MLX 4 bit", func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
			c = mlx(t, port(t, c, false), false)
			for _, name := range matrices(c, linear...) {
				c.Affine(t, name, 4, 64)
			}
			c.Config["quantization"] = map[string]any{"group_size": 64, "bits": 4}
			return c
		}, 0.11, 0.994, 0, gguf.Q4_1, "blk.4.ffn_gate_exps.weight"},
		{"MLX 8 bit fused, with overrides", func(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
			c = mlx(t, port(t, c, true), true)
			for _, name := range matrices(c, "qkvr_proj.weight", "down_proj.weight") {
				c.Affine(t, name, 8, 32)
			}
			q := map[string]any{"group_size": 32, "bits": 8}
			for _, name := range matrices(c, "gate_up_proj.weight") {
				c.Affine(t, name, 4, 128)
				q[strings.TrimSuffix(name, ".weight")] = map[string]any{"group_size": 128, "bits": 4}
			}
			q["language_model.lm_head"] = false
			c.Config["quantization"] = q
			return c
		}, 0.13, 0.99, 0, gguf.Q8_0, "blk.4.attn_q.weight"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := tc.make(t, checkpointtest.Load(t, tiny)).Write(t)
			got, _ := converttest.Run(t, dir, convert.OutF32)
			inexact := 0
			for _, info := range want[convert.Text].Tensors() {
				rel, corr := difference(converttest.Floats(t, want[convert.Text], info.Name), converttest.Floats(t, got[convert.Text], info.Name))
				if rel > 0 {
					inexact++
				}
				if rel > tc.rel || corr < tc.corr {
					t.Errorf("%s: relative error %.4f and correlation %.5f, want at most %v and at least %v", info.Name, rel, corr, tc.rel, tc.corr)
				}
			}
			if tc.quantised > 0 && inexact != tc.quantised || inexact == 0 {
				t.Errorf("%d tensors are not exact, want %d", inexact, tc.quantised)
			}
			auto, report := converttest.Run(t, dir, convert.OutAuto)
			if info, _ := auto[convert.Text].Tensor(tc.autoTensor); info.Type != tc.autoType {
				t.Errorf("auto: %s is %v, want %v", tc.autoTensor, info.Type, tc.autoType)
			}
			t.Logf("auto: %q", report.Notes)
		})
	}
}

// difference returns the relative error and the correlation of two tensors.
func difference(want, got []float32) (rel, corr float64) {
	var ww, gg, wg, errs float64
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		ww, gg, wg, errs = ww+w*w, gg+g*g, wg+w*g, errs+(w-g)*(w-g)
	}
	if errs == 0 {
		return 0, 1
	}
	return math.Sqrt(errs / ww), wg / math.Sqrt(ww*gg)
}

// TestNVFP4Out writes NVFP4 from NVFP4 and from BF16. The first keeps every code and
// scale, so that a decoder in float64 gives what the checkpoint stands for.
func TestNVFP4Out(t *testing.T) {
	c := checkpointtest.Load(t, tiny)
	for _, name := range matrices(c, ".experts.w13_weight", ".experts.w2_weight") {
		c.NVFP4(t, name, false)
	}
	dir := c.Write(t)
	kept, _ := converttest.Run(t, dir, convert.OutNVFP4)
	want, _ := converttest.Run(t, dir, convert.OutF32)
	rounded, _ := converttest.Run(t, tiny, convert.OutNVFP4)
	plain, _ := converttest.Run(t, tiny, convert.OutF32)
	n := 0
	for _, info := range kept[convert.Text].Tensors() {
		if !strings.Contains(info.Name, "_exps.weight") {
			if info.Type == gguf.NVFP4 {
				t.Errorf("%s is NVFP4", info.Name)
			}
			continue
		}
		n++
		if rel, _ := difference(converttest.Floats(t, want[convert.Text], info.Name), nvfp4(t, kept[convert.Text], info.Name)); rel > 1e-7 {
			t.Errorf("%s: relative error %v of codes that are kept", info.Name, rel)
		}
		rel, corr := difference(converttest.Floats(t, plain[convert.Text], info.Name), nvfp4(t, rounded[convert.Text], info.Name))
		if rel > 0.11 || corr < 0.994 {
			t.Errorf("%s: relative error %v and correlation %v of BF16 that is rounded", info.Name, rel, corr)
		}
	}
	if n != 9 {
		t.Errorf("%d tensors of experts, want 9", n)
	}
}

// nvfp4 returns a tensor of NVFP4 with its scales multiplied in, in float64.
func nvfp4(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	info, _ := f.Tensor(name)
	v := make([]float64, info.Elems())
	if info.Type != gguf.NVFP4 {
		t.Fatalf("%s is %v", name, info.Type)
	}
	if err := gguf.DecodeRows64(info.Type, v, f.Bytes(info)); err != nil {
		t.Fatal(err)
	}
	scales := converttest.Floats(t, f, strings.TrimSuffix(name, ".weight")+".scale")
	if int64(len(scales)) != info.Dims[2] {
		t.Fatalf("%s: %d scales for %d experts", name, len(scales), info.Dims[2])
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x * float64(scales[i*len(scales)/len(v)]))
	}
	return out
}
