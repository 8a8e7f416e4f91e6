package inkling

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// port rewrites a published checkpoint in the spelling of transformers: names,
// blocked or split gate and up rows, and config keys.
func port(t *testing.T, c *checkpointtest.Checkpoint, fused bool) *checkpointtest.Checkpoint {
	t.Helper()
	text := c.Section("text_config")
	out := &checkpointtest.Checkpoint{Files: c.Files, Config: c.Config}
	names := strings.NewReplacer(
		"model.llm.embed.", "model.language_model.embed_tokens.", "model.llm.unembed.", "lm_head.",
		"model.llm.", "model.language_model.",
		".attn_norm.", ".input_layernorm.", ".mlp_norm.", ".post_attention_layernorm.",
		".attn.wq_du.", ".self_attn.q_proj.", ".attn.wk_dv.", ".self_attn.k_proj.", ".attn.wv_dv.", ".self_attn.v_proj.",
		".attn.wr_du.", ".self_attn.r_proj.", ".attn.wo_ud.", ".self_attn.o_proj.",
		".attn.k_sconv.", ".self_attn.k_sconv.conv1d.", ".attn.v_sconv.", ".self_attn.v_sconv.conv1d.",
		".attn_sconv.", ".attn_sconv.conv1d.", ".mlp_sconv.", ".mlp_sconv.conv1d.", ".attn.", ".self_attn.",
		".gate.bias", ".gate.e_score_correction_bias", ".w2_md.", ".down_proj.", ".shared_w2_weight", ".down_proj",
		".w2_weight", ".down_proj", "model.audio.encoder.", "model.audio_tower.embed_audio_tokens.embed_audio_tokens.",
		"model.audio.final_norm.", "model.audio_tower.norm.", "model.visual.", "model.vision_tower.",
	)
	for _, x := range c.Tensors {
		var j int
		switch {
		case strings.HasPrefix(x.Name, "model.mtp."): // transformers does not save them
		case strings.Contains(x.Name, "w13"):
			out.Tensors = append(out.Tensors, deinterleave(x, names, fused)...)
		case match(x.Name, "model.visual.layers.linear_%d.weight", &j):
			x.Name = fmt.Sprintf("model.vision_tower.encoder_layers.%d.projection.weight", j)
			out.Tensors = append(out.Tensors, x)
		case match(x.Name, "model.visual.layers.norm_%d.weight", &j):
			x.Name = fmt.Sprintf("model.vision_tower.encoder_layers.%d.layer_norm.weight", j)
			out.Tensors = append(out.Tensors, x)
		default:
			x.Name = names.Replace(x.Name)
			out.Tensors = append(out.Tensors, x)
		}
	}
	layers := int(text["num_hidden_layers"].(float64))
	kinds, mlps := make([]string, layers), make([]string, layers)
	for i := range layers {
		kinds[i], mlps[i] = "hybrid", "sparse"
		if slices.Contains(text["local_layer_ids"].([]any), any(float64(i))) {
			kinds[i] = "hybrid_sliding"
		}
		if i < int(text["dense_mlp_idx"].(float64)) {
			mlps[i] = "dense"
		}
	}
	text["layer_types"], text["mlp_layer_types"] = kinds, mlps
	text["moe_intermediate_size"] = text["intermediate_size"]
	text["intermediate_size"] = text["dense_intermediate_size"]
	text["conv_kernel_size"] = text["sconv_kernel_size"]
	text["max_position_embeddings"] = text["model_max_length"]
	text["embedding_multiplier"] = text["logits_mup_width_multiplier"]
	text["num_local_experts"] = text["n_routed_experts"]
	for _, own := range []string{
		"local_layer_ids", "dense_mlp_idx", "dense_intermediate_size", "sconv_kernel_size", "model_max_length",
		"logits_mup_width_multiplier", "n_routed_experts",
	} {
		delete(text, own)
	}
	vision, audio := c.Section("vision_config"), c.Section("audio_config")
	vision["num_channels"], vision["num_hidden_layers"], vision["hidden_size"] = vision["n_channels"], 24, 1024
	for _, own := range []string{"n_channels", "n_layers", "decoder_dmodel"} {
		delete(vision, own)
	}
	audio["mel_vocab_size"], audio["text_hidden_size"] = 256, audio["decoder_dmodel"]
	delete(audio, "decoder_dmodel")
	return out
}

// deinterleave splits a published tensor of gate and up rows into what the port
// has: two tensors, and one with blocks for routed experts or where fused is set.
func deinterleave(x *checkpointtest.Tensor, names *strings.Replacer, fused bool) []*checkpointtest.Tensor {
	nd := len(x.Shape)
	rows, width := x.Shape[nd-2], int(x.Shape[nd-1])*x.DType.Bits()/8
	var gate, up, blocked []byte
	slab := int(rows) * width
	for s := 0; s < len(x.Data); s += slab {
		var g, u []byte
		for r := 0; r < int(rows); r += 2 {
			at := s + r*width
			g = append(g, x.Data[at:at+width]...)
			u = append(u, x.Data[at+width:at+2*width]...)
		}
		gate, up = append(gate, g...), append(up, u...)
		blocked = append(append(blocked, g...), u...)
	}
	at := strings.Index(x.Name, "shared_w13")
	if at < 0 {
		at = strings.Index(x.Name, "w13")
	}
	prefix, suffix := names.Replace(x.Name[:at]), ""
	if strings.HasSuffix(x.Name, ".weight") {
		suffix = ".weight"
	}
	if fused || strings.Contains(x.Name, ".experts.") {
		return []*checkpointtest.Tensor{{Name: prefix + "gate_up_proj" + suffix, DType: x.DType, Shape: x.Shape, Data: blocked}}
	}
	shape := slices.Clone(x.Shape)
	shape[nd-2] /= 2
	return []*checkpointtest.Tensor{
		{Name: prefix + "gate_proj" + suffix, DType: x.DType, Shape: shape, Data: gate},
		{Name: prefix + "up_proj" + suffix, DType: x.DType, Shape: shape, Data: up},
	}
}

// match reports whether name has the format of exactly one number.
func match(name, format string, n *int) bool {
	_, err := fmt.Sscanf(name, format, n)
	return err == nil && fmt.Sprintf(format, *n) == name
}

// TestSpellings converts one model in the published spelling and in those of
// transformers: the files are the same to the byte.
func TestSpellings(t *testing.T) {
	read := func(dir string) map[convert.Kind][]byte {
		files, _ := converttest.Run(t, dir, convert.OutAuto)
		all := make(map[convert.Kind][]byte)
		for kind, f := range files {
			all[kind] = f.Parts()[0]
		}
		return all
	}
	want := read(tinyRandom)
	delete(want, convert.MTP) // transformers does not save it
	for _, tc := range []struct {
		name  string
		fused bool
		edit  func(c *checkpointtest.Checkpoint)
	}{
		{"as saved", false, func(*checkpointtest.Checkpoint) {}},
		{"gate and up fused everywhere", true, func(*checkpointtest.Checkpoint) {}},
		{"text-only class", false, func(c *checkpointtest.Checkpoint) {
			for _, x := range c.Tensors {
				x.Name = strings.Replace(x.Name, "model.language_model.", "model.", 1)
			}
		}},
		{"local_layer_ids too", false, func(c *checkpointtest.Checkpoint) {
			c.Section("text_config")["local_layer_ids"] = []int{0, 2, 3, 4, 6}
		}},
		{"expert width is the class default", false, func(c *checkpointtest.Checkpoint) {
			c.Section("text_config")["moe_intermediate_size"] = 3072
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			twin := port(t, checkpointtest.Load(t, tinyRandom), tc.fused)
			tc.edit(twin)
			got := read(twin.Write(t))
			for kind := range want {
				if !bytes.Equal(got[kind], want[kind]) {
					t.Errorf("%s file differs", kind)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d files, want %d", len(got), len(want))
			}
		})
	}
}
