package inkling

import (
	"fmt"
	"math"

	"github.com/inkling-go/inkling/convert"
)

// textConfig is the text sub-config.
type textConfig struct {
	hiddenSize, numHiddenLayers, vocabSize int64
	unpaddedVocabSize                      int64 // 0: every row of the vocabulary is a token
	modelMaxLength                         int64 // max_position_embeddings

	numAttentionHeads      int64 // of all layers
	headDim, swaHeadDim    int64 // of global and of local layers
	numKVHeads, swaKVHeads int64
	slidingWindow          int64
	dRel, relExtent        int64
	sconvKernelSize        int64 // conv_kernel_size
	logScalingFloor        int64 // 0: off
	logScalingAlpha        float64
	local                  []bool // by layer: sliding attention

	denseLayers                         int64 // the first ones; the others are mixtures of experts
	denseSize                           int64 // dense_intermediate_size, in the port intermediate_size
	expertSize                          int64 // intermediate_size, in the port moe_intermediate_size
	experts, expertsUsed, sharedExperts int64
	routeScale                          float64
	rmsNormEps                          float64
	mupDivisor                          float64 // logits_mup_width_multiplier
}

// Values that the port's config classes fall back to and then save. They say
// nothing about the model, so they give way to what contradicts them.
const (
	portContext    = 131072
	portExpertSize = 3072
	portMelVocab   = 256
)

// parseText reads the text config in either spelling.
func (c *config) parseText(f *convert.Fields) {
	t := &c.text
	t.hiddenSize = f.Int("hidden_size")
	t.numHiddenLayers = f.Int("num_hidden_layers")
	t.vocabSize = f.Int("vocab_size")
	t.unpaddedVocabSize = f.IntOr(0, "unpadded_vocab_size")
	t.rmsNormEps = f.Float("rms_norm_eps")
	t.mupDivisor = f.Float("logits_mup_width_multiplier", "embedding_multiplier")
	t.sconvKernelSize = f.Int("sconv_kernel_size", "conv_kernel_size")
	t.modelMaxLength = c.context(f)

	t.numAttentionHeads = f.Int("num_attention_heads")
	t.numKVHeads = f.Int("num_key_value_heads")
	t.headDim = f.Int("head_dim")
	t.swaHeadDim = f.IntOr(t.headDim, "swa_head_dim")
	t.swaKVHeads = f.IntOr(t.numKVHeads, "swa_num_key_value_heads")
	t.slidingWindow = f.Int("sliding_window_size", "sliding_window")
	t.dRel = f.Int("d_rel")
	t.relExtent = f.Int("rel_extent")
	if t.logScalingFloor = f.IntOr(0, "log_scaling_n_floor"); t.logScalingFloor > 0 {
		t.logScalingAlpha = f.Float("log_scaling_alpha")
	}

	t.experts = f.Int("n_routed_experts", "num_local_experts")
	t.expertsUsed = f.Int("num_experts_per_tok")
	t.sharedExperts = f.Int("n_shared_experts")
	t.routeScale = f.Float("route_scale")
	c.parseWidths(f)

	checkSwitches(f, t)
	checkSizes(f, t)
	if f.Err() == nil {
		t.local = localLayers(f, t.numHiddenLayers)
		t.denseLayers = denseLayers(f, t.numHiddenLayers)
	}
}

// context returns the longest context. Both names may be there, one of them with
// the class default of the port.
func (c *config) context(f *convert.Fields) int64 {
	const own, port = "model_max_length", "max_position_embeddings"
	if f.Has(own) && f.Has(port) && f.Int(port) == portContext && f.Int(own) != portContext {
		c.notes = append(c.notes, fmt.Sprintf("%s %d is a class default, %s %d is used",
			port, portContext, own, f.Int(own)))
		return f.Int(own)
	}
	return f.Int(own, port)
}

// parseWidths reads the widths of dense layers and experts. Published configs call
// the width of an expert intermediate_size and that of a dense layer
// dense_intermediate_size; the port calls them moe_intermediate_size and
// intermediate_size. The port's own key is found in published configs too: put
// there for the port's sake, or with a class default when the port saved it.
func (c *config) parseWidths(f *convert.Fields) {
	const dense, size, moe = "dense_intermediate_size", "intermediate_size", "moe_intermediate_size"
	t := &c.text
	if !f.Has(dense) {
		t.denseSize, t.expertSize = f.Int(size), f.Int(moe)
		c.expertSizeUnsure = t.expertSize == portExpertSize
		return
	}
	t.denseSize, t.expertSize = f.Int(dense), f.Int(size)
	switch other := f.IntOr(t.expertSize, moe); other {
	case t.expertSize:
	case portExpertSize:
		c.notes = append(c.notes, fmt.Sprintf("%s %d is a class default, %s %d is used", moe, other, size, t.expertSize))
	default:
		f.Failf("%s is %d but %s is %d", f.Name(size), t.expertSize, f.Name(moe), other)
	}
}

// checkSwitches refuses variants that no released model uses.
func checkSwitches(f *convert.Fields, t *textConfig) {
	f.MustBeStr("gate_activation", "sigmoid")
	f.MustBeStr("hidden_act", "silu")
	for _, name := range []string{
		"use_sconv", "use_embed_norm", "use_gate_bias", "use_global_scale", "norm_after_topk", "shared_expert_sink",
	} {
		f.MustBe(name, true)
	}
	for _, name := range []string{"q_bias", "o_bias", "tie_word_embeddings"} {
		f.MustBe(name, false)
	}
	if cap := f.FloatOr(0, "final_logit_softcapping"); cap != 0 {
		f.Unsupportedf("%s is %v, want none", f.Name("final_logit_softcapping"), cap)
	}
	if swa := f.IntOr(t.numAttentionHeads, "swa_num_attention_heads"); swa != t.numAttentionHeads {
		f.Unsupportedf("%s is %d, want %d as in num_attention_heads", f.Name("swa_num_attention_heads"), swa, t.numAttentionHeads)
	}
}

// checkSizes refuses numbers that no model can have.
func checkSizes(f *convert.Fields, t *textConfig) {
	f.Positive(map[string]int64{
		"hidden_size": t.hiddenSize, "num_hidden_layers": t.numHiddenLayers, "vocab_size": t.vocabSize,
		"num_attention_heads": t.numAttentionHeads, "num_key_value_heads": t.numKVHeads, "swa_num_key_value_heads": t.swaKVHeads,
		"head_dim": t.headDim, "swa_head_dim": t.swaHeadDim, "d_rel": t.dRel, "rel_extent": t.relExtent,
		"sliding_window_size": t.slidingWindow, "n_routed_experts": t.experts, "num_experts_per_tok": t.expertsUsed,
		"n_shared_experts": t.sharedExperts, "intermediate_size": min(t.denseSize, t.expertSize),
	})
	f.AtMost("num_hidden_layers", t.numHiddenLayers, maxLayers)
	f.AtMost("vocab_size", t.vocabSize, maxVocab)
	f.AtMost("n_routed_experts", t.experts, maxExperts)
	f.AtMost("num_experts_per_tok", t.expertsUsed, t.experts)
	f.AtMost("unpadded_vocab_size", t.unpaddedVocabSize, t.vocabSize)
	if t.sconvKernelSize < 2 {
		f.Failf("%s is %d, want at least 2", f.Name("sconv_kernel_size"), t.sconvKernelSize)
	}
	for _, v := range []struct {
		name  string
		value float64
		zero  bool // is allowed
	}{
		{"logits_mup_width_multiplier", t.mupDivisor, false},
		{"rms_norm_eps", t.rmsNormEps, false},
		{"route_scale", t.routeScale, false},
		{"log_scaling_alpha", t.logScalingAlpha, true},
	} {
		switch {
		case v.zero && !(v.value >= 0 && float32(v.value) < math.MaxFloat32):
			f.Failf("%s is %v, want 0 or more", f.Name(v.name), v.value)
		case !v.zero && !(float32(v.value) > 0 && float32(v.value) < math.MaxFloat32):
			f.Failf("%s is %v, want more than 0", f.Name(v.name), v.value)
		}
	}
	for _, kv := range []struct {
		name  string
		heads int64
	}{{"num_key_value_heads", t.numKVHeads}, {"swa_num_key_value_heads", t.swaKVHeads}} {
		if kv.heads > 0 && t.numAttentionHeads%kv.heads != 0 {
			f.Failf("%s is %d, which does not divide num_attention_heads %d", f.Name(kv.name), kv.heads, t.numAttentionHeads)
		}
	}
}

// localLayers says which layers attend to the sliding window only.
func localLayers(f *convert.Fields, layers int64) []bool {
	local := make([]bool, layers)
	switch {
	case f.Has("layer_types"):
		for i, kind := range layerKinds(f, "layer_types", layers, "hybrid_sliding", "hybrid") {
			local[i] = kind == "hybrid_sliding"
		}
	case f.Has("local_layer_ids"):
	default:
		for i := range local {
			local[i] = (i+1)%6 != 0
		}
	}
	if !f.Has("local_layer_ids") {
		return local
	}
	byID := make([]bool, layers)
	for _, id := range f.Ints("local_layer_ids") {
		if id >= layers {
			f.Failf("%s has layer %d of %d", f.Name("local_layer_ids"), id, layers)
			return nil
		}
		byID[id] = true
	}
	if f.Has("layer_types") {
		for i := range local {
			if local[i] != byID[i] {
				f.Failf("layer_types and local_layer_ids disagree on layer %d", i)
				return nil
			}
		}
	}
	return byID
}

// layerKinds reads a list with one of two words for each layer.
func layerKinds(f *convert.Fields, name string, layers int64, one, other string) []string {
	kinds := f.Strs(name)
	if int64(len(kinds)) != layers {
		f.Failf("%s has %d entries for %d layers", f.Name(name), len(kinds), layers)
		return nil
	}
	for i, kind := range kinds {
		if kind != one && kind != other {
			f.Unsupportedf("%s[%d] is %q, want %q or %q", f.Name(name), i, kind, one, other)
			return nil
		}
	}
	return kinds
}

// denseLayers returns how many layers, from the first on, are dense.
func denseLayers(f *convert.Fields, layers int64) int64 {
	const own, port = "dense_mlp_idx", "mlp_layer_types"
	n := int64(-1)
	if f.Has(own) {
		n = f.Int(own)
		f.AtMost(own, n, layers)
	}
	if !f.Has(port) {
		if n < 0 {
			f.Failf("%s or %s is missing", f.Name(own), port)
		}
		return n
	}
	dense := int64(0)
	for i, kind := range layerKinds(f, port, layers, "dense", "sparse") {
		switch {
		case kind == "sparse":
		case int64(i) != dense:
			f.Unsupportedf("%s has a dense layer %d after a sparse one", f.Name(port), i)
			return 0
		default:
			dense++
		}
	}
	if n >= 0 && n != dense {
		f.Failf("%s is %d but %s has %d dense layers", f.Name(own), n, port, dense)
	}
	return dense
}
