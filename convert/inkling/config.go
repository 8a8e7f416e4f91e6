package inkling

import (
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// config is what config.json says. Fields of sub-configs keep the words of the
// published spelling; the comments give those of the one that transformers writes
// where it differs.
type config struct {
	text    textConfig
	vision  *visionConfig // nil if there is none
	audio   *audioConfig  // nil if there is none
	imageID int64         // image_token_id, -1 if there is none
	audioID int64         // audio_token_id, -1 if there is none
	eosIDs  []int64       // eos_token_id, one or several or none
	mtp     mtpConfig
	notes   []string

	mtpLocal []bool // by depth of multi-token prediction: sliding attention

	// text.expertSize may be a class default of the port instead of the model's.
	expertSizeUnsure bool
}

// Bounds that keep what is computed from a config small; published models have
// 66 layers, 256 experts and 201024 tokens.
const (
	maxLayers  = 4096
	maxExperts = 65536
	maxVocab   = 1 << 24
)

// parseConfig reads config.json. Text-only checkpoints have the text config at the
// top level.
func parseConfig(f *convert.Fields) (*config, error) {
	c := &config{imageID: f.IntOr(-1, "image_token_id"), audioID: f.IntOr(-1, "audio_token_id")}
	text := f.Object("text_config")
	switch {
	case text != nil:
		if t := text.StrOr("inkling_text", "model_type"); !slices.Contains(textTypes, t) {
			if why := (arch{}).Refuses(t); why != "" {
				f.Unsupportedf("%s", why)
			}
			f.Unsupportedf("%s %q, want one of %v", text.Name("model_type"), t, textTypes)
		}
		f.Agree(text, "hidden_size", "num_hidden_layers", "vocab_size", "unpadded_vocab_size",
			"num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window_size", "local_layer_ids", "layer_types",
			"intermediate_size", "dense_intermediate_size", "moe_intermediate_size",
			"n_routed_experts", "num_experts_per_tok", "n_shared_experts", "route_scale",
			"rms_norm_eps", "logits_mup_width_multiplier", "model_max_length", "max_position_embeddings")
	case f.StrOr("", "model_type") == multimodal:
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
	c.parseText(text)
	c.mtp = parseMTP(f, text)
	f.MustBe("tie_word_embeddings", false)
	if v := f.Object("vision_config"); v != nil {
		c.vision = parseVision(v)
	}
	if a := f.Object("audio_config"); a != nil {
		c.audio = parseAudio(a)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return c, nil
}
