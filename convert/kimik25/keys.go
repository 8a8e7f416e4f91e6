package kimik25

import (
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// expert_gating_func of routers (llama.cpp's LLAMA_EXPERT_GATING_FUNC_TYPE_*).
const (
	softmaxGating = uint32(1)
	sigmoidGating = uint32(2)
)

// textKeys returns the keys of the text model, as llama.cpp's converter for this
// architecture writes them. Latent attention appears as attention with one key
// head as wide as the latent and the rotated part together.
func (p *planner) textKeys() []convert.KV {
	t := &p.c.text
	gating := sigmoidGating
	if t.softmax {
		gating = softmaxGating
	}
	kv := []convert.KV{
		{Key: "block_count", Value: uint32(t.numHiddenLayers)},
		{Key: "context_length", Value: uint32(t.maxPositions)},
		{Key: "embedding_length", Value: uint32(t.hiddenSize)},
		{Key: "feed_forward_length", Value: uint32(t.denseSize)},
		{Key: "vocab_size", Value: uint32(t.vocabSize)},
		{Key: "attention.head_count", Value: uint32(t.numAttentionHeads)},
		{Key: "attention.head_count_kv", Value: uint32(1)},
		{Key: "attention.layer_norm_rms_epsilon", Value: float32(t.rmsNormEps)},
		{Key: "attention.kv_lora_rank", Value: uint32(t.kvLoraRank)},
		{Key: "attention.key_length", Value: uint32(t.kvLoraRank + t.ropeDim)},
		{Key: "attention.value_length", Value: uint32(t.kvLoraRank)},
		{Key: "attention.key_length_mla", Value: uint32(t.nopeDim + t.ropeDim)},
		{Key: "attention.value_length_mla", Value: uint32(t.valueDim)},
		{Key: "rope.dimension_count", Value: uint32(t.ropeDim)},
		{Key: "rope.freq_base", Value: float32(t.rope.theta)},
		{Key: "leading_dense_block_count", Value: uint32(t.denseLayers)},
		{Key: "expert_count", Value: uint32(t.experts)},
		{Key: "expert_used_count", Value: uint32(t.expertsUsed)},
		{Key: "expert_shared_count", Value: uint32(t.sharedExperts)},
		{Key: "expert_feed_forward_length", Value: uint32(t.expertSize)},
		{Key: "expert_group_count", Value: uint32(t.groups)},
		{Key: "expert_group_used_count", Value: uint32(t.groupsUsed)},
		{Key: "expert_gating_func", Value: gating},
		{Key: "expert_weights_scale", Value: float32(t.routedScale)},
		{Key: "expert_weights_norm", Value: t.normTopK},
	}
	if t.qLoraRank > 0 {
		kv = append(kv, convert.KV{Key: "attention.q_lora_rank", Value: uint32(t.qLoraRank)})
	}
	if y := t.rope.yarn; y != nil {
		kv = append(kv,
			convert.KV{Key: "rope.scaling.type", Value: "yarn"},
			convert.KV{Key: "rope.scaling.factor", Value: float32(y.factor)},
			convert.KV{Key: "rope.scaling.original_context_length", Value: uint32(y.original)},
			convert.KV{Key: "rope.scaling.yarn_beta_fast", Value: float32(y.betaFast)},
			convert.KV{Key: "rope.scaling.yarn_beta_slow", Value: float32(y.betaSlow)},
			// Readers divide by 0.1 again.
			convert.KV{Key: "rope.scaling.yarn_log_multiplier", Value: float32(0.1 * y.mscaleAllDim)})
	}
	return under("deepseek2.", kv)
}

// mmprojKeys returns the keys of the tower. Those under clip. and vision. are
// llama.cpp's, those under kimi. are ours. The chat template helps to tell how
// clips go into a prompt.
func (p *planner) mmprojKeys(template string) []convert.KV {
	v, pr := p.c.vision, p.processor
	projector := "kimik25"
	if p.c.vl {
		projector = "kimivl"
	}
	area := v.patch * v.patch
	kv := []convert.KV{
		{Key: "clip.has_vision_encoder", Value: true},
		{Key: "clip.projector_type", Value: projector},
		{Key: "clip.use_gelu", Value: true},
		{Key: "clip.vision.projection_dim", Value: uint32(p.c.text.hiddenSize)},
		{Key: "clip.vision.image_size", Value: uint32(v.posHeight * v.patch)},
		{Key: "clip.vision.patch_size", Value: uint32(v.patch)},
		{Key: "clip.vision.embedding_length", Value: uint32(v.hidden)},
		{Key: "clip.vision.feed_forward_length", Value: uint32(v.intermediate)},
		{Key: "clip.vision.block_count", Value: uint32(v.layers)},
		{Key: "clip.vision.attention.head_count", Value: uint32(v.heads)},
		{Key: "clip.vision.attention.layer_norm_epsilon", Value: float32(v.projectorEps)},
		{Key: "clip.vision.projector.scale_factor", Value: uint32(v.merge)},
		{Key: "clip.vision.image_mean", Value: pr.mean[:]},
		{Key: "clip.vision.image_std", Value: pr.std[:]},
		{Key: "clip.vision.image_min_pixels", Value: uint32(minPatches * area)},
		{Key: "clip.vision.image_max_pixels", Value: uint32(pr.imagePatches * area)},
		{Key: "vision.pos_emb_height", Value: uint32(v.posHeight)},
		{Key: "vision.pos_emb_width", Value: uint32(v.posWidth)},
		{Key: "vision.pos_emb_time", Value: uint32(v.posTime)},
		{Key: "kimi.image.side_patch_limit", Value: uint32(pr.sidePatches)},
	}
	if p.c.vl {
		kv = append(kv, convert.KV{Key: "kimi.image.pad_input", Value: pr.pad})
	}
	return append(kv, p.videoKeys(template)...)
}

// minPatches is the smallest picture that llama.cpp does not enlarge.
const minPatches = 8

// Layouts of clips in a prompt.
const (
	layoutClip   = "clip"   // one block for all frames
	layoutChunks = "chunks" // a block with a time for each few frames
)

// videoPlaceholder stands for a clip in the templates of models that were trained
// on chunks.
const videoPlaceholder = "<|kimi_k25_video_placeholder|>"

// videoKeys returns how clips are sampled and laid out.
func (p *planner) videoKeys(template string) []convert.KV {
	pr, layout := p.processor, layoutClip
	if !p.c.vl && (pr.video || p.c.unified || strings.Contains(template, videoPlaceholder) || strings.Contains(template, mediaBegin)) {
		layout = layoutChunks
	}
	kv := []convert.KV{
		{Key: "layout", Value: layout},
		{Key: "sample_fps", Value: float32(pr.sampleFPS)},
	}
	if !p.c.vl {
		kv = append(kv,
			convert.KV{Key: "frames_per_chunk", Value: uint32(pr.framesPerChunk)},
			convert.KV{Key: "frame_patch_limit", Value: uint32(pr.framePatches)},
			convert.KV{Key: "timestamp_mode", Value: pr.timestamps})
	}
	if pr.videoPatches > 0 {
		kv = append(kv, convert.KV{Key: "patch_limit", Value: uint32(pr.videoPatches)})
	}
	if pr.maxFrames > 0 {
		kv = append(kv, convert.KV{Key: "max_frames", Value: uint32(pr.maxFrames)})
	}
	return under("kimi.video.", kv)
}

// under puts a prefix before each key.
func under(prefix string, kv []convert.KV) []convert.KV {
	for i := range kv {
		kv[i].Key = prefix + kv[i].Key
	}
	return kv
}
