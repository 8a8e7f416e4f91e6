package inkling

import (
	"github.com/inkling-go/inkling/convert"
)

// sigmoidGating is expert_gating_func of a router with sigmoids (llama.cpp's
// LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID).
const sigmoidGating = uint32(2)

// textKeys returns the keys of the text model, as llama.cpp's converter for this
// architecture writes them.
func textKeys(t *textConfig) []convert.KV {
	kvHeads := make([]int32, len(t.local))
	for i, local := range t.local {
		kvHeads[i] = int32(t.numKVHeads)
		if local {
			kvHeads[i] = int32(t.swaKVHeads)
		}
	}
	kv := under("inkling.", []convert.KV{
		{Key: "block_count", Value: uint32(t.numHiddenLayers)},
		{Key: "context_length", Value: uint32(t.modelMaxLength)},
		{Key: "vocab_size", Value: uint32(t.vocabSize)},
		{Key: "embedding_length", Value: uint32(t.hiddenSize)},
		{Key: "feed_forward_length", Value: uint32(t.denseSize)},
		{Key: "expert_feed_forward_length", Value: uint32(t.expertSize)},
		{Key: "expert_count", Value: uint32(t.experts)},
		{Key: "expert_used_count", Value: uint32(t.expertsUsed)},
		{Key: "expert_shared_count", Value: uint32(t.sharedExperts)},
		{Key: "expert_gating_func", Value: sigmoidGating},
		{Key: "expert_weights_scale", Value: float32(t.routeScale)},
		{Key: "attention.head_count", Value: uint32(t.numAttentionHeads)},
		{Key: "attention.head_count_kv", Value: kvHeads},
		{Key: "attention.key_length", Value: uint32(t.headDim)},
		{Key: "attention.value_length", Value: uint32(t.headDim)},
		{Key: "attention.layer_norm_rms_epsilon", Value: float32(t.rmsNormEps)},
		{Key: "attention.sliding_window", Value: uint32(t.slidingWindow)},
		{Key: "attention.sliding_window_pattern", Value: t.local},
		{Key: "d_rel", Value: uint32(t.dRel)},
		{Key: "rel_extent", Value: uint32(t.relExtent)},
		{Key: "rel_extent_swa", Value: uint32(t.slidingWindow)},
		{Key: "shortconv_kernel", Value: uint32(t.sconvKernelSize)},
		{Key: "dense_block_count", Value: uint32(t.denseLayers)},
		{Key: "logit_scale_denom", Value: float32(t.mupDivisor)},
		{Key: "log_scaling_n_floor", Value: uint32(t.logScalingFloor)},
		{Key: "log_scaling_alpha", Value: float32(t.logScalingAlpha)},
		{Key: "unpadded_vocab_size", Value: uint32(t.unpaddedVocabSize)},
	})
	if t.swaHeadDim != t.headDim {
		kv = append(kv,
			convert.KV{Key: "inkling.attention.key_length_swa", Value: uint32(t.swaHeadDim)},
			convert.KV{Key: "inkling.attention.value_length_swa", Value: uint32(t.swaHeadDim)})
	}
	return kv
}

// mmprojKeys returns the keys of the towers that are there. Those under clip. are
// llama.cpp's, some of them without a meaning for these towers; the others are ours
// and written only where the value is not the one every reader assumes.
func (p *planner) mmprojKeys(vision, audio bool) []convert.KV {
	kv := []convert.KV{
		{Key: "clip.has_vision_encoder", Value: vision},
		{Key: "clip.has_audio_encoder", Value: audio},
	}
	if vision {
		kv = append(kv, p.visionKeys()...)
	}
	if audio {
		kv = append(kv, p.audioKeys()...)
	}
	return kv
}

func (p *planner) visionKeys() []convert.KV {
	v, pr := p.c.vision, p.processor
	kv := under("clip.vision.", []convert.KV{
		{Key: "projector_type", Value: "inkling"},
		{Key: "projection_dim", Value: uint32(p.c.text.hiddenSize)},
		{Key: "image_size", Value: uint32(v.patchSize)},
		{Key: "patch_size", Value: uint32(v.patchSize)},
		{Key: "embedding_length", Value: uint32(v.channels)},
		{Key: "feed_forward_length", Value: uint32(0)},
		{Key: "block_count", Value: uint32(v.layers)},
		{Key: "attention.head_count", Value: uint32(1)},
		{Key: "attention.layer_norm_epsilon", Value: float32(v.rmsNormEps)},
		{Key: "image_mean", Value: pr.mean[:]},
		{Key: "image_std", Value: pr.std[:]},
	})
	if v.temporalPatchSize != defaultTemporal {
		kv = append(kv, convert.KV{Key: "inkling.vision.temporal_patch_size", Value: uint32(v.temporalPatchSize)})
	}
	if pr.rescaleFrac != 0 {
		kv = append(kv, convert.KV{Key: "inkling.vision.rescale_image_frac", Value: float32(pr.rescaleFrac)})
	}
	if pr.maxEdge >= 0 {
		kv = append(kv, convert.KV{Key: "inkling.vision.rescale_max_long_edge", Value: uint32(pr.maxEdge)})
	}
	return kv
}

func (p *planner) audioKeys() []convert.KV {
	a := p.c.audio
	return under("clip.audio.", []convert.KV{
		{Key: "projector_type", Value: "inkling"},
		{Key: "projection_dim", Value: uint32(p.c.text.hiddenSize)},
		{Key: "embedding_length", Value: uint32(p.c.text.hiddenSize)},
		{Key: "feed_forward_length", Value: uint32(0)},
		{Key: "block_count", Value: uint32(0)},
		{Key: "attention.head_count", Value: uint32(1)},
		{Key: "attention.layer_norm_epsilon", Value: float32(a.rmsNormEps)},
		{Key: "num_mel_bins", Value: uint32(a.melBins)},
	})
}

// under puts a prefix before each key.
func under(prefix string, kv []convert.KV) []convert.KV {
	for i := range kv {
		kv[i].Key = prefix + kv[i].Key
	}
	return kv
}
