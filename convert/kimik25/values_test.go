package kimik25

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// sizes are the numbers of a checkpoint for tests that decide the order of rows.
type sizes struct {
	heads, nope, value, latent, experts int // text
	vHeads, vHeadDim                    int // tower
	tensors, towerTensors               int
}

// Counted by hand: 2 embeddings and a norm; 12 tensors for a dense layer's norms,
// attention and feed-forward, 3 + 5 more for one with experts; and the tower.
var checkpoints = map[string]sizes{
	tinyRandom: {4, 32, 32, 64, 8, 4, 36, 3 + 13 + 3*18, 3 + 3*12 + 2 + 2 + 4},
	tiny:       {4, 32, 32, 128, 8, 4, 40, 3 + 13 + 3*18, 3 + 4*12 + 2 + 2 + 4},
}

// want computes the values of an output tensor from the published checkpoint, by a
// table written from the format's documentation and not from the converter's.
func (s sizes) want(st *safetensors.Checkpoint, name string) ([]float32, error) {
	get := func(name string) []float32 {
		x, ok := st.Tensor(name)
		if !ok {
			panic("no tensor " + name)
		}
		v, err := st.Floats(x)
		if err != nil {
			panic(err)
		}
		return v
	}
	top := map[string]string{
		"token_embd.weight": "language_model.model.embed_tokens.weight", "output_norm.weight": "language_model.model.norm.weight",
		"output.weight": "language_model.lm_head.weight", "v.position_embd.weight": "vision_tower.patch_embed.pos_emb.weight",
	}
	if source, ok := top[name]; ok {
		return get(source), nil
	}
	i := strings.LastIndex(name, ".")
	base, kind := name[:i], name[i:]
	towers := map[string]string{
		"v.patch_embd": "vision_tower.patch_embed.proj", "v.post_ln": "vision_tower.encoder.final_layernorm",
		"mm.input_norm": "mm_projector.pre_norm", "mm.1": "mm_projector.proj.0", "mm.2": "mm_projector.proj.2",
	}
	if source, ok := towers[base]; ok {
		return get(source + kind), nil
	}
	var il int
	var rest string
	if _, err := fmt.Sscanf(base, "v.blk.%d.%s", &il, &rest); err == nil {
		block := fmt.Sprintf("vision_tower.encoder.blocks.%d.", il)
		plain := map[string]string{
			"ln1": "norm0", "ln2": "norm1", "attn_out": "wo", "ffn_up": "mlp.fc0", "ffn_down": "mlp.fc1",
		}
		if source, ok := plain[rest]; ok {
			return get(block + source + kind), nil
		}
		if rest == "attn_qkv" {
			return s.axes(get(block + "wqkv" + kind)), nil
		}
		return nil, fmt.Errorf("unknown")
	}
	if _, err := fmt.Sscanf(base, "blk.%d.%s", &il, &rest); err != nil {
		return nil, err
	}
	layer := fmt.Sprintf("language_model.model.layers.%d.", il)
	plain := map[string]string{
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj",
		"attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm",
		"attn_output": "self_attn.o_proj",
		"ffn_gate":    "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
		"ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
		"ffn_down_shexp": "mlp.shared_experts.down_proj",
	}
	if source, ok := plain[rest]; ok {
		return get(layer + source + kind), nil
	}
	switch rest {
	case "exp_probs_b":
		return get(layer + "mlp.gate.e_score_correction_bias"), nil
	case "attn_k_b", "attn_v_b":
		return s.latents(get(layer+"self_attn.kv_b_proj.weight"), rest == "attn_k_b"), nil
	case "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps":
		var all []float32
		for e := range s.experts {
			matrix := strings.TrimSuffix(strings.TrimPrefix(rest, "ffn_"), "_exps")
			all = append(all, get(fmt.Sprintf("%smlp.experts.%d.%s_proj.weight", layer, e, matrix))...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("unknown")
}

// latents cuts kv_b_proj, [heads · (nope + value), latent], into the key part of
// each head, transposed to [latent, nope], or the value part.
func (s sizes) latents(kvB []float32, keys bool) []float32 {
	var out []float32
	for head := range s.heads {
		rows := kvB[head*(s.nope+s.value)*s.latent:]
		if !keys {
			out = append(out, rows[s.nope*s.latent:(s.nope+s.value)*s.latent]...)
			continue
		}
		for l := range s.latent {
			for d := range s.nope {
				out = append(out, rows[d*s.latent+l])
			}
		}
	}
	return out
}

// axes puts the query and key rows of wqkv in the order axis, frequency, element:
// old index 4j + 2a + c of a head becomes a·hd/2 + 2j + c.
func (s sizes) axes(wqkv []float32) []float32 {
	d := s.vHeads * s.vHeadDim
	width := len(wqkv) / (3 * d)
	out := slices.Clone(wqkv)
	for part := range 2 {
		for head := range s.vHeads {
			base := part*d + head*s.vHeadDim
			for j := range s.vHeadDim / 4 {
				for a := range 2 {
					for c := range 2 {
						from, to := base+4*j+2*a+c, base+a*s.vHeadDim/2+2*j+c
						copy(out[to*width:(to+1)*width], wqkv[from*width:])
					}
				}
			}
		}
	}
	return out
}

// TestValues reads back every tensor of every output and compares it bit for bit
// with the checkpoint's values; all of them are exact in BF16, so F32 and BF16 keep
// them.
func TestValues(t *testing.T) {
	for dir, s := range checkpoints {
		st, err := safetensors.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		for _, o := range []convert.OutType{convert.OutF32, convert.OutAuto} {
			t.Run(dir+"/"+string(o), func(t *testing.T) {
				files, _ := converttest.Run(t, dir, o)
				for kind, n := range map[convert.Kind]int{convert.Text: s.tensors, convert.MMProj: s.towerTensors} {
					if got := len(files[kind].Tensors()); got != n {
						t.Errorf("%d tensors in the %s file, want %d", got, kind, n)
					}
				}
				for _, f := range files {
					for _, info := range f.Tensors() {
						want, err := s.want(st, info.Name)
						if err != nil {
							t.Errorf("%s: %v", info.Name, err)
							continue
						}
						if !slices.Equal(converttest.Floats(t, f, info.Name), want) {
							t.Errorf("%s differs from the checkpoint", info.Name)
						}
					}
				}
			})
		}
	}
}

// TestShapes checks dims that the values do not tell, by the published layout of
// the formats with the fixture's sizes.
func TestShapes(t *testing.T) {
	files, _ := converttest.Run(t, tinyRandom, convert.OutAuto)
	for _, tc := range []struct {
		kind convert.Kind
		name string
		dims []int64
	}{
		{convert.Text, "blk.0.attn_k_b.weight", []int64{32, 64, 4}},
		{convert.Text, "blk.0.attn_v_b.weight", []int64{64, 32, 4}},
		{convert.Text, "blk.0.attn_q_b.weight", []int64{96, 4 * 48}},
		{convert.Text, "blk.0.attn_kv_a_mqa.weight", []int64{128, 64 + 16}},
		{convert.Text, "blk.0.ffn_gate.weight", []int64{128, 192}},
		{convert.Text, "blk.1.ffn_gate_exps.weight", []int64{128, 64, 8}},
		{convert.Text, "blk.1.ffn_down_exps.weight", []int64{64, 128, 8}},
		{convert.Text, "blk.1.ffn_down_shexp.weight", []int64{64, 128}},
		{convert.Text, "blk.1.exp_probs_b.bias", []int64{8}},
		{convert.MMProj, "v.patch_embd.weight", []int64{14, 14, 3, 144}},
		{convert.MMProj, "v.position_embd.weight", []int64{144, 8, 8}},
		{convert.MMProj, "v.blk.2.attn_qkv.weight", []int64{144, 432}},
		{convert.MMProj, "v.blk.2.attn_qkv.bias", []int64{432}},
		{convert.MMProj, "mm.1.weight", []int64{576, 576}},
		{convert.MMProj, "mm.2.weight", []int64{576, 128}},
	} {
		info, ok := files[tc.kind].Tensor(tc.name)
		if diff := cmp.Diff(tc.dims, info.Dims); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
