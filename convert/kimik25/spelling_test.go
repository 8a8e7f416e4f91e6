package kimik25

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// port rewrites a published checkpoint in the spelling of transformers: names,
// stacked experts, split and permuted queries and keys, and config keys.
func port(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
	t.Helper()
	out := &checkpointtest.Checkpoint{Files: maps.Clone(c.Files), Config: c.Config}
	delete(out.Files, "tiktoken.model")
	text, vision := c.Section("text_config"), c.Section("vision_config")
	heads, experts := int(vision["vt_num_attention_heads"].(float64)), int(text["n_routed_experts"].(float64))
	// Names of the tower overlap, so they are replaced at once.
	names := strings.NewReplacer(
		"language_model.lm_head.", "lm_head.", "language_model.model.", "model.language_model.",
		"pos_emb.weight", "pos_emb.position_embeddings", ".encoder.blocks.", ".layers.", ".encoder.final_layernorm", ".final_layernorm",
		".norm0.", ".norm1.", ".norm1.", ".norm2.", ".wo.", ".attn.proj.", ".mlp.fc0.", ".mlp.fc1.", ".mlp.fc1.", ".mlp.fc2.",
		".proj.0.", ".in_proj.", ".proj.2.", ".out_proj.",
	)
	for _, x := range c.Tensors {
		name := names.Replace(x.Name)
		if strings.HasPrefix(name, "vision_tower.") || strings.HasPrefix(name, "mm_projector.") {
			name = "model." + name
		}
		at := strings.Index(name, ".wqkv.")
		switch expert := strings.Index(name, ".experts."); {
		case at >= 0:
			d := int(x.Shape[0]) / 3
			for i, which := range []string{"q", "k", "v"} {
				rows := part(x, i*d, d)
				if which != "v" {
					rows = permute(rows, heads)
				}
				rows.Name = name[:at] + ".attn." + which + "_proj." + name[at+len(".wqkv."):]
				out.Tensors = append(out.Tensors, rows)
			}
		case expert >= 0:
			if prefix := name[:expert] + ".experts."; strings.HasPrefix(name, prefix+"0.down_proj") {
				out.Tensors = append(out.Tensors, stack(t, c, x.Name[:strings.Index(x.Name, "0.down_proj")], prefix, experts)...)
			}
		default:
			out.Tensors = append(out.Tensors, &checkpointtest.Tensor{Name: name, DType: x.DType, Shape: x.Shape, Data: x.Data})
		}
	}
	text["model_type"] = "deepseek_v3"
	rope := text["rope_scaling"].(map[string]any)
	rope["rope_theta"] = text["rope_theta"]
	text["rope_parameters"] = rope
	text["num_local_experts"] = text["n_routed_experts"]
	for _, own := range []string{"rope_scaling", "rope_theta", "n_routed_experts"} {
		delete(text, own)
	}
	for _, key := range slices.Collect(maps.Keys(vision)) {
		for _, prefix := range []string{"vt_", "init_"} {
			if short, ok := strings.CutPrefix(key, prefix); ok {
				vision[short] = vision[key]
				delete(vision, key)
			}
		}
	}
	out.Config["image_token_id"] = out.Config["media_placeholder_token_id"]
	delete(out.Config, "media_placeholder_token_id")
	return out
}

// part returns n rows of a tensor from row first on.
func part(x *checkpointtest.Tensor, first, n int) *checkpointtest.Tensor {
	width := len(x.Data) / int(x.Shape[0])
	shape := slices.Clone(x.Shape)
	shape[0] = int64(n)
	return &checkpointtest.Tensor{DType: x.DType, Shape: shape, Data: x.Data[first*width : (first+n)*width]}
}

// permute puts the rows of each head, pairs side by side, into the order of first
// and second elements: old index 2i + c becomes c·hd/2 + i.
func permute(x *checkpointtest.Tensor, heads int) *checkpointtest.Tensor {
	rows := int(x.Shape[0])
	hd, width := rows/heads, len(x.Data)/rows
	out := make([]byte, len(x.Data))
	for head := range heads {
		for i := range hd / 2 {
			for c := range 2 {
				from, to := head*hd+2*i+c, head*hd+c*hd/2+i
				copy(out[to*width:(to+1)*width], x.Data[from*width:])
			}
		}
	}
	return &checkpointtest.Tensor{DType: x.DType, Shape: x.Shape, Data: out}
}

// stack makes the port's two tensors of the experts called prefix0.gate_proj.weight
// and so on.
func stack(t *testing.T, c *checkpointtest.Checkpoint, prefix, to string, experts int) []*checkpointtest.Tensor {
	var both, down []byte
	var shape []int64
	for e := range experts {
		gate := c.Get(t, fmt.Sprintf("%s%d.gate_proj.weight", prefix, e))
		both = append(append(both, gate.Data...), c.Get(t, fmt.Sprintf("%s%d.up_proj.weight", prefix, e)).Data...)
		down = append(down, c.Get(t, fmt.Sprintf("%s%d.down_proj.weight", prefix, e)).Data...)
		shape = gate.Shape
	}
	n := int64(experts)
	return []*checkpointtest.Tensor{
		{Name: to + "gate_up_proj", DType: safetensors.BF16, Shape: []int64{n, 2 * shape[0], shape[1]}, Data: both},
		{Name: to + "down_proj", DType: safetensors.BF16, Shape: []int64{n, shape[1], shape[0]}, Data: down},
	}
}

// contents converts a checkpoint and returns its outputs.
func contents(t *testing.T, dir string) map[convert.Kind][]byte {
	files, _ := converttest.Run(t, dir, convert.OutAuto)
	all := make(map[convert.Kind][]byte)
	for kind, f := range files {
		all[kind] = f.Parts()[0]
	}
	return all
}

// TestSpellings converts models in the published spelling and in that of
// transformers: the files are the same to the byte.
func TestSpellings(t *testing.T) {
	for _, dir := range []string{tinyRandom, tiny} {
		want := contents(t, dir)
		for _, tc := range []struct {
			name string
			edit func(c *checkpointtest.Checkpoint)
		}{
			{"as saved", func(*checkpointtest.Checkpoint) {}},
			{"scaling under both names", func(c *checkpointtest.Checkpoint) {
				text := c.Section("text_config")
				text["rope_scaling"] = text["rope_parameters"]
				text["rope_theta"] = 50000
			}},
			{"time table and frequencies saved", func(c *checkpointtest.Checkpoint) {
				c.Add("model.vision_tower.patch_embed.pos_emb.time_weight", 4, 1, 144)
				c.Add("model.language_model.layers.0.self_attn.rotary_emb.inv_freq", 8)
			}},
			{"tie_word_embeddings missing, as its default is wrong", func(c *checkpointtest.Checkpoint) {
				delete(c.Config, "tie_word_embeddings")
				delete(c.Section("text_config"), "tie_word_embeddings")
			}},
			{"tie_word_embeddings true, but there is a head", func(c *checkpointtest.Checkpoint) {
				c.Config["tie_word_embeddings"] = true
			}},
			{"a layer beyond the last", func(c *checkpointtest.Checkpoint) {
				c.Add("model.language_model.layers.4.eh_proj.weight", 128, 256)
				c.Section("text_config")["num_mtp_layers"] = 1
			}},
		} {
			t.Run(dir+"/"+tc.name, func(t *testing.T) {
				twin := port(t, checkpointtest.Load(t, dir))
				tc.edit(twin)
				got := contents(t, twin.Write(t))
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
}

// vl makes a Kimi-VL checkpoint of a Kimi-K2.5 one: the same weights.
func vl(t *testing.T, c *checkpointtest.Checkpoint) *checkpointtest.Checkpoint {
	t.Helper()
	c.Config["model_type"] = "kimi_vl"
	delete(c.Config, "use_unified_vision_chunk")
	vision := map[string]any{"model_type": "moonvit"}
	for key, v := range c.Section("vision_config") {
		switch short, _ := strings.CutPrefix(key, "vt_"); short {
		case "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
			"init_pos_emb_height", "init_pos_emb_width", "merge_kernel_size", "patch_size":
			vision[short] = v
		}
	}
	c.Config["vision_config"] = vision
	projector := strings.NewReplacer(
		"mm_projector.pre_norm.", "multi_modal_projector.pre_norm.",
		"mm_projector.proj.0.", "multi_modal_projector.linear_1.", "mm_projector.proj.2.", "multi_modal_projector.linear_2.")
	for _, x := range c.Tensors {
		x.Name = projector.Replace(x.Name)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		c.Files[name] = bytes.ReplaceAll(c.Files[name], []byte("<|media_begin|>"), []byte("<|media_start|>"))
	}
	delete(c.Files, "processor_config.json")
	data, err := json.Marshal(map[string]any{
		"in_token_limit": 1024, "patch_size": 14, "pad_input": true, "merge_kernel_size": []int{2, 2},
		"image_mean": []float64{0.5, 0.5, 0.5}, "image_std": []float64{0.5, 0.5, 0.5},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Files["preprocessor_config.json"] = data
	return c
}

// TestKimiVL compares the mmproj file of a Kimi-VL twin with the Kimi-K2.5 file of
// the same weights.
func TestKimiVL(t *testing.T) {
	ref, _ := converttest.Run(t, tinyRandom, convert.OutAuto)
	files, _ := converttest.Run(t, vl(t, checkpointtest.Load(t, tinyRandom)).Write(t), convert.OutAuto)
	f := files[convert.MMProj]
	source := checkpointtest.Load(t, tinyRandom)
	if n, want := len(f.Tensors()), 3*16+11; n != want {
		t.Errorf("%d tensors, want %d", n, want)
	}
	for _, info := range f.Tensors() {
		at := strings.Index(info.Name, ".attn_")
		which := -1
		if at >= 0 {
			which = slices.Index([]string{"attn_q", "attn_k", "attn_v"}, strings.Split(info.Name[at+1:], ".")[0])
		}
		if which < 0 {
			if !slices.Equal(converttest.Floats(t, f, info.Name), converttest.Floats(t, ref[convert.MMProj], info.Name)) {
				t.Errorf("%s differs from the Kimi-K2.5 file", info.Name)
			}
			continue
		}
		// Not permuted: the rows as published.
		var il int
		var kind string
		if _, err := fmt.Sscanf(strings.ReplaceAll(info.Name, ".", " "), "v blk %d "+info.Name[at+1:at+7]+" %s", &il, &kind); err != nil {
			t.Fatal(info.Name, err)
		}
		x := source.Get(t, fmt.Sprintf("vision_tower.encoder.blocks.%d.wqkv.%s", il, kind))
		var want []float32
		for i := range len(x.Data) / 2 {
			want = append(want, math.Float32frombits(uint32(x.Data[2*i])<<16|uint32(x.Data[2*i+1])<<24))
		}
		n := len(want) / 3
		if !slices.Equal(converttest.Floats(t, f, info.Name), want[which*n:(which+1)*n]) {
			t.Errorf("%s differs from the checkpoint", info.Name)
		}
	}
	info, _ := f.Tensor("v.position_embd.weight")
	if diff := cmp.Diff([]int64{144, 64}, info.Dims); diff != "" {
		t.Errorf("position table (-want +got):\n%s", diff)
	}
	for key, want := range map[string]any{
		"clip.projector_type": "kimivl", "clip.use_gelu": true, "clip.vision.projector.scale_factor": uint32(2),
		"clip.vision.image_size": uint32(112), "clip.vision.image_max_pixels": uint32(1024 * 196),
		"clip.vision.attention.layer_norm_epsilon": float32(1e-5), "kimi.image.pad_input": true, "kimi.video.layout": "clip",
		"kimi.video.frames_per_chunk": nil,
	} {
		if got, _ := f.Value(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if id, err := files[convert.Text].Uint("kimi.media_token_id"); err != nil || id != 1034 {
		t.Errorf("media token %d, %v", id, err)
	}
	for _, info := range files[convert.Text].Tensors() {
		if !slices.Equal(converttest.Floats(t, files[convert.Text], info.Name), converttest.Floats(t, ref[convert.Text], info.Name)) {
			t.Errorf("%s differs from the Kimi-K2.5 file", info.Name)
		}
	}
}

// TestPlainQueries converts a model whose queries have no low rank, and no yarn, as
// Kimi-VL's.
func TestPlainQueries(t *testing.T) {
	c := checkpointtest.Load(t, tinyRandom)
	text := c.Section("text_config")
	text["q_lora_rank"], text["rope_scaling"] = nil, nil
	for il := range 4 {
		prefix := fmt.Sprintf("language_model.model.layers.%d.", il)
		c.Remove(prefix+"self_attn.q_a", prefix+"self_attn.q_b")
		c.Add(prefix+"self_attn.q_proj.weight", 4*48, 128)
	}
	files, _ := converttest.Run(t, c.Write(t), convert.OutAuto)
	f := files[convert.Text]
	if info, _ := f.Tensor("blk.3.attn_q.weight"); !slices.Equal(info.Dims, []int64{128, 192}) {
		t.Errorf("attn_q is %v", info.Dims)
	}
	if n, want := len(f.Tensors()), 70-4*2; n != want {
		t.Errorf("%d tensors, want %d", n, want)
	}
	for _, key := range []string{"deepseek2.attention.q_lora_rank", "deepseek2.rope.scaling.type", "deepseek2.rope.scaling.factor"} {
		if v, ok := f.Value(key); ok {
			t.Errorf("%s is %v, want none", key, v)
		}
	}
}

// TestTextOnly converts a text checkpoint of the DeepSeek-V3 type: no tower, the
// config at the top, groups, and the output tied to the embedding.
func TestTextOnly(t *testing.T) {
	c := checkpointtest.Load(t, tinyRandom)
	c.Remove("vision_tower.", "mm_projector.", "language_model.lm_head.")
	for _, x := range c.Tensors {
		x.Name = strings.TrimPrefix(x.Name, "language_model.")
	}
	c.Config = c.Section("text_config")
	c.Config["model_type"] = "deepseek_v3"
	c.Config["n_group"], c.Config["topk_group"] = 4, 2
	delete(c.Config, "tie_word_embeddings")
	files, report := converttest.Run(t, c.Write(t), convert.OutAuto)
	if len(files) != 1 {
		t.Fatalf("%d files, want 1", len(files))
	}
	f := files[convert.Text]
	if _, ok := f.Tensor("output.weight"); ok {
		t.Error("there is an output.weight")
	}
	wantNotes := []string{
		"the output is tied to the embedding: there is no lm_head.weight",
		"the checkpoint has no tower: there is no mmproj file",
	}
	if diff := cmp.Diff(wantNotes, report.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for key, want := range map[string]any{
		"deepseek2.expert_group_count": uint32(4), "deepseek2.expert_group_used_count": uint32(2), "kimi.media_token_id": nil,
	} {
		if got, _ := f.Value(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	c.Config["tie_word_embeddings"] = false
	converttest.WantError(t, converttest.Refused(t, c.Write(t)), "missing tensor lm_head.weight")
}
