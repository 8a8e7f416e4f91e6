package kimik25

import (
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// visionConfig is the vision sub-config.
type visionConfig struct {
	hidden, layers, heads, intermediate int64 // vt_hidden_size, …; in the port and Kimi-VL without vt_
	patch, merge                        int64
	posHeight, posWidth, posTime        int64 // init_pos_emb_height, …; in the port without init_
	projectorEps                        float64
}

// Values of the published models, for what a config may leave out.
const (
	channels      = 3
	defaultPatch  = 14
	defaultMerge  = 2
	defaultGrid   = 64
	defaultFrames = 4
	defaultEps    = 1e-5
)

// parseVision reads the vision config v of config.json, top.
func parseVision(top, v *convert.Fields, c *config) *visionConfig {
	x := &visionConfig{
		hidden:       v.Int("vt_hidden_size", "hidden_size"),
		layers:       v.Int("vt_num_hidden_layers", "num_hidden_layers"),
		heads:        v.Int("vt_num_attention_heads", "num_attention_heads"),
		intermediate: v.Int("vt_intermediate_size", "intermediate_size"),
		patch:        v.IntOr(defaultPatch, "patch_size"),
		merge:        mergeSize(v),
		posHeight:    v.IntOr(defaultGrid, "init_pos_emb_height", "pos_emb_height"),
		posWidth:     v.IntOr(defaultGrid, "init_pos_emb_width", "pos_emb_width"),
		posTime:      v.IntOr(defaultFrames, "init_pos_emb_time", "pos_emb_time"),
		projectorEps: v.FloatOr(defaultEps, "projector_ln_eps", "projection_layer_norm_eps"),
	}
	if top.Has("projection_layer_norm_eps") {
		if v.Has("projector_ln_eps") {
			mustAgree(top, "projection_layer_norm_eps", x.projectorEps)
		}
		x.projectorEps = top.Float("projection_layer_norm_eps")
	}
	for _, s := range [][2]string{
		{"merge_type", "sd2_tpool"},
		{"pos_emb_type", "divided_fixed"},
		{"video_attn_type", "spatial_temporal"},
		{"mm_projector_type", "patchmerger"},
		{"hidden_act", "gelu_pytorch_tanh"},
		{"projector_hidden_act", "gelu"},
	} {
		v.MustBeStr(s[0], s[1])
	}
	v.Positive(map[string]int64{
		"vt_hidden_size": x.hidden, "vt_num_hidden_layers": x.layers, "vt_num_attention_heads": x.heads,
		"vt_intermediate_size": x.intermediate, "patch_size": x.patch,
		"init_pos_emb_height": x.posHeight, "init_pos_emb_width": x.posWidth, "init_pos_emb_time": x.posTime,
	})
	v.AtMost("vt_num_hidden_layers", x.layers, maxLayers)
	v.AtMost("vt_num_attention_heads", x.heads, maxHeads)
	v.AtMost("init_pos_emb_height", x.posHeight, maxGrid)
	v.AtMost("init_pos_emb_width", x.posWidth, maxGrid)
	if x.heads > 0 && x.hidden%(4*x.heads) != 0 {
		v.Failf("%s is %d, want a multiple of 4 for each of %d heads: pairs of pairs turn together",
			v.Name("vt_hidden_size"), x.hidden, x.heads)
	}
	mustMatch(v, "mm_hidden_size", x.hidden)
	mustMatch(v, "text_hidden_size", c.text.hiddenSize)
	return x
}

// mustMatch refuses a size that another part of the config gives otherwise.
func mustMatch(f *convert.Fields, name string, want int64) {
	if got := f.IntOr(want, name); got != want {
		f.Failf("%s is %d, elsewhere %d", f.Name(name), got, want)
	}
}

// mergeSize reads merge_kernel_size, a number or one for each side.
func mergeSize(f *convert.Fields) int64 {
	const name = "merge_kernel_size"
	sides := []int64{defaultMerge}
	if f.IsList(name) {
		sides = f.Ints(name)
	} else if f.Has(name) {
		sides = []int64{f.Int(name)}
	}
	if len(sides) == 0 || slices.ContainsFunc(sides, func(n int64) bool { return n != defaultMerge }) {
		f.Unsupportedf("%s is %v, want %d", f.Name(name), sides, defaultMerge)
	}
	return defaultMerge
}
