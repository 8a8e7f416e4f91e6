package kimik25

import (
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// config holds the numbers of a text file. The names are those of the keys.
type config struct {
	blockCount, contextLength, embd, vocab int

	nHead               int
	eps                 float32
	latentEps           float32 // of the norms of the two latents
	qLora               int     // 0: queries are projected in one step
	kvLora              int     // n_latent: the compressed row
	nope, rope, valueLn int     // per head: unrotated and rotated part of q and k, value
	rotation            rotation

	denseBlocks, ff, ffExp     int
	nExpert, nExpertUsed, ffSh int // ffSh is the width of all shared experts together
	router                     op.Router

	devices []*binding.Backend // of each layer
}

// on is the device of layer i.
func (c *config) on(i int) *binding.Backend { return c.devices[i] }

// rotation says how positions turn queries and keys, and how scores are scaled.
type rotation struct {
	freqBase float64
	// YaRN; factor 1 is none.
	factor, original   float64
	betaFast, betaSlow float64
	logMultiplier      float64 // 0.1·mscale_all_dim
	attnFactor         float64 // of the cosines and sines: 1 where mscale = mscale_all_dim
}

// inverseFrequencies returns 1/f_i of the rope/2 pairs, where position p turns pair i by p·f_i.
//
// Source: YaRN (Peng et al. 2023), as DeepseekV3YarnRotaryEmbedding has it.
func (r *rotation) inverseFrequencies(dims int) []float32 {
	corr := func(turns float64) float64 {
		return float64(dims) * math.Log(r.original/(turns*2*math.Pi)) / (2 * math.Log(r.freqBase))
	}
	low := max(math.Floor(corr(r.betaFast)), 0)
	high := min(math.Ceil(corr(r.betaSlow)), float64(dims-1))
	inv := make([]float32, dims/2)
	for i := range inv {
		f := math.Pow(r.freqBase, -2*float64(i)/float64(dims))
		if r.factor > 1 {
			ramp := min(max((float64(i)-low)/max(high-low, 0.001), 0), 1)
			f = f/r.factor*ramp + f*(1-ramp)
		}
		inv[i] = float32(1 / f)
	}
	return inv
}

// scale is what products of queries and keys of n elements are multiplied by.
func (r *rotation) scale(n int) float32 {
	mu := 1.0
	if r.factor > 1 {
		mu += r.logMultiplier * math.Log(r.factor)
	}
	return float32(mu * mu / math.Sqrt(float64(n)))
}

const prefix = "deepseek2."

// maxLayers bounds what is allocated per layer before any tensor was seen.
const maxLayers = 4096

// Values of expert_gating_func.
const (
	gateSoftmax = 1
	gateSigmoid = 2
)

// readConfig reads and checks every key of the text file.
func readConfig(f *gguf.File) (*config, error) {
	k := models.NewKeys(f, prefix)
	c := &config{
		blockCount:    k.Int("block_count", 1),
		contextLength: k.Int("context_length", 1),
		embd:          k.Int("embedding_length", 1),
		vocab:         k.IntOr("vocab_size", 1, 0),
		nHead:         k.Int("attention.head_count", 1),
		eps:           float32(k.Positive("attention.layer_norm_rms_epsilon")),
		// The class default of the published code, whatever rms_norm_eps says.
		latentEps:   float32(k.PositiveOr("attention.latent_norm_rms_epsilon", 1e-6)),
		qLora:       k.IntOr("attention.q_lora_rank", 0, 0),
		kvLora:      k.Int("attention.kv_lora_rank", 1),
		rope:        k.Int("rope.dimension_count", 2),
		valueLn:     k.Int("attention.value_length_mla", 1),
		denseBlocks: k.IntOr("leading_dense_block_count", 0, 0),
	}
	if c.blockCount > maxLayers {
		k.Failf("block_count", "%d, want at most %d", c.blockCount, maxLayers)
	}
	c.nope = k.Int("attention.key_length_mla", 1) - c.rope
	if c.nope < 1 || c.rope%2 != 0 {
		k.Failf("rope.dimension_count", "%d, want an even number below attention.key_length_mla %d", c.rope, c.nope+c.rope)
	}
	if n := k.IntOr("attention.key_length", 1, c.kvLora+c.rope); n != c.kvLora+c.rope {
		k.Failf("attention.key_length", "%d, want attention.kv_lora_rank + rope.dimension_count = %d", n, c.kvLora+c.rope)
	}
	if n := k.IntOr("attention.value_length", 1, c.kvLora); n != c.kvLora {
		k.Failf("attention.value_length", "%d, want attention.kv_lora_rank %d", n, c.kvLora)
	}
	if c.vocab == 0 { // optional in files of other tools: the embedding has as many rows
		if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
			c.vocab = int(t.Dims[1])
		}
	}
	c.readRotation(k)
	c.readFeedForward(k)
	return c, k.Err()
}

func (c *config) readRotation(k *models.Keys) {
	r := &c.rotation
	r.freqBase = k.Positive("rope.freq_base")
	r.factor = 1
	r.attnFactor = k.PositiveOr("rope.scaling.attn_factor", 1)
	switch kind := k.StrOr("rope.scaling.type", "none"); kind {
	case "none":
		return
	case "yarn":
	default:
		k.Failf("rope.scaling.type", "%q, want yarn or none", kind)
		return
	}
	r.factor = k.Positive("rope.scaling.factor")
	r.original = float64(k.Int("rope.scaling.original_context_length", 1))
	r.betaFast = k.PositiveOr("rope.scaling.yarn_beta_fast", 32)
	r.betaSlow = k.PositiveOr("rope.scaling.yarn_beta_slow", 1)
	if k.Has("rope.scaling.yarn_log_multiplier") {
		r.logMultiplier = k.Positive("rope.scaling.yarn_log_multiplier")
	}
	if r.freqBase == 1 {
		k.Failf("rope.freq_base", "1, which yarn can not stretch")
	}
}

func (c *config) readFeedForward(k *models.Keys) {
	if c.denseBlocks > c.blockCount {
		k.Failf("leading_dense_block_count", "%d of %d layers", c.denseBlocks, c.blockCount)
	}
	if c.denseBlocks > 0 {
		c.ff = k.Int("feed_forward_length", 1)
	}
	if c.denseBlocks >= c.blockCount {
		return
	}
	c.ffExp = k.Int("expert_feed_forward_length", 1)
	c.nExpert = k.Int("expert_count", 1)
	c.nExpertUsed = k.Int("expert_used_count", 1)
	c.ffSh = c.ffExp * k.IntOr("expert_shared_count", 0, 0)
	c.router = op.Router{
		Used: c.nExpertUsed, Groups: k.IntOr("expert_group_count", 0, 1), GroupsUsed: k.IntOr("expert_group_used_count", 0, 1),
		Normalize: k.BoolOr("expert_weights_norm", false), Scale: float32(k.PositiveOr("expert_weights_scale", 1)),
	}
	r := &c.router
	r.Groups, r.GroupsUsed = max(r.Groups, 1), max(r.GroupsUsed, 1) // some writers say 0 for none
	switch gate := k.IntOr("expert_gating_func", 0, gateSoftmax); gate {
	case gateSoftmax:
		r.SoftMax = true
	case gateSigmoid:
	default:
		k.Failf("expert_gating_func", "%d, want %d (softmax) or %d (sigmoid)", gate, gateSoftmax, gateSigmoid)
	}
	switch {
	case c.nExpertUsed > c.nExpert:
		k.Failf("expert_used_count", "%d of %d experts", c.nExpertUsed, c.nExpert)
	case c.nExpert%r.Groups != 0:
		k.Failf("expert_group_count", "%d, which does not divide expert_count %d", r.Groups, c.nExpert)
	case r.GroupsUsed > r.Groups:
		k.Failf("expert_group_used_count", "%d of %d groups", r.GroupsUsed, r.Groups)
	case c.nExpertUsed > c.nExpert/r.Groups*r.GroupsUsed:
		k.Failf("expert_used_count", "%d, but %d groups have %d experts", c.nExpertUsed, r.GroupsUsed, c.nExpert/r.Groups*r.GroupsUsed)
	}
}
