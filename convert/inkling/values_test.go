package inkling

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// source is one tensor of the table of published names: where its values are in
// the checkpoint.
type source struct {
	name string
	part int // 0: all rows; 1: even rows; 2: odd rows
}

// published maps an output tensor to the published tensor, by a table written from
// the names' documentation and not from the converter's.
func published(gg string, dense int) source {
	if i, ok := strings.CutPrefix(gg, "v.hmlp."); ok && i != "final_norm.weight" {
		j, rest, _ := strings.Cut(i, ".")
		return source{name: "model.visual.layers." + strings.TrimSuffix(rest, ".weight") + "_" + j + ".weight"}
	}
	top := map[string]string{
		"token_embd.weight": "model.llm.embed.weight", "token_embd_norm.weight": "model.llm.embed_norm.weight",
		"output_norm.weight": "model.llm.norm.weight", "output.weight": "model.llm.unembed.weight",
		"v.hmlp.final_norm.weight": "model.visual.final_norm.weight",
		"a.dmel.embedding.weight":  "model.audio.encoder.weight",
		"a.dmel.final_norm.weight": "model.audio.final_norm.weight",
	}
	if name, ok := top[gg]; ok {
		return source{name: name}
	}
	var il int
	var rest string
	if _, err := fmt.Sscanf(gg, "blk.%d.%s", &il, &rest); err != nil {
		return source{}
	}
	layer := map[string]source{
		"attn_norm.weight": {"attn_norm.weight", 0}, "ffn_norm.weight": {"mlp_norm.weight", 0},
		"attn_q.weight": {"attn.wq_du.weight", 0}, "attn_k.weight": {"attn.wk_dv.weight", 0},
		"attn_v.weight": {"attn.wv_dv.weight", 0}, "attn_r.weight": {"attn.wr_du.weight", 0},
		"attn_output.weight": {"attn.wo_ud.weight", 0},
		"attn_q_norm.weight": {"attn.q_norm.weight", 0}, "attn_k_norm.weight": {"attn.k_norm.weight", 0},
		"attn_rel_proj.weight": {"attn.rel_logits_proj.proj", 0},
		"shortconv_k.weight":   {"attn.k_sconv.weight", 0}, "shortconv_v.weight": {"attn.v_sconv.weight", 0},
		"shortconv_attn.weight": {"attn_sconv.weight", 0}, "shortconv_mlp.weight": {"mlp_sconv.weight", 0},
		"ffn_gate.weight": {"mlp.w13_dn.weight", 1}, "ffn_up.weight": {"mlp.w13_dn.weight", 2},
		"ffn_down.weight": {"mlp.w2_md.weight", 0}, "ffn_gate_inp.weight": {"mlp.gate.weight", 0},
		"exp_probs_b.bias":     {"mlp.gate.bias", 0},
		"ffn_gate_exps.weight": {"mlp.experts.w13_weight", 1}, "ffn_up_exps.weight": {"mlp.experts.w13_weight", 2},
		"ffn_down_exps.weight":  {"mlp.experts.w2_weight", 0},
		"ffn_gate_shexp.weight": {"mlp.shared_experts.shared_w13_weight", 1},
		"ffn_up_shexp.weight":   {"mlp.shared_experts.shared_w13_weight", 2},
		"ffn_down_shexp.weight": {"mlp.shared_experts.shared_w2_weight", 0},
		"ffn_gscale.weight":     {"mlp.gate.global_scale", 0},
	}[rest]
	if rest == "ffn_gscale.weight" && il < dense {
		layer.name = "mlp.global_scale"
	}
	if layer.name == "" {
		return source{}
	}
	layer.name = fmt.Sprintf("model.llm.layers.%d.%s", il, layer.name)
	return layer
}

// publishedMTPName is published for the layers for multi-token prediction.
func publishedMTPName(gg string) source {
	var d int
	var rest string
	if _, err := fmt.Sscanf(gg, "blk.%d.%s", &d, &rest); err != nil {
		return source{}
	}
	own := map[string]string{
		"nextn.enorm.weight": "embed_norm.weight", "nextn.hnorm.weight": "hidden_norm.weight", "nextn.eh_proj.weight": "input_proj.weight",
	}
	if name, ok := own[rest]; ok {
		return source{name: fmt.Sprintf("model.mtp.layers.%d.%s", d, name)}
	}
	s := published(gg, d+1)
	s.name = strings.Replace(s.name, fmt.Sprintf("model.llm.layers.%d.", d), fmt.Sprintf("model.mtp.layers.%d.transformer_block.", d), 1)
	return s
}

// TestValues reads back every tensor of every output and compares it bit for bit
// with the checkpoint's values; all of them are exact in BF16, so F32 and BF16 keep
// them.
func TestValues(t *testing.T) {
	for _, ckpt := range []struct {
		name, dir   string
		dense, text int // dense layers, tensors of the text file
	}{
		{"inkling-tiny", tiny, 3, 4 + 18*3 + 23*3},
		{"inkling-tiny-random", tinyRandom, 2, 4 + 18*2 + 23*6},
	} {
		st, err := safetensors.OpenDir(ckpt.dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		for _, o := range []convert.OutType{convert.OutF32, convert.OutBF16, convert.OutAuto} {
			t.Run(ckpt.name+"/"+string(o), func(t *testing.T) {
				files, _ := converttest.Run(t, ckpt.dir, o)
				if n := len(files[convert.Text].Tensors()); n != ckpt.text {
					t.Errorf("%d text tensors, want %d", n, ckpt.text)
				}
				for kind, f := range files {
					for _, info := range f.Tensors() {
						s := published(info.Name, ckpt.dense)
						if kind == convert.MTP {
							s = publishedMTPName(info.Name)
						}
						x, ok := st.Tensor(s.name)
						if !ok {
							t.Errorf("%s: no tensor %q in the checkpoint", info.Name, s.name)
							continue
						}
						all, err := st.Floats(x)
						if err != nil {
							t.Fatal(err)
						}
						if want := rowsOf(all, info.Dims[0], s.part); !sameBits(converttest.Floats(t, f, info.Name), want) {
							t.Errorf("%s differs from %s", info.Name, s.name)
						}
					}
				}
			})
		}
	}
}

// rowsOf returns all, the even or the odd rows of width n.
func rowsOf(v []float32, n int64, part int) []float32 {
	if part == 0 {
		return v
	}
	var out []float32
	for i := int64(part-1) * n; i < int64(len(v)); i += 2 * n {
		out = append(out, v[i:i+n]...)
	}
	return out
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// TestTypes checks which tensors follow the output type, from the rules' words.
func TestTypes(t *testing.T) {
	for _, tc := range []struct {
		out        convert.OutType
		text, odd  gguf.Type // of a matrix; of a matrix whose rows are no multiple of 32
		fileType   uint64
		file, proj string
	}{
		{convert.OutF32, gguf.F32, gguf.F32, 0, "m-F32.gguf", "mmproj-m-F32.gguf"},
		{convert.OutF16, gguf.F16, gguf.F16, 1, "m-F16.gguf", "mmproj-m-F16.gguf"},
		{convert.OutBF16, gguf.BF16, gguf.BF16, 32, "m-BF16.gguf", "mmproj-m-BF16.gguf"},
		{convert.OutQ8_0, gguf.Q8_0, gguf.F16, 7, "m-Q8_0.gguf", "mmproj-m-Q8_0.gguf"},
		{convert.OutAuto, gguf.BF16, gguf.BF16, 32, "m-BF16.gguf", "mmproj-m-BF16.gguf"},
	} {
		t.Run(string(tc.out), func(t *testing.T) {
			files, report := converttest.Run(t, tinyRandom, tc.out)
			for kind, want := range map[convert.Kind]string{convert.Text: tc.file, convert.MMProj: tc.proj} {
				if got := filepath.Base(files[kind].Path()); got != want {
					t.Errorf("file %s, want %s", got, want)
				}
				if got, err := files[kind].Uint("general.file_type"); got != tc.fileType {
					t.Errorf("general.file_type %d (%v), want %d", got, err, tc.fileType)
				}
			}
			for _, info := range slices.Concat(files[convert.Text].Tensors(), files[convert.MMProj].Tensors()) {
				want := tc.text
				switch {
				case len(info.Dims) == 1, strings.Contains(info.Name, "norm"), strings.Contains(info.Name, "shortconv"),
					strings.Contains(info.Name, "attn_rel_proj"), strings.Contains(info.Name, "ffn_gate_inp"):
					want = gguf.F32
				case info.Dims[0]%32 != 0:
					want = tc.odd
				}
				if info.Type != want {
					t.Errorf("%s %v is %v, want %v", info.Name, info.Dims, info.Type, want)
				}
			}
			fallback := slices.ContainsFunc(report.Notes, func(s string) bool { return strings.Contains(s, "no multiple of the block") })
			if want := tc.text != tc.odd; fallback != want {
				t.Errorf("note about other types: %v, want %v", fallback, want)
			}
		})
	}
}

// TestQ8 checks that quantised weights are within half a step of the checkpoint's.
func TestQ8(t *testing.T) {
	exact, _ := converttest.Run(t, tiny, convert.OutF32)
	quant, _ := converttest.Run(t, tiny, convert.OutQ8_0)
	f := quant[convert.Text]
	for _, info := range f.Tensors() {
		if info.Type != gguf.Q8_0 {
			continue
		}
		want, got := converttest.Floats(t, exact[convert.Text], info.Name), converttest.Floats(t, f, info.Name)
		for b := 0; b < len(want); b += 32 {
			step := float32(0)
			for _, v := range want[b : b+32] {
				step = max(step, float32(math.Abs(float64(v)))/127)
			}
			for i := b; i < b+32; i++ {
				// Half a step, and what rounding the step to F16 moves the largest weight by.
				if d := math.Abs(float64(got[i] - want[i])); d > 0.5001*float64(step)+127*float64(step)/2048 {
					t.Fatalf("%s[%d] = %v, want %v at step %v", info.Name, i, got[i], want[i], step)
				}
			}
		}
	}
}

// TestInterleave is trap 3: rows that hold their own index.
func TestInterleave(t *testing.T) {
	c := checkpointtest.Load(t, tinyRandom)
	for _, name := range []string{
		"model.llm.layers.0.mlp.w13_dn.weight", "model.llm.layers.2.mlp.experts.w13_weight",
		"model.llm.layers.2.mlp.shared_experts.shared_w13_weight",
	} {
		x := c.Get(t, name)
		width := x.Shape[len(x.Shape)-1]
		rows := x.Shape[len(x.Shape)-2]
		for i := range int64(len(x.Data)) / 2 {
			index := float32(i / width % rows)
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(math.Float32bits(index)>>16))
		}
	}
	files, _ := converttest.Run(t, c.Write(t), convert.OutF32)
	for _, tc := range []struct {
		gate, up string
		rows     int // of one of the two
	}{
		{"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", 192},
		{"blk.2.ffn_gate_exps.weight", "blk.2.ffn_up_exps.weight", 64},
		{"blk.2.ffn_gate_shexp.weight", "blk.2.ffn_up_shexp.weight", 64},
	} {
		for odd, name := range []string{tc.gate, tc.up} {
			for i, v := range converttest.Floats(t, files[convert.Text], name) {
				row := i / 128 % tc.rows
				if want := bf16(float32(2*row + odd)); v != want {
					t.Fatalf("%s row %d has %v, want %v", name, row, v, want)
				}
			}
		}
	}
}

// bf16 cuts v to BF16 as the test above does.
func bf16(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ 0xffff) }
