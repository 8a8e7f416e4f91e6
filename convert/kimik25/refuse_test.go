package kimik25

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// set returns an edit that sets a member of a sub-config, or of config.json if the
// section is empty.
func set(section, name string, v any) func(*checkpointtest.Checkpoint) {
	return func(c *checkpointtest.Checkpoint) {
		if section == "" {
			c.Config[name] = v
			return
		}
		c.Section(section)[name] = v
	}
}

// TestRefusesConfig has what is refused because of config.json alone.
func TestRefusesConfig(t *testing.T) {
	const text, vision = "text_config", "vision_config"
	yarn := func(name string, v any) func(*checkpointtest.Checkpoint) {
		return func(c *checkpointtest.Checkpoint) { c.Section(text)["rope_scaling"].(map[string]any)[name] = v }
	}
	for _, tc := range []struct {
		name string
		edit func(*checkpointtest.Checkpoint)
		want string
	}{
		{"no text config", func(c *checkpointtest.Checkpoint) { delete(c.Config, text) }, "text_config is missing"},
		{"text of another type", set(text, "model_type", "llama"), `text_config.model_type "llama", want one of [deepseek_v3 kimi_k2]`},
		{"width twice", set("", "hidden_size", 7), "hidden_size is 7 but text_config.hidden_size is 128"},
		{"another class", set("", "architectures", []string{"InklingForConditionalGeneration"}), `unsupported: architectures ["InklingForConditionalGeneration"] do not fit model_type "kimi_k25"`},
		{"older router", set("", "model_type", "deepseek_v2"), `model_type "deepseek_v2" has another router than deepseek_v3`},
		{"linear attention", set("", "model_type", "kimi_linear"), `model_type "kimi_linear" has linear attention, another architecture than kimi_k25`},
		{"activation", set(text, "hidden_act", "gelu"), `unsupported: text_config.hidden_act is "gelu", want "silu"`},
		{"attention bias", set(text, "attention_bias", true), "unsupported: text_config.attention_bias is true, want false"},
		{"rotation by halves", set(text, "rope_interleave", false), "unsupported: text_config.rope_interleave is false, want true"},
		{"every other layer dense", set(text, "moe_layer_freq", 2), "unsupported: text_config.moe_layer_freq is 2, want 1"},
		{"scoring", set(text, "scoring_func", "tanh"), `unsupported: text_config.scoring_func is "tanh", want "sigmoid" or "softmax"`},
		{"choice of experts", set(text, "topk_method", "group_limited_greedy"), `unsupported: text_config.topk_method is "group_limited_greedy", want "noaux_tc" or "greedy"`},
		{"groups", set(text, "n_group", 3), "text_config.n_group is 3, which does not divide n_routed_experts 8"},
		{"too many groups used", set(text, "topk_group", 2), "text_config.topk_group is 2, want at most 1"},
		{"too few experts in the groups", func(c *checkpointtest.Checkpoint) {
			c.Section(text)["n_group"] = 4
		}, "text_config.num_experts_per_tok is 3, but 1 groups have 2 experts"},
		{"experts under two names", set(text, "num_local_experts", 4), "text_config.n_routed_experts is 8 but text_config.num_local_experts is 4"},
		{"no experts", set(text, "n_routed_experts", 0), "text_config.n_routed_experts is 0, want at least 1"},
		{"too many layers", set(text, "num_hidden_layers", 5000), "text_config.num_hidden_layers is 5000, want at most 4096"},
		{"dense layers beyond", set(text, "first_k_dense_replace", 5), "text_config.first_k_dense_replace is 5, want at most 4"},
		{"odd rotation", set(text, "qk_rope_head_dim", 15), "text_config.qk_rope_head_dim is 15, want an even number"},
		{"eps", set(text, "rms_norm_eps", 0), "text_config.rms_norm_eps is 0, want more than 0"},
		{"no base", set(text, "rope_theta", nil), "text_config.rope_theta is missing"},
		{"other scaling", yarn("type", "linear"), "text_config.rope_scaling.rope_type is \"yarn\" but text_config.rope_scaling.type is \"linear\""},
		{"unknown scaling", func(c *checkpointtest.Checkpoint) {
			yarn("type", "linear")(c)
			yarn("rope_type", "linear")(c)
		}, `unsupported: text_config.rope_scaling.rope_type is "linear", want yarn`},
		{"no factor", yarn("factor", nil), "text_config.rope_scaling.factor is missing"},
		{"factor", yarn("factor", 0.5), "text_config.rope_scaling.factor is 0.5, want at least 1"},
		{"two factors of cos and sin", yarn("mscale", 0.5), "unsupported: text_config.rope_scaling.mscale is 0.5 and mscale_all_dim 1, want the same"},
		{"two scalings", set(text, "rope_parameters", map[string]any{
			"rope_type": "yarn", "rope_theta": 50000, "factor": 32, "original_max_position_embeddings": 4096, "mscale_all_dim": 1,
		}), "rope_parameters and rope_scaling disagree"},
		{"two bases", set(text, "rope_parameters", map[string]any{"rope_theta": 10000}), "text_config.rope_parameters.rope_theta is 10000, elsewhere 50000"},
		{"merge", set(vision, "merge_kernel_size", []int{2, 4}), "unsupported: vision_config.merge_kernel_size is [2 4], want 2"},
		{"merge type", set(vision, "merge_type", "sd2"), `unsupported: vision_config.merge_type is "sd2", want "sd2_tpool"`},
		{"projector", set(vision, "mm_projector_type", "mlp"), `unsupported: vision_config.mm_projector_type is "mlp", want "patchmerger"`},
		{"projector's activation", set(vision, "projector_hidden_act", "silu"), `unsupported: vision_config.projector_hidden_act is "silu", want "gelu"`},
		{"tower's activation", set(vision, "hidden_act", "gelu"), `unsupported: vision_config.hidden_act is "gelu", want "gelu_pytorch_tanh"`},
		{"heads", func(c *checkpointtest.Checkpoint) {
			set(vision, "vt_num_attention_heads", 8)(c)
			set(vision, "num_attention_heads", 8)(c)
		}, "vision_config.vt_hidden_size is 144, want a multiple of 4 for each of 8 heads: pairs of pairs turn together"},
		{"tower's width under two names", set(vision, "vt_hidden_size", 160), "vision_config.vt_hidden_size is 160 but vision_config.hidden_size is 144"},
		{"projector's input", set(vision, "mm_hidden_size", 160), "vision_config.mm_hidden_size is 160, elsewhere 144"},
		{"projector's output", set(vision, "text_hidden_size", 256), "vision_config.text_hidden_size is 256, elsewhere 128"},
		{"media id twice", set("", "image_token_id", 1035), "media_placeholder_token_id is 1034 but image_token_id is 1035"},
		{"media id of another token", func(c *checkpointtest.Checkpoint) {
			set("", "image_token_id", 1035)(c)
			set("", "media_placeholder_token_id", 1035)(c)
		}, "media_placeholder_token_id is 1035, but the tokenizer's <|media_pad|> is 1034"},
		{"vocabulary larger than the embedding", set(text, "vocab_size", 1000), "embed_tokens.weight [1056 128], want [1000 128]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			err := converttest.Refused(t, c.Write(t))
			if strings.Contains(tc.name, "embedding") {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %q, want %q in it", err, tc.want)
				}
				return
			}
			converttest.WantError(t, err, tc.want)
			var unsupported *convert.UnsupportedError
			if named := strings.Contains(err.Error(), "unsupported"); named != errors.As(err, &unsupported) {
				t.Errorf("error of type %T", err)
			}
		})
	}
}

// TestRefusesTensors has what is refused because of the tensors.
func TestRefusesTensors(t *testing.T) {
	const layer = "language_model.model.layers.1."
	for _, tc := range []struct {
		name string
		edit func(c *checkpointtest.Checkpoint)
		want string
	}{
		{"an expert missing", func(c *checkpointtest.Checkpoint) {
			c.Remove(layer + "mlp.experts.3.up_proj")
		}, "missing tensor " + layer + "mlp.experts.3.up_proj.weight"},
		{"an expert too many", func(c *checkpointtest.Checkpoint) {
			c.Add(layer+"mlp.experts.8.up_proj.weight", 64, 128)
		}, "unknown tensor " + layer + "mlp.experts.8.up_proj.weight"},
		{"no latents", func(c *checkpointtest.Checkpoint) {
			c.Remove(layer + "self_attn.kv_b_proj")
		}, "missing tensor " + layer + "self_attn.kv_b_proj.weight"},
		{"latents of another size", func(c *checkpointtest.Checkpoint) {
			x := c.Add(layer+"self_attn.kv_b_proj.weight", 256, 32)
			c.Tensors = slices.DeleteFunc(c.Tensors, func(y *checkpointtest.Tensor) bool { return y.Name == x.Name && y != x })
		}, "wrong shape " + layer + "self_attn.kv_b_proj.weight [256 32], want [256 64]"},
		{"correction bias missing", func(c *checkpointtest.Checkpoint) {
			c.Remove(layer + "mlp.gate.e_score")
		}, "missing tensor " + layer + "mlp.gate.e_score_correction_bias"},
		{"a bias of the tower missing", func(c *checkpointtest.Checkpoint) {
			c.Remove("vision_tower.encoder.blocks.0.wqkv.bias")
		}, "missing tensor vision_tower.encoder.blocks.0.wqkv.bias"},
		{"a time table that is learned", func(c *checkpointtest.Checkpoint) {
			c.Add("vision_tower.patch_embed.pos_emb.time_emb", 4, 144)
		}, "unknown tensor vision_tower.patch_embed.pos_emb.time_emb"},
		{"a tower without a config", func(c *checkpointtest.Checkpoint) {
			delete(c.Config, "vision_config")
		}, "vision_config is missing, but there are tensors vision_tower.*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			converttest.WantError(t, converttest.Refused(t, c.Write(t)), tc.want)
		})
	}
}

// TestRefusesFiles has what is refused because of the files beside the weights.
func TestRefusesFiles(t *testing.T) {
	replace := func(file, old, by string) func(*checkpointtest.Checkpoint) {
		return func(c *checkpointtest.Checkpoint) {
			c.Files[file] = bytes.Replace(c.Files[file], []byte(old), []byte(by), 1)
		}
	}
	drop := func(names ...string) func(*checkpointtest.Checkpoint) {
		return func(c *checkpointtest.Checkpoint) {
			for _, n := range names {
				delete(c.Files, n)
			}
		}
	}
	const processor = "processor_config.json"
	for _, tc := range []struct {
		name string
		edit func(*checkpointtest.Checkpoint)
		want string
	}{
		{"no tokenizer", drop("tokenizer.json", "tiktoken.model"), "no such file or directory"},
		{"no placeholder", replace("tokenizer.json", "<|media_pad|>", "<|media_other|>"), "no token <|media_pad|>, the placeholder of media"},
		{"no opener", replace("tokenizer.json", "<|media_begin|>", "<|media_other|>"), "no token <|media_begin|> or <|media_start|>, which opens media"},
		{"no end of media", replace("tokenizer.json", "<|media_end|>", "<|media_other|>"), "no token <|media_end|>"},
		{"other pattern", func(c *checkpointtest.Checkpoint) {
			delete(c.Files, "tiktoken.model")
			replace("tokenizer.json", `|\\p{N}{1,3}|`, `|\\p{N}|`)(c)
		}, "unsupported: the pattern that splits text is not that of the Kimi family"},
		{"patch of the processor", replace(processor, `"patch_size": 14`, `"patch_size": 16`), "image_processor.patch_size is 16, elsewhere 14"},
		{"filter", replace(processor, `"resample": 3`, `"resample": 1`), "unsupported: image_processor.resample is 1, want 3 (bicubic)"},
		{"scale of pixels", replace(processor, `0.00392156862745098`, `0.5`), "unsupported: image_processor.rescale_factor is 0.5, want 1/255"},
		{"deviation", replace(processor, "\"image_std\": [\n      0.5", "\"image_std\": [\n      0"), "image_processor.image_std has a 0"},
		{"chunks beyond the tower's frames", replace(processor, `"temporal_patch_size": 4`, `"temporal_patch_size": 5`), "5 frames in a chunk, but init_pos_emb_time is 4"},
		{"no frames a second", replace(processor, `"fps": 2`, `"fps": 0`), "video_processor has 0 frames a second, want more"},
		{"fixed number of tokens", func(c *checkpointtest.Checkpoint) {
			c.Files["preprocessor_config.json"] = []byte(`{"media_proc_cfg":{"fixed_output_tokens":64}}`)
		}, "unsupported: media_proc_cfg.fixed_output_tokens is set, want null"},
		{"time stamps", func(c *checkpointtest.Checkpoint) {
			c.Files["preprocessor_config.json"] = []byte(`{"media_proc_cfg":{"timestamp_mode":"ss"}}`)
		}, `unsupported: media_proc_cfg.timestamp_mode is "ss", want one of ["hh:mm:ss.fff" "mm:ss.fff" "mm:ss"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			converttest.WantError(t, converttest.Refused(t, c.Write(t)), tc.want)
		})
	}
}
