package inkling

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// set returns an edit that sets a member of the text config.
func set(name string, v any) func(*checkpointtest.Checkpoint) {
	return func(c *checkpointtest.Checkpoint) { c.Section("text_config")[name] = v }
}

// unset returns an edit that removes members of the text config.
func unset(names ...string) func(*checkpointtest.Checkpoint) {
	return func(c *checkpointtest.Checkpoint) {
		for _, name := range names {
			delete(c.Section("text_config"), name)
		}
	}
}

// in returns an edit that sets a member of a sub-config.
func in(section, name string, v any) func(*checkpointtest.Checkpoint) {
	return func(c *checkpointtest.Checkpoint) { c.Section(section)[name] = v }
}

// TestRefusesConfig has what is refused because of config.json alone.
func TestRefusesConfig(t *testing.T) {
	const text = "config.json: text_config."
	const unsupported = "config.json: unsupported: text_config."
	list := func(n int, s string) []string { return slices.Repeat([]string{s}, n) }
	for _, tc := range []struct {
		name string
		edit func(*checkpointtest.Checkpoint)
		want string
	}{
		{"divisor missing", unset("logits_mup_width_multiplier"), text + "logits_mup_width_multiplier or embedding_multiplier is missing"},
		{"divisor null", set("logits_mup_width_multiplier", nil), text + "logits_mup_width_multiplier or embedding_multiplier is missing"},
		{"divisor zero", set("logits_mup_width_multiplier", 0), text + "logits_mup_width_multiplier is 0, want more than 0"},
		{"divisor too small for a float32", set("logits_mup_width_multiplier", 1e-60), text + "logits_mup_width_multiplier is 1e-60, want more than 0"},
		{"eps zero", set("rms_norm_eps", 0), text + "rms_norm_eps is 0, want more than 0"},
		{"scale negative", set("route_scale", -1), text + "route_scale is -1, want more than 0"},
		{"alpha negative", set("log_scaling_alpha", -1), text + "log_scaling_alpha is -1, want 0 or more"},
		{"divisor twice", set("embedding_multiplier", 24), text + "logits_mup_width_multiplier is 6 but text_config.embedding_multiplier is 24"},
		{"window twice", set("sliding_window", 32), text + "sliding_window_size is 16 but text_config.sliding_window is 32"},
		{"experts twice", set("num_local_experts", 16), text + "n_routed_experts is 8 but text_config.num_local_experts is 16"},
		{"kernel twice", set("conv_kernel_size", 3), text + "sconv_kernel_size is 4 but text_config.conv_kernel_size is 3"},
		{"context twice", set("max_position_embeddings", 8192), text + "model_max_length is 4096 but text_config.max_position_embeddings is 8192"},
		{"expert width twice", set("moe_intermediate_size", 96), text + "intermediate_size is 64 but text_config.moe_intermediate_size is 96"},
		{"layer kinds twice", set("layer_types", list(8, "hybrid")), "config.json: layer_types and local_layer_ids disagree on layer 0"},
		{"dense twice", set("mlp_layer_types", list(8, "sparse")), text + "dense_mlp_idx is 2 but mlp_layer_types has 0 dense layers"},
		{"dense after sparse", set("mlp_layer_types", append(list(7, "sparse"), "dense")), unsupported + "mlp_layer_types has a dense layer 7 after a sparse one"},
		{"dense unknown", unset("dense_mlp_idx"), text + "dense_mlp_idx or mlp_layer_types is missing"},
		{"layer kinds too few", set("layer_types", list(7, "hybrid")), text + "layer_types has 7 entries for 8 layers"},
		{"layer kind unknown", set("layer_types", list(8, "full")), unsupported + `layer_types[0] is "full", want "hybrid_sliding" or "hybrid"`},
		{"local layer beyond", set("local_layer_ids", []int{8}), text + "local_layer_ids has layer 8 of 8"},
		{"gate", set("gate_activation", "softmax"), unsupported + `gate_activation is "softmax", want "sigmoid"`},
		{"activation", set("hidden_act", "gelu"), unsupported + `hidden_act is "gelu", want "silu"`},
		{"no convolution", set("use_sconv", false), unsupported + "use_sconv is false, want true"},
		{"no embed norm", set("use_embed_norm", false), unsupported + "use_embed_norm is false, want true"},
		{"no gate bias", set("use_gate_bias", false), unsupported + "use_gate_bias is false, want true"},
		{"no global scale", set("use_global_scale", false), unsupported + "use_global_scale is false, want true"},
		{"norm before top-k", set("norm_after_topk", false), unsupported + "norm_after_topk is false, want true"},
		{"no sink", set("shared_expert_sink", false), unsupported + "shared_expert_sink is false, want true"},
		{"query bias", set("q_bias", true), unsupported + "q_bias is true, want false"},
		{"output bias", set("o_bias", true), unsupported + "o_bias is true, want false"},
		{"tied", set("tie_word_embeddings", true), unsupported + "tie_word_embeddings is true, want false"},
		{"softcap", set("final_logit_softcapping", 30), unsupported + "final_logit_softcapping is 30, want none"},
		{"local heads", set("swa_num_attention_heads", 4), unsupported + "swa_num_attention_heads is 4, want 8 as in num_attention_heads"},
		{"no shared expert", set("n_shared_experts", 0), text + "n_shared_experts is 0, want at least 1"},
		{"more used than there", set("num_experts_per_tok", 9), text + "num_experts_per_tok is 9, want at most 8"},
		{"padding", set("unpadded_vocab_size", 1089), text + "unpadded_vocab_size is 1089, want at most 1088"},
		{"many layers", set("num_hidden_layers", 1e6), text + "num_hidden_layers is 1000000, want at most 4096"},
		{"groups", set("num_key_value_heads", 3), text + "num_key_value_heads is 3, which does not divide num_attention_heads 8"},
		{"kernel", set("sconv_kernel_size", 1), text + "sconv_kernel_size is 1, want at least 2"},
		{"text", set("hidden_size", "128"), text + `hidden_size is "128", want a whole number from 0 to 2147483647`},
		{"fraction", set("hidden_size", 128.5), text + "hidden_size is 128.5, want a whole number from 0 to 2147483647"},
		{"looped", set("model_type", "inkling2_text"), `config.json: unsupported: model_type "inkling2_text" is a looped transformer, another architecture than inkling`},
		{"another text model", set("model_type", "llama"), unsupported + `model_type "llama", want one of [inkling_text inkling]`},
		{"encoder", in("vision_config", "vision_encoder_type", "vit"), `config.json: unsupported: vision_config.vision_encoder_type is "vit", want "hmlp"`},
		{"channels", in("vision_config", "n_channels", 4), "config.json: unsupported: vision_config.n_channels is 4, want 3: pictures are RGB"},
		{"audio mode", in("audio_config", "audio_mode", "encodec"), `config.json: unsupported: audio_config.audio_mode is "encodec", want "dmel"`},
		{"audio bias", in("audio_config", "bias", true), "config.json: unsupported: audio_config.bias is true, want false"},
		{"dMel range", in("audio_config", "dmel_min_value", -8), "config.json: unsupported: audio_config.dmel_min_value is -8, want -7"},
		{"sampling rate", func(c *checkpointtest.Checkpoint) {
			c.Files["processor_config.json"] = []byte(`{"feature_extractor":{"sampling_rate":24000}}`)
		}, "processor_config.json: unsupported: feature_extractor.sampling_rate is 24000, want 16000"},
		{"tile size", func(c *checkpointtest.Checkpoint) {
			c.Files["processor_config.json"] = []byte(`{"image_processor":{"size":{"height":40,"width":32}}}`)
		}, "processor_config.json: image_processor.size.width is 32 but patch_size is 40"},
		{"pixel scale", func(c *checkpointtest.Checkpoint) {
			c.Files["processor_config.json"] = []byte(`{"image_processor":{"rescale_factor":1}}`)
		}, "processor_config.json: unsupported: image_processor.rescale_factor is 1, want 1/255"},
		{"one mean", func(c *checkpointtest.Checkpoint) {
			delete(c.Files, "processor_config.json")
			c.Files["preprocessor_config.json"] = []byte(`{"image_mean":[0.5]}`)
		}, "preprocessor_config.json: image_mean has 1 numbers, want 3"},
		{"tower width", in("vision_config", "decoder_dmodel", 256), "config.json: vision_config.decoder_dmodel is 256, text_config.hidden_size is 128"},
		{"tower depth", in("vision_config", "n_layers", 4), "config.json: vision_config.n_layers is 4, the image tower has 2 layers"},
		{"bins", in("audio_config", "n_mel_bins", 77), "feature_extractor.feature_size is 80 but n_mel_bins is 77"},
		{"quantised", func(c *checkpointtest.Checkpoint) {
			c.Config["quantization_config"] = map[string]any{"quant_method": "gptq"}
		}, `config.json: unsupported: quantisation method "gptq", want one of: modelopt, compressed-tensors, fp8, or MLX's`},
		{"image slot", func(c *checkpointtest.Checkpoint) { c.Config["image_token_id"] = 7 }, "config.json: image_token_id is 7, but the tokenizer's <|unused_200054|> is 1040"},
		{"audio slot", func(c *checkpointtest.Checkpoint) { c.Config["audio_token_id"] = 1040 }, "config.json: audio_token_id is 1040, but the tokenizer's <|unused_200053|> is 1039"},
		{"width twice", func(c *checkpointtest.Checkpoint) { c.Config["hidden_size"] = 256 }, "config.json: hidden_size is 256 but text_config.hidden_size is 128"},
		{"layers twice", func(c *checkpointtest.Checkpoint) { c.Config["local_layer_ids"] = []int{0} }, "config.json: local_layer_ids is [0] but text_config.local_layer_ids is [0,2,3,4,6]"},
		{"another class", func(c *checkpointtest.Checkpoint) { c.Config["architectures"] = []string{"LlamaForCausalLM"} }, `config.json: unsupported: architectures ["LlamaForCausalLM"] do not fit model_type "inkling_mm_model"`},
		{"classes in text", func(c *checkpointtest.Checkpoint) { c.Config["architectures"] = "Inkling" }, `config.json: architectures is "Inkling", want a list of strings`},
		{"no type", func(c *checkpointtest.Checkpoint) { delete(c.Config, "model_type") }, "config.json: model_type is missing"},
		{"another type", func(c *checkpointtest.Checkpoint) { c.Config["model_type"] = "llama" }, `config.json: unsupported: model_type "llama", want one of: inkling, inkling_mm_model, inkling_text`},
		{"second generation", func(c *checkpointtest.Checkpoint) { c.Config["model_type"] = "inkling2_mm_model" }, `config.json: unsupported: model_type "inkling2_mm_model" is a looped transformer, another architecture than inkling`},
		{"no text config", func(c *checkpointtest.Checkpoint) { delete(c.Config, "text_config") }, "config.json: text_config is missing"},
		{"no vision config", func(c *checkpointtest.Checkpoint) { delete(c.Config, "vision_config") }, "config.json: vision_config is missing, but there are tensors model.visual.*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			err := converttest.Refused(t, c.Write(t))
			converttest.WantError(t, err, tc.want)
			var format *convert.FormatError
			var unsupported *convert.UnsupportedError
			if strings.Contains(tc.want, ": unsupported: ") != errors.As(err, &unsupported) ||
				errors.As(err, &format) == errors.As(err, &unsupported) {
				t.Errorf("%T is of the wrong kind", err)
			}
		})
	}
}

// TestRefusesTensors has what is refused because of the weights.
func TestRefusesTensors(t *testing.T) {
	const down = "model.llm.layers.2.mlp.experts.w2_weight"
	for _, tc := range []struct {
		name string
		edit func(*testing.T, *checkpointtest.Checkpoint)
		want string
	}{
		{"missing", func(_ *testing.T, c *checkpointtest.Checkpoint) { c.Remove(down) }, ": missing tensor " + down},
		{"missing with both halves", func(_ *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.llm.layers.0.mlp.w13_dn", "model.llm.norm")
		}, ": 2 missing tensors: model.llm.layers.0.mlp.w13_dn.weight, model.llm.norm.weight"},
		{"unknown", func(_ *testing.T, c *checkpointtest.Checkpoint) { c.Add("training_args", 3) }, ": unknown tensor training_args"},
		{"unknown in a list", func(_ *testing.T, c *checkpointtest.Checkpoint) {
			c.Add("model.llm.layers.8.attn_norm.weight", 128)
			c.Add("model.llm.layers.2.attn.q_bias", 128)
		}, ": 2 unknown tensors: model.llm.layers.8.attn_norm.weight, model.llm.layers.2.attn.q_bias"},
		{"shape", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.llm.layers.1.attn.q_norm")
			c.Add("model.llm.layers.1.attn.q_norm.weight", 16)
		}, ": wrong shape model.llm.layers.1.attn.q_norm.weight [16], want [32]"},
		{"transposed", func(t *testing.T, c *checkpointtest.Checkpoint) {
			x := c.Get(t, "model.llm.layers.2.attn.wk_dv.weight")
			slices.Reverse(x.Shape)
		}, ": wrong shape model.llm.layers.2.attn.wk_dv.weight [128 64], want [64 128]"},
		{"half a layer of the image tower", func(_ *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.visual.layers.norm_0")
		}, ": missing tensor model.visual.layers.norm_0.weight"},
		{"image tower without norm", func(_ *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.visual.final_norm")
		}, ": missing tensor model.visual.final_norm.weight"},
		{"image tower of other folds", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Get(t, "model.visual.layers.linear_0.weight").Shape = []int64{300, 320}
		}, ": wrong shape model.visual.layers.linear_0.weight [300 320], want [320 300]"},
		{"image tower without layers", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.visual.layers")
			delete(c.Section("vision_config"), "n_layers")
		}, "config.json: vision_config: hmlp: n_layers 0, want 1 to 64"},
		{"audio rows", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Remove("model.audio.encoder")
			c.Add("model.audio.encoder.weight", 1281, 128)
			c.Section("audio_config")["mel_vocab_size"] = 256
		}, "config.json: tensor model.audio.encoder.weight has 1281 rows, which is no multiple of n_mel_bins 80"},
		{"audio bins", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Section("audio_config")["mel_vocab_size"] = 32
		}, "config.json: num_dmel_bins of the processor is 16, the audio tower has 32"},
		{"codes", func(t *testing.T, c *checkpointtest.Checkpoint) {
			x := c.Get(t, down)
			x.DType, x.Shape = safetensors.U8, []int64{8, 128, 128}
		}, ": unsupported: tensor " + down + " is U8; weights are read as F32, F16, BF16 and F64"},
		{"nothing known", func(t *testing.T, c *checkpointtest.Checkpoint) {
			c.Tensors = nil
			c.Add("a", 1)
		}, "and 148 more; unknown tensor a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(t, c)
			converttest.WantError(t, converttest.Refused(t, c.Write(t)), tc.want)
		})
	}
}

// TestRefusesExpertWidth reports both numbers for every tensor that they differ in.
func TestRefusesExpertWidth(t *testing.T) {
	c := checkpointtest.Load(t, tinyRandom)
	c.Section("text_config")["intermediate_size"] = 32
	delete(c.Section("text_config"), "moe_intermediate_size")
	var tensors *convert.TensorsError
	if err := converttest.Refused(t, c.Write(t)); !errors.As(err, &tensors) {
		t.Fatal(err)
	}
	// Six layers with gate-and-up and down projections of routed and of shared experts.
	if n := len(tensors.Shapes); n != 24 {
		t.Errorf("%d wrong shapes, want 24", n)
	}
	const want = "model.llm.layers.2.mlp.experts.w13_weight [8 128 128], want [8 64 128]"
	if tensors.Shapes[0] != want {
		t.Errorf("first is %q, want %q", tensors.Shapes[0], want)
	}
}

// TestMissingShard deletes shards of a sharded checkpoint. Only the one with
// nothing but draft layers may be absent.
func TestMissingShard(t *testing.T) {
	for _, tc := range []struct {
		drop, note, err string
	}{
		{drop: "mtp.safetensors", note: "shard mtp.safetensors of the index is not there; its 40 tensors, first model.mtp.layers.0.embed_norm.weight, are left out"},
		{drop: "model-00002-of-00003.safetensors", err: `shard model-00002-of-00003.safetensors of the index is missing (43 tensors, first "model.llm.layers.4.attn.k_norm.weight")`},
	} {
		t.Run(tc.drop, func(t *testing.T) {
			dir := t.TempDir()
			entries, err := os.ReadDir(tiny)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				path, err := filepath.Abs(filepath.Join(tiny, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if e.Name() == tc.drop {
					continue
				}
				if err := os.Symlink(path, filepath.Join(dir, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
			if tc.err != "" {
				converttest.WantError(t, converttest.Refused(t, dir), tc.err)
				return
			}
			if err := converttest.Refused(t, dir); !strings.Contains(err.Error(), `shard mtp.safetensors of the index is missing (40 tensors, first "model.mtp.layers.0.embed_norm.weight")`) {
				t.Errorf("without NoMTP: error %v", err)
			}
			files, report := converttest.RunWith(t, convert.Options{Dir: dir, NoMTP: true})
			if len(files) != 2 || !slices.Contains(report.Notes, tc.note) {
				t.Errorf("%d files, notes %q; want 2 files and %q", len(files), report.Notes, tc.note)
			}
		})
	}
}
