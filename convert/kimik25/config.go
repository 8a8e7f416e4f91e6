package kimik25

import (
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// config is what config.json says. Fields keep the words of the published
// spelling; comments give those of transformers where they differ.
type config struct {
	text    textConfig
	vision  *visionConfig // nil if there is none
	vl      bool          // Kimi-VL
	tied    bool          // tie_word_embeddings: asked for, not decided
	untied  bool          // tie_word_embeddings is there and false
	mediaID int64         // media_placeholder_token_id, image_token_id; -1 if there is none
	eosIDs  []int64       // eos_token_id, one or several or none
	unified bool          // use_unified_vision_chunk
}

// Bounds that keep what is computed from a config small; the published model has
// 61 layers, 384 experts, 64 heads and 163840 tokens.
const (
	maxLayers  = 4096
	maxExperts = 65536
	maxHeads   = 4096
	maxVocab   = 1 << 24
	maxGrid    = 4096 // position rows and columns
)

// parseConfig reads config.json. Text-only checkpoints have the text config at the
// top level.
func parseConfig(f *convert.Fields) (*config, error) {
	modelType := f.StrOr("", "model_type")
	c := &config{
		vl:      modelType == typeVL,
		mediaID: f.IntOr(-1, "media_placeholder_token_id", "image_token_id"),
		unified: f.BoolOr(false, "use_unified_vision_chunk"),
	}
	text := f.Object("text_config")
	switch {
	case text != nil:
		if t := text.StrOr(textTypes[0], "model_type"); !slices.Contains(textTypes, t) {
			f.Unsupportedf("%s %q, want one of %v", text.Name("model_type"), t, textTypes)
		}
		f.Agree(text, "hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings", "num_attention_heads",
			"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
			"intermediate_size", "moe_intermediate_size", "first_k_dense_replace",
			"n_routed_experts", "num_experts_per_tok", "n_shared_experts", "n_group", "topk_group",
			"routed_scaling_factor", "scoring_func", "topk_method", "norm_topk_prob",
			"rms_norm_eps", "rope_theta", "rope_scaling")
	case modelType == typeK25 || modelType == typeVL:
		f.Failf("text_config is missing")
	default:
		text = f
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	c.eosIDs = f.TokenIDs("eos_token_id")
	if c.eosIDs == nil {
		c.eosIDs = text.TokenIDs("eos_token_id")
	}
	// The port's class ties by default, so only what is written counts.
	tie := f
	if !tie.Has("tie_word_embeddings") {
		tie = text
	}
	c.tied = tie.BoolOr(false, "tie_word_embeddings")
	c.untied = tie.Has("tie_word_embeddings") && !c.tied
	c.text = parseText(text)
	if v := f.Object("vision_config"); v != nil {
		c.vision = parseVision(f, v, c)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c, nil
}
