package inkling

import (
	"fmt"
	"math"

	"github.com/inkling-go/inkling/internal/gguf"
)

// config holds the numbers of a text file. The names are those of the keys.
type config struct {
	blockCount, contextLength, embd, vocab, unpadded int

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
}

// keyReader reads keys below the architecture's prefix and keeps the first error.
type keyReader struct {
	f   *gguf.File
	err error
}

const prefix = "inkling."

// fail records that key has a value that makes no sense.
func (r *keyReader) fail(key, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: key %q: %s", r.f.Path(), prefix+key, fmt.Sprintf(format, args...))
	}
}

// int reads an integer of at least least; absent keys give def unless def is negative.
func (r *keyReader) int(key string, least, def int) int {
	var v uint64
	var err error
	if def < 0 {
		v, err = r.f.Uint(prefix + key)
	} else {
		v, err = r.f.UintOr(prefix+key, uint64(def))
	}
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case err == nil && (v < uint64(max(least, 0)) || v > math.MaxInt32):
		r.fail(key, "%d, want at least %d", v, least)
	}
	return int(v)
}

const required = -1

func (r *keyReader) float(key string, def float64, ok func(float64) bool) float32 {
	var v float64
	var err error
	if math.IsNaN(def) {
		v, err = r.f.Float(prefix + key)
	} else {
		v, err = r.f.FloatOr(prefix+key, def)
	}
	switch {
	case err != nil && r.err == nil:
		r.err = err
	case err == nil && (!ok(v) || math.IsNaN(v) || math.IsInf(v, 0)):
		r.fail(key, "%g is out of range", v)
	}
	return float32(v)
}

func positive(v float64) bool    { return v > 0 }
func notNegative(v float64) bool { return v >= 0 }

// maxLayers bounds what is allocated per layer before any tensor was seen.
const maxLayers = 4096

// readConfig reads and checks every key of the text file.
func readConfig(f *gguf.File) (*config, error) {
	r := &keyReader{f: f}
	nan := math.NaN()
	c := &config{
		blockCount:      r.int("block_count", 1, required),
		contextLength:   r.int("context_length", 1, required),
		embd:            r.int("embedding_length", 1, required),
		vocab:           r.int("vocab_size", 1, 0),
		unpadded:        r.int("unpadded_vocab_size", 0, 0),
		nHead:           r.int("attention.head_count", 1, required),
		headDim:         r.int("attention.key_length", 1, required),
		eps:             r.float("attention.layer_norm_rms_epsilon", nan, positive),
		slidingWindow:   r.int("attention.sliding_window", 1, required),
		dRel:            r.int("d_rel", 1, required),
		relExtent:       r.int("rel_extent", 1, required),
		relExtSWA:       r.int("rel_extent_swa", 1, required),
		shortconvKernel: r.int("shortconv_kernel", 2, required),
		denseBlocks:     r.int("dense_block_count", 0, required),
		expertScale:     r.float("expert_weights_scale", nan, positive),
		logitScaleDenom: r.float("logit_scale_denom", nan, positive),
		logFloor:        r.int("log_scaling_n_floor", 0, 0),
		logAlpha:        r.float("log_scaling_alpha", 0, notNegative),
	}
	c.headDimSWA = r.int("attention.key_length_swa", 1, c.headDim)
	r.readValueLengths(c)
	if c.denseBlocks > 0 {
		c.ff = r.int("feed_forward_length", 1, required)
	}
	if c.denseBlocks < c.blockCount {
		c.ffExp = r.int("expert_feed_forward_length", 1, required)
		c.nExpert = r.int("expert_count", 1, required)
		c.nExpertUsed = r.int("expert_used_count", 1, required)
		c.nExpertShared = r.int("expert_shared_count", 1, required)
	}
	if r.err != nil {
		return nil, r.err
	}
	r.readLayers(c)
	r.check(c)
	return c, r.err
}

// readValueLengths checks that values are as long as keys: the attention folds both alike.
func (r *keyReader) readValueLengths(c *config) {
	if v := r.int("attention.value_length", 1, required); r.err == nil && v != c.headDim {
		r.fail("attention.value_length", "%d, want attention.key_length %d", v, c.headDim)
	}
	if v := r.int("attention.value_length_swa", 1, c.headDimSWA); r.err == nil && v != c.headDimSWA {
		r.fail("attention.value_length_swa", "%d, want attention.key_length_swa %d", v, c.headDimSWA)
	}
}

func (r *keyReader) readLayers(c *config) {
	if c.blockCount > maxLayers {
		r.fail("block_count", "%d, want at most %d", c.blockCount, maxLayers)
		return
	}
	kv, err := r.f.Ints(prefix + "attention.head_count_kv")
	if err != nil {
		r.err = err
		return
	}
	sliding, err := r.f.Bools(prefix + "attention.sliding_window_pattern")
	if err != nil {
		r.err = err
		return
	}
	if len(kv) != c.blockCount {
		r.fail("attention.head_count_kv", "%d values for %d layers", len(kv), c.blockCount)
		return
	}
	if len(sliding) != c.blockCount {
		r.fail("attention.sliding_window_pattern", "%d values for %d layers", len(sliding), c.blockCount)
		return
	}
	c.sliding = sliding
	first := map[bool]int{} // the first layer of each kind
	for i, n := range kv {
		if n < 1 || n > int64(c.nHead) || int64(c.nHead)%n != 0 {
			r.fail("attention.head_count_kv", "layer %d has %d heads, which does not divide attention.head_count %d", i, n, c.nHead)
			return
		}
		j, seen := first[sliding[i]]
		if !seen {
			first[sliding[i]] = i
		} else if kv[j] != n {
			r.fail("attention.head_count_kv", "layers %d and %d are of one kind and have %d and %d heads", j, i, kv[j], n)
			return
		}
		c.nHeadKV = append(c.nHeadKV, int(n))
	}
}

func (r *keyReader) check(c *config) {
	if r.err != nil {
		return
	}
	if gate := r.int("expert_gating_func", 0, 2); r.err == nil && gate != 2 {
		r.fail("expert_gating_func", "%d, want 2 (sigmoid)", gate)
	}
	if c.denseBlocks > c.blockCount {
		r.fail("dense_block_count", "%d of %d layers", c.denseBlocks, c.blockCount)
	}
	if c.nExpertUsed > c.nExpert {
		r.fail("expert_used_count", "%d of %d experts", c.nExpertUsed, c.nExpert)
	}
	if c.vocab == 0 { // optional in files of other tools: the embedding has as many rows
		if t, ok := r.f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
			c.vocab = int(t.Dims[1])
		}
	}
	if c.unpadded > c.vocab {
		r.fail("unpadded_vocab_size", "%d of a vocabulary of %d", c.unpadded, c.vocab)
	}
	if c.unpadded == 0 {
		c.unpadded = c.vocab
	}
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
