package inkling

import (
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// config holds the numbers of a text file. The names are those of the keys.
type config struct {
	blockCount, contextLength, embd, vocab, unpadded int

	first int // the number of layer 0 in the file
	ahead int // blocks of the file behind the model's, for multi-token prediction

	nHead                  int
	nHeadKV                []int // per layer
	headDim, headDimSWA    int   // of full and of sliding layers
	eps                    float32
	slidingWindow          int
	sliding                []bool // per layer: attends within the window only
	dRel                   int
	relExtent, relExtSWA   int
	shortconvKernel        int
	denseBlocks, ff, ffExp int
	nExpert, nExpertUsed   int
	nExpertShared          int
	expertScale            float32

	logitScaleDenom float32
	logFloor        int // 0: no log scaling
	logAlpha        float32

	devices []*binding.Backend // of each layer
}

const prefix = "inkling."

// maxLayers bounds what is allocated per layer before any tensor was seen.
const maxLayers = 4096

// keyReader reads the keys of a file; arrays are read from the file itself.
type keyReader struct {
	*models.Keys
	f *gguf.File
}

// readConfig reads and checks every key of a file, for all of its blocks.
func readConfig(f *gguf.File) (*config, error) {
	r := keyReader{models.NewKeys(f, prefix), f}
	c := &config{
		blockCount:      r.Int("block_count", 1),
		ahead:           models.OwnDepths(f),
		contextLength:   r.Int("context_length", 1),
		embd:            r.Int("embedding_length", 1),
		vocab:           r.IntOr("vocab_size", 1, 0),
		unpadded:        r.IntOr("unpadded_vocab_size", 0, 0),
		nHead:           r.Int("attention.head_count", 1),
		headDim:         r.Int("attention.key_length", 1),
		eps:             float32(r.Positive("attention.layer_norm_rms_epsilon")),
		slidingWindow:   r.Int("attention.sliding_window", 1),
		dRel:            r.Int("d_rel", 1),
		relExtent:       r.Int("rel_extent", 1),
		relExtSWA:       r.Int("rel_extent_swa", 1),
		shortconvKernel: r.Int("shortconv_kernel", 2),
		denseBlocks:     r.Int("dense_block_count", 0),
		expertScale:     float32(r.Positive("expert_weights_scale")),
		logitScaleDenom: float32(r.Positive("logit_scale_denom")),
		logFloor:        r.IntOr("log_scaling_n_floor", 0, 0),
		logAlpha:        float32(r.NotNegativeOr("log_scaling_alpha", 0)),
	}
	c.headDimSWA = r.IntOr("attention.key_length_swa", 1, c.headDim)
	r.readValueLengths(c)
	if c.denseBlocks > 0 || c.ahead > 0 { // depths are dense
		c.ff = r.Int("feed_forward_length", 1)
	}
	if c.denseBlocks < c.blockCount-c.ahead {
		c.ffExp = r.Int("expert_feed_forward_length", 1)
		c.nExpert = r.Int("expert_count", 1)
		c.nExpertUsed = r.Int("expert_used_count", 1)
		c.nExpertShared = r.Int("expert_shared_count", 1)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	r.readLayers(c)
	r.check(c)
	return c, r.Err()
}

// readValueLengths checks that values are as long as keys: the attention folds both alike.
func (r keyReader) readValueLengths(c *config) {
	if v := r.Int("attention.value_length", 1); r.Err() == nil && v != c.headDim {
		r.Failf("attention.value_length", "%d, want attention.key_length %d", v, c.headDim)
	}
	if v := r.IntOr("attention.value_length_swa", 1, c.headDimSWA); r.Err() == nil && v != c.headDimSWA {
		r.Failf("attention.value_length_swa", "%d, want attention.key_length_swa %d", v, c.headDimSWA)
	}
}

func (r keyReader) readLayers(c *config) {
	if c.blockCount > maxLayers {
		r.Failf("block_count", "%d, want at most %d", c.blockCount, maxLayers)
		return
	}
	kv, err := r.f.Ints(prefix + "attention.head_count_kv")
	if err != nil {
		r.Note(err)
		return
	}
	sliding, err := r.f.Bools(prefix + "attention.sliding_window_pattern")
	if err != nil {
		r.Note(err)
		return
	}
	if len(kv) != c.blockCount {
		r.Failf("attention.head_count_kv", "%d values for %d layers", len(kv), c.blockCount)
		return
	}
	if len(sliding) != c.blockCount {
		r.Failf("attention.sliding_window_pattern", "%d values for %d layers", len(sliding), c.blockCount)
		return
	}
	c.sliding = sliding
	first := map[bool]int{} // the first layer of each kind
	for i, n := range kv {
		if n < 1 || n > int64(c.nHead) || int64(c.nHead)%n != 0 {
			r.Failf("attention.head_count_kv", "layer %d has %d heads, which does not divide attention.head_count %d", i, n, c.nHead)
			return
		}
		j, seen := first[sliding[i]]
		if !seen {
			first[sliding[i]] = i
		} else if kv[j] != n {
			r.Failf("attention.head_count_kv", "layers %d and %d are of one kind and have %d and %d heads", j, i, kv[j], n)
			return
		}
		c.nHeadKV = append(c.nHeadKV, int(n))
	}
}

func (r keyReader) check(c *config) {
	if r.Err() != nil {
		return
	}
	if gate := r.IntOr("expert_gating_func", 0, 2); r.Err() == nil && gate != 2 {
		r.Failf("expert_gating_func", "%d, want 2 (sigmoid)", gate)
	}
	if isText(r.f) && c.ahead == c.blockCount {
		r.Failf("block_count", "%d, and all of these blocks are for multi-token prediction", c.blockCount)
	}
	if n := r.IntOr("nextn_predict_layers", 0, 0); r.Err() == nil && c.ahead > 0 && n != c.ahead {
		r.Failf("nextn_predict_layers", "%d, but %d blocks have an nextn.eh_proj.weight", n, c.ahead)
	}
	if c.denseBlocks > c.blockCount {
		r.Failf("dense_block_count", "%d of %d layers", c.denseBlocks, c.blockCount)
	}
	if c.nExpertUsed > c.nExpert {
		r.Failf("expert_used_count", "%d of %d experts", c.nExpertUsed, c.nExpert)
	}
	if c.vocab == 0 { // optional in files of other tools: the embedding has as many rows
		if t, ok := r.f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
			c.vocab = int(t.Dims[1])
		}
	}
	if c.unpadded > c.vocab {
		r.Failf("unpadded_vocab_size", "%d of a vocabulary of %d", c.unpadded, c.vocab)
	}
	if c.unpadded == 0 {
		c.unpadded = c.vocab
	}
}

// trunk is the model without the blocks for multi-token prediction.
func (c *config) trunk() *config { return c.blocks(0, c.blockCount-c.ahead) }

// blocks describes n layers from layer first on, which becomes layer 0.
func (c *config) blocks(first, n int) *config {
	part := *c
	part.first, part.blockCount, part.ahead = c.first+first, n, 0
	part.denseBlocks = min(max(c.denseBlocks-first, 0), n)
	part.nHeadKV, part.sliding = c.nHeadKV[first:first+n], c.sliding[first:first+n]
	return &part
}

// headDimOf is the head size of layer i.
func (c *config) headDimOf(i int) int {
	if c.sliding[i] {
		return c.headDimSWA
	}
	return c.headDim
}

// extentOf is the number of distances that have a bias in layer i.
func (c *config) extentOf(i int) int {
	if c.sliding[i] {
		return c.relExtSWA
	}
	return c.relExtent
}

// tau is the log scaling of queries at position pos in full layers:
// 1 + alpha·ln(max((pos+1)/floor, 1)).
func (c *config) tau(pos int) float32 {
	if c.logFloor == 0 {
		return 1
	}
	return float32(1 + float64(c.logAlpha)*math.Log(max(float64(pos+1)/float64(c.logFloor), 1)))
}
