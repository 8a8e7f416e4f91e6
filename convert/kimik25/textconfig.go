package kimik25

import (
	"github.com/inkling-go/inkling/convert"
)

// textConfig is the text sub-config.
type textConfig struct {
	hiddenSize, numHiddenLayers, vocabSize int64
	maxPositions                           int64
	numAttentionHeads                      int64
	rmsNormEps                             float64

	qLoraRank                  int64 // 0: queries are projected in one step
	kvLoraRank                 int64
	nopeDim, ropeDim, valueDim int64 // qk_nope_head_dim, qk_rope_head_dim, v_head_dim
	rope                       rope

	denseLayers                         int64 // first_k_dense_replace; the others are mixtures of experts
	denseSize, expertSize               int64 // intermediate_size, moe_intermediate_size
	experts, expertsUsed, sharedExperts int64
	groups, groupsUsed                  int64 // n_group, topk_group
	softmax                             bool  // scoring_func; else a sigmoid
	bias                                bool  // the choice of experts has a correction bias
	routedScale                         float64
	normTopK                            bool
}

// Values of scoring_func and topk_method.
const (
	scoreSigmoid = "sigmoid"
	scoreSoftmax = "softmax"
	topkBias     = "noaux_tc" // groups by the two best experts of each, with a correction bias
	topkGreedy   = "greedy"   // no groups, no bias
)

// parseText reads the text config in either spelling.
func parseText(f *convert.Fields) textConfig {
	t := textConfig{
		hiddenSize:        f.Int("hidden_size"),
		numHiddenLayers:   f.Int("num_hidden_layers"),
		vocabSize:         f.Int("vocab_size"),
		maxPositions:      f.Int("max_position_embeddings"),
		numAttentionHeads: f.Int("num_attention_heads"),
		rmsNormEps:        f.Float("rms_norm_eps"),
		qLoraRank:         f.IntOr(0, "q_lora_rank"),
		kvLoraRank:        f.Int("kv_lora_rank"),
		nopeDim:           f.Int("qk_nope_head_dim"),
		ropeDim:           f.Int("qk_rope_head_dim"),
		valueDim:          f.Int("v_head_dim"),
		denseLayers:       f.Int("first_k_dense_replace"),
		denseSize:         f.Int("intermediate_size"),
		expertSize:        f.Int("moe_intermediate_size"),
		experts:           f.Int("n_routed_experts", "num_local_experts"),
		expertsUsed:       f.Int("num_experts_per_tok"),
		sharedExperts:     f.Int("n_shared_experts"),
		groups:            f.IntOr(1, "n_group"),
		groupsUsed:        f.IntOr(1, "topk_group"),
		routedScale:       f.FloatOr(1, "routed_scaling_factor"),
		normTopK:          f.BoolOr(true, "norm_topk_prob"),
	}
	t.rope = parseRope(f)
	t.parseRouter(f)
	checkText(f, &t)
	return t
}

// parseRouter reads how experts are scored and chosen.
func (t *textConfig) parseRouter(f *convert.Fields) {
	switch s := f.StrOr(scoreSigmoid, "scoring_func"); s {
	case scoreSigmoid:
	case scoreSoftmax:
		t.softmax = true
	default:
		f.Unsupportedf("%s is %q, want %q or %q", f.Name("scoring_func"), s, scoreSigmoid, scoreSoftmax)
	}
	switch m := f.StrOr(topkBias, "topk_method"); m {
	case topkBias:
		t.bias = true
	case topkGreedy:
		if t.groups != 1 {
			f.Failf("%s is %q with %d groups, want 1", f.Name("topk_method"), m, t.groups)
		}
	default:
		f.Unsupportedf("%s is %q, want %q or %q", f.Name("topk_method"), m, topkBias, topkGreedy)
	}
}

// checkText refuses variants that no released model uses and numbers that no model
// can have.
func checkText(f *convert.Fields, t *textConfig) {
	f.MustBeStr("hidden_act", "silu")
	f.MustBe("attention_bias", false)
	f.MustBe("rope_interleave", true)
	f.MustBeNum("moe_layer_freq", 1)
	f.Positive(map[string]int64{
		"hidden_size": t.hiddenSize, "num_hidden_layers": t.numHiddenLayers, "vocab_size": t.vocabSize,
		"max_position_embeddings": t.maxPositions, "num_attention_heads": t.numAttentionHeads,
		"kv_lora_rank": t.kvLoraRank, "qk_nope_head_dim": t.nopeDim, "qk_rope_head_dim": t.ropeDim, "v_head_dim": t.valueDim,
		"intermediate_size": t.denseSize, "moe_intermediate_size": t.expertSize,
		"n_routed_experts": t.experts, "num_experts_per_tok": t.expertsUsed, "n_shared_experts": t.sharedExperts,
		"n_group": t.groups, "topk_group": t.groupsUsed,
	})
	f.AtMost("num_hidden_layers", t.numHiddenLayers, maxLayers)
	f.AtMost("vocab_size", t.vocabSize, maxVocab)
	f.AtMost("num_attention_heads", t.numAttentionHeads, maxHeads)
	f.AtMost("n_routed_experts", t.experts, maxExperts)
	f.AtMost("num_experts_per_tok", t.expertsUsed, t.experts)
	f.AtMost("first_k_dense_replace", t.denseLayers, t.numHiddenLayers)
	f.AtMost("topk_group", t.groupsUsed, t.groups)
	if t.ropeDim%2 != 0 {
		f.Failf("%s is %d, want an even number", f.Name("qk_rope_head_dim"), t.ropeDim)
	}
	if t.rmsNormEps <= 0 {
		f.Failf("%s is %v, want more than 0", f.Name("rms_norm_eps"), t.rmsNormEps)
	}
	if t.groups > 0 && t.experts%t.groups != 0 {
		f.Failf("%s is %d, which does not divide n_routed_experts %d", f.Name("n_group"), t.groups, t.experts)
	} else if t.groups > 0 && t.expertsUsed > t.groupsUsed*(t.experts/t.groups) {
		f.Failf("%s is %d, but %d groups have %d experts", f.Name("num_experts_per_tok"),
			t.expertsUsed, t.groupsUsed, t.groupsUsed*(t.experts/t.groups))
	}
}
