package op

import "github.com/inkling-go/inkling/binding"

// Conv is a short convolution whose inputs are rows of a table with a ring for each
// sequence: see ShortConv. Position p of sequence s is row (Lo+s)*Rows + p mod Size.
type Conv struct {
	W     *binding.Tensor // [4, channels], the inner residual in w[3]
	Table *binding.Tensor // [channels, rows]
	Size  int             // inputs that a ring holds: at least 3 more than a step has rows of a sequence
	Rows  int             // of the table for each sequence
	Lo    int             // the step's first sequence
}

func (c *Conv) args(n int64, eps float32) []binding.Arg {
	return []binding.Arg{binding.Arg(n), binding.Arg(c.Size), binding.Arg(c.Rows), binding.Arg(c.Lo), binding.FloatArg(eps)}
}

// FusedConvAddNorm adds the convolution of a branch to the stream and norms the sum,
// in one launch, on devices that have a kernel for it.
//
//	y, x:   [channels, n*n_seq]   F32, contiguous: the branch and the stream
//	norm:   [channels]            the weight, or nil
//	first:  [n_seq]               I32, the position of each sequence's first row; -1: it is idle, nothing of it is kept
//	sum:    [channels, n*n_seq]   x + conv(y)
//	normed: [channels, n*n_seq]   RMSNorm(sum)·norm; nil without norm
//	ok:     false: use ShortConv and what follows it
func FusedConvAddNorm(g *binding.Graph, y, x, norm, first *binding.Tensor, c *Conv, eps float32) (sum, normed *binding.Tensor, ok bool) {
	if !g.Device().Fuses() {
		return nil, nil, false
	}
	channels, rows := x.Dim(0), x.Dim(1)
	parts := int64(1)
	if norm != nil {
		parts = 2
	}
	res := g.Fused(binding.FusedConvAddNorm, binding.F32, [4]int64{channels, parts * rows, 1, 1}, c.args(rows/first.Dim(0), eps), y, c.W, c.Table, x, first, norm)
	if !g.Supports(res) {
		return nil, nil, false
	}
	if norm == nil {
		return res, nil, true
	}
	return g.Rows(res, 0, rows), g.Rows(res, rows, rows), true
}

// Heads are what FusedQKV works on.
type Heads struct {
	QNorm, KNorm *binding.Tensor // [head_dim]
	K, V         *binding.Tensor // [head_dim, cells, n_head_kv, n_seq]   F32, F16, BF16 or Q8_0; views of the cache
	Ring         int             // positions that K and V hold, in cell p mod Ring; 0: all, in cell p
	First        *binding.Tensor // [n_seq] I32, as that of FusedConvAddNorm
	Tau          *binding.Tensor // [1, n*n_seq] the scale of queries by position, or nil
	NHead        int64
}

// FusedQKV makes queries, and the new cells of the cache, out of the products of a
// layer's attention, in one launch, on devices that have a kernel for it: q is normed
// per head and scaled, r scaled; keys and values go through the convolution c, keys
// then through their norm.
//
//	qkvr: [(n_head+2*n_head_kv)*head_dim + n_head*d_rel, n*n_seq]   F32: the products q, k, v, r of each row
//	c:    of keys and values side by side
//	q:    [head_dim, n_head, n, n_seq]   contiguous
//	r:    [d_rel, n_head, n, n_seq]      contiguous
//	ok:   false: use the composition, nothing was written
//
// It is expanded: what is recorded later reads the cells that it writes.
func FusedQKV(g *binding.Graph, qkvr *binding.Tensor, h *Heads, c *Conv, eps float32) (q, r *binding.Tensor, ok bool) {
	if !g.Device().Fuses() {
		return nil, nil, false
	}
	rows, seqs, dh := qkvr.Dim(1), h.First.Dim(0), h.QNorm.Dim(0)
	perQ := dh * h.NHead
	perR := qkvr.Dim(0) - perQ - 2*dh*h.K.Dim(2)
	if perR <= 0 {
		return nil, nil, false
	}
	n := rows / seqs
	args := append(c.args(n, eps), binding.Arg(h.NHead), binding.Arg(h.Ring))
	res := g.Fused(binding.FusedQKV, binding.F32, [4]int64{(perQ + perR) * rows, 1, 1, 1}, args,
		qkvr, h.QNorm, h.KNorm, c.W, c.Table, h.K, h.V, h.First, h.Tau)
	if !g.Supports(res) {
		return nil, nil, false
	}
	part := func(per, off int64) *binding.Tensor { // [per/n_head, n_head, n, n_seq]
		return g.View(res, [4]int64{per / h.NHead, h.NHead, n, seqs}, 4*per/h.NHead, 4*per, 4*per*n, 4*off)
	}
	g.Expand(res) // before what reads the cells
	return part(perQ, 0), part(perR, perQ*rows), true
}

// FusedRouter is SinkRouter in one launch, on devices that have a kernel for it. The
// experts come best first, of equal choices the lower index.
//
//	logits:  [n_expert+n_shared, n]   F32, contiguous
//	bias:    [n_expert]
//	ids:     [n_used, n]              I32, contiguous
//	weights: [n_used+n_shared, n]     contiguous
//	ok:      false: use SinkRouter
func FusedRouter(g *binding.Graph, logits, bias *binding.Tensor, nUsed int, scale float32) (ids, weights *binding.Tensor, ok bool) {
	if !g.Device().Fuses() {
		return nil, nil, false
	}
	n, used := logits.Dim(1), int64(nUsed)
	all := used + logits.Dim(0) - bias.Dim(0)
	res := g.Fused(binding.FusedRouter, binding.F32, [4]int64{(used + all) * n, 1, 1, 1}, []binding.Arg{binding.Arg(nUsed), binding.FloatArg(scale)}, logits, bias)
	if !g.Supports(res) {
		return nil, nil, false
	}
	ids, weights = choiceOf(g, res, used, all, n)
	return ids, weights, true
}

// choiceOf gives the first two parts of a result.
func choiceOf(g *binding.Graph, res *binding.Tensor, used, all, n int64) (ids, weights *binding.Tensor) {
	ids = g.View(g.Bits(res, binding.I32), [4]int64{used, n, 1, 1}, 4*used, 4*used*n, 4*used*n, 0)
	return ids, g.View(res, [4]int64{all, n, 1, 1}, 4*all, 4*all*n, 4*all*n, 4*used*n)
}

// FusedRouting is the product with the router and FusedRouter of few rows in one
// launch.
//
//	x:       [n_embd, n]                   F32, contiguous; n up to 8
//	router:  [n_embd, n_expert+n_shared]   F32
//	bias:    [n_expert]
//	tickets: [at least 1]                  I32 of persistent memory, zero; the operation leaves zeros
//	logits:  [n_expert+n_shared, n]
//	others:  as those of FusedRouter
func FusedRouting(g *binding.Graph, x, router, bias, tickets *binding.Tensor, nUsed int, scale float32) (logits, ids, weights *binding.Tensor, ok bool) {
	if !g.Device().Fuses() || tickets == nil {
		return nil, nil, nil, false
	}
	n, used, rows := x.Dim(1), int64(nUsed), router.Dim(1)
	all := used + rows - bias.Dim(0)
	res := g.Fused(binding.FusedRouting, binding.F32, [4]int64{(used + all + rows) * n, 1, 1, 1}, []binding.Arg{binding.Arg(nUsed), binding.FloatArg(scale)}, x, router, bias, tickets)
	if !g.Supports(res) {
		return nil, nil, nil, false
	}
	ids, weights = choiceOf(g, res, used, all, n)
	return g.View(res, [4]int64{rows, n, 1, 1}, 4*rows, 4*rows*n, 4*rows*n, 4*(used+all)*n), ids, weights, true
}

// HeadNorm is RMSNorm(x)·w of each head, in a launch that suits short rows where the device has it.
//
//	x:   [head_dim, n_head, n, n_seq]   F32, heads anywhere
//	w:   [head_dim]
//	res: [head_dim, n_head, n, n_seq]   contiguous
func HeadNorm(g *binding.Graph, x, w *binding.Tensor, eps float32) *binding.Tensor {
	if g.Device().Fuses() {
		if y := g.Fused(binding.FusedHeadNorm, binding.F32, x.Shape(), []binding.Arg{binding.FloatArg(eps)}, x, w); g.Supports(y) {
			return y
		}
	}
	return g.RMSNorm(x, w, eps)
}
