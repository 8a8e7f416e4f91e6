package op

import "github.com/inkling-go/inkling/binding"

// Banded relative attention: score(i, j) = q_i·k_j·scale + bias(i, d) with the
// distance d = pos_i - pos_j, bias(i, d) = Σ_m r_i[m]·proj[m, d] for 0 <= d < E
// and 0 beyond; masked where d < 0 or outside the window. Each query head has
// a bias of its own; query head h reads kv head h/G, G = n_head/n_head_kv.
//
// Only the band is ever computed: E + n_q - 1 key columns, however long the
// context is. There are three forms, which differ in how the band meets the keys:
//
//	BandWindow   many queries, keys in the order of positions
//	BandScatter  few queries, a full cache: cell = position
//	BandCells    few queries, a ring: each cell has its own distance
//
// The last two have the same graph at every position, so that it can be reused. All
// are compositions of ggml's operations. BandSpans does the same on the CPU, where
// bias, mask and softmax are one operation of our own.
//
// Sources: InklingAttention of transformers 5.17; the relative shift is that of
// Transformer-XL (Dai et al. 2019, appendix B).

// Attention holds the operands that the three forms share. n_kv counts the
// cells that are looked at, visible or not; n_seq sequences attend at once,
// each over cells of its own (BandWindow takes one).
type Attention struct {
	Q, R  *binding.Tensor // [head_dim, n_head, n_q, n_seq], [d_rel, n_head, n_q, n_seq]   F32, contiguous
	K, V  *binding.Tensor // [head_dim, n_kv, n_head_kv, n_seq]   any cache type; rows contiguous
	VT    *binding.Tensor // [n_kv, head_dim, n_head_kv, n_seq]   in place of V; not for the flash form
	Scale float32         // of q·k; the bias is not scaled

	// Flash takes the fused kernel, which rounds the bias to F16. Without it
	// scores are F32 in memory.
	Flash bool

	// Block is the number of queries that BandWindow and BandSpans give one score
	// matrix; 0 takes as many as keep it small.
	Block int64

	// Of BandSpans alone: which keys each query sees and the bias by distance, as
	// Graph.BandSoftMax takes them.
	Spans *binding.Tensor // [3, 2, n_q, n_seq]   I32
	Band  *binding.Tensor // [E, d_rel]           F32

	// Seen, if set, is for many queries of a sequence, whose keys stand in the order
	// of their positions: the run of columns that n queries from the i-th on see
	// between them. The others are left out.
	Seen func(i, n int64) (first, count int64)
}

func (a *Attention) groups() int64 { return a.Q.Dim(1) / a.K.Dim(2) }

// maxScores bounds the bytes of one score matrix of a long prefill, maxValues
// those of the transposed values: beyond them the kv heads are taken one by one
// and the queries in blocks.
const (
	maxScores = 512 << 20
	maxValues = 256 << 20
)

// windowPlan says how BandWindow cuts its work: kv heads one by one or all at
// once, and how many queries at a time.
func windowPlan(dh, nHead, nHeadKV, nQ, nKV int64) (perHead bool, block int64) {
	perHead = nHeadKV > 1 && 4*dh*nKV*nHeadKV > maxValues
	if perHead {
		nHead /= nHeadKV
	}
	return perHead, windowBlock(nQ, nKV, nHead)
}

// windowBlock is the number of queries whose scores stay below maxScores.
func windowBlock(nQ, nKV, nHead int64) int64 { return max(1, min(nQ, maxScores/(4*nKV*nHead))) }

// WindowBlocks is the number of score matrices that nQ queries are cut into.
func WindowBlocks(nQ, nKV, nHead int64) int64 {
	b := windowBlock(nQ, nKV, nHead)
	return (nQ + b - 1) / b
}

// BandWindowBlocks is the number of score matrices that BandWindow makes.
func BandWindowBlocks(dh, nHead, nHeadKV, nQ, nKV int64) int64 {
	perHead, block := windowPlan(dh, nHead, nHeadKV, nQ, nKV)
	n := (nQ + block - 1) / block
	if perHead {
		n *= nHeadKV
	}
	return n
}

// BandWindow attends with many queries over keys that lie in the order of
// their positions.
//
//	projrev: [d_rel, E]        F32, proj reversed: projrev[:, k] = proj[:, E-1-k]
//	mask:    [n_kv, n_q]       F32, 0 or -inf: causal, window, cells without a key
//	first:   the column of the key that stands at the position of the first query
//	res:     [head_dim*n_head, n_q]
func BandWindow(g *binding.Graph, a *Attention, projrev, mask *binding.Tensor, first int64) *binding.Tensor {
	perHead, block := windowPlan(a.Q.Dim(0), a.Q.Dim(1), a.K.Dim(2), a.Q.Dim(2), a.K.Dim(1))
	if a.VT != nil { // nothing has to be transposed
		perHead, block = false, windowBlock(a.Q.Dim(2), a.K.Dim(1), a.Q.Dim(1))
	}
	if a.Block > 0 {
		block = a.Block
	}
	if !perHead {
		return bandWindow(g, a, projrev, mask, first, block)
	}
	var out *binding.Tensor // [head_dim*G*(h+1), n_q]
	for h := range a.K.Dim(2) {
		one := a.head(g, h)
		if o := bandWindow(g, one, projrev, mask, first, block); out == nil {
			out = o
		} else {
			out = g.Concat(out, o, 0)
		}
	}
	return out
}

// head is the part of kv head h and its query heads.
func (a *Attention) head(g *binding.Graph, h int64) *Attention {
	G := a.groups()
	part := func(x *binding.Tensor, from, n, dim int64) *binding.Tensor { // of dimension dim, 1 or 2
		ne := x.Shape()
		ne[dim] = n
		return g.View(x, ne, x.Stride(1), x.Stride(2), x.Stride(3), from*x.Stride(int(dim)))
	}
	return &Attention{
		Q: g.Cont(part(a.Q, h*G, G, 1)), R: g.Cont(part(a.R, h*G, G, 1)),
		K: part(a.K, h, 1, 2), V: part(a.V, h, 1, 2), Scale: a.Scale, Spans: a.Spans, Band: a.Band, Seen: a.Seen,
	}
}

// bandWindow is BandWindow with block queries at a time.
func bandWindow(g *binding.Graph, a *Attention, projrev, mask *binding.Tensor, first, block int64) *binding.Tensor {
	dh, nHead, nQ := a.Q.Dim(0), a.Q.Dim(1), a.Q.Dim(2)
	nKV, nHeadKV, G := a.K.Dim(1), a.K.Dim(2), a.groups()

	k := g.View(a.K, [4]int64{dh, nKV, 1, nHeadKV}, a.K.Stride(1), a.K.Stride(2), a.K.Stride(2), 0)
	vt := a.transposedValues(g)

	// Query rows fastest within a head, so that one mask serves all heads.
	q := g.Cont(g.Permute(g.Reshape(a.Q, dh, G, nHeadKV, nQ), 0, 2, 3, 1)) // [dh, n_q, G, n_head_kv]
	// The bias goes in before the scores are scaled.
	r := g.Scale(a.R, 1/a.Scale)
	r = g.Cont(g.Permute(r, 0, 2, 1, 3)) // [d_rel, n_q, n_head]

	var out *binding.Tensor
	for i := int64(0); i < nQ; i += block {
		n := min(block, nQ-i)
		qi, ri, mi := q, r, mask
		if n < nQ {
			qi = g.Cont(g.Rows(q, i, n))
			ri = g.Cont(g.Rows(r, i, n))
			mi = g.Rows(mask, i, n)
		}
		kq := g.MulMatF32(k, qi) // [n_kv, n, G, n_head_kv]
		band, col := skew(g, projrev, ri, first+i, nKV)
		if band != nil {
			band = g.View(band, [4]int64{band.Dim(0), n, G, nHeadKV}, band.Stride(1), band.Stride(2), G*band.Stride(2), 0)
			near := g.Cols(kq, col, band.Dim(0))
			g.ExpandWrite(g.AddInplace(near, band))
		}
		p := g.SoftMaxExtInplace(kq, mi, a.Scale)
		o := g.MulMatF32(vt, p)              // [dh, n, G, n_head_kv]
		o = g.Cont(g.Permute(o, 0, 3, 1, 2)) // [dh, G, n_head_kv, n]
		o = g.Reshape(o, dh*nHead, n)
		g.Expand(o) // before the next block's scores take memory of their own
		if out == nil {
			out = o
		} else {
			out = g.Concat(out, o, 1)
		}
	}
	return out
}

// skew turns the bias by distance into the bias by key column: row i is moved
// right by i, by reading rows of P elements at a stride of P-1. It returns the
// part that lies within the n_kv columns, and the column where that begins.
//
//	r:   [d_rel, n, n_head]
//	res: [<= E+n-1, n, n_head], overlapping strides; nil if no column is left
func skew(g *binding.Graph, projrev, r *binding.Tensor, first, nKV int64) (band *binding.Tensor, col int64) {
	E, n, nHead := projrev.Dim(1), r.Dim(1), r.Dim(2)
	P := E + n - 1
	col = first - (E - 1)
	clip := max(0, -col)
	col += clip
	width := min(P-clip, nKV-col)
	if width <= 0 {
		return nil, 0
	}
	rel := g.Reshape(g.MulMatF32(projrev, g.Reshape(r, r.Dim(0), n*nHead)), E, n, nHead)
	if n > 1 {
		rel = g.Pad(rel, n-1) // zeros: where a row is read beyond its band, in the pad of the row before or its own
	}
	stride := max(P-1, 1) * 4
	return g.View(rel, [4]int64{width, n, nHead, 1}, stride, P*n*4, P*n*4*nHead, clip*4), col
}

// BandScatter attends with few queries over a cache whose cell is the position.
//
//	projrev: [d_rel, E]                  F32, as for BandWindow
//	near:    [E+n_q-1, 1, n_q, n_head_kv*n_seq]   F32, 0 or -inf, from NearMask; by key column, from the
//	                                     distance E-1 of the first query on
//	cells:   [E+n_q-1, 1, n_head_kv*n_seq]        I64, the cell of each of those columns; a column without
//	                                     a key names a cell that far masks, and near is -inf there
//	far:     [n_kv, G*n_q', n_head_kv, n_seq]     from FarMask, shared by all layers of one kind; overwritten in the band
//	res:     [head_dim*n_head, n_q*n_seq]
func BandScatter(g *binding.Graph, a *Attention, projrev, near, cells, far *binding.Tensor) *binding.Tensor {
	nQ, hs, G := a.Q.Dim(2), a.K.Dim(2)*a.K.Dim(3), a.groups()
	E := projrev.Dim(1)
	P := E + nQ - 1
	r := fold(g, a.R, G) // [d_rel, G*n_q, 1, n_head_kv*n_seq]
	band := g.MulMatF32(projrev, g.Reshape(r, r.Dim(0), G*nQ*hs))
	band = g.Reshape(band, E, G, nQ, hs)
	if nQ > 1 {
		band = g.Pad(band, nQ-1)
		// Row (g, i) is moved right by i: the stride of i is one element short.
		band = g.View(band, [4]int64{P, G, nQ, hs}, 4*P, 4*(G*P-1), 4*G*nQ*P, 0)
	}
	band = g.Add(band, near)
	dst := g.View(far, [4]int64{1, far.Dim(0), G * nQ, hs}, far.Stride(0), far.Stride(1), far.Stride(2), 0)
	g.Expand(g.SetRows(dst, g.Reshape(band, 1, P, G*nQ, hs), cells))
	return attend(g, a, far)
}

// BandCells attends with few queries over cells in any order.
//
//	proj: [d_rel, E+1]               F32, in the order of distances, the last row zero
//	dist: [n_kv*n_q*n_seq]           I32, the distance of each cell from each query; E where it is not within 0 to E-1
//	mask: [n_kv, 1, n_q*n_seq]       F32, 0 or -inf
//	res:  [head_dim*n_head, n_q*n_seq]
func BandCells(g *binding.Graph, a *Attention, proj, dist, mask *binding.Tensor) *binding.Tensor {
	nQ, nHead, nKV, nHeadKV, seqs, G := a.Q.Dim(2), a.Q.Dim(1), a.K.Dim(1), a.K.Dim(2), a.K.Dim(3), a.groups()
	rows := g.Reshape(g.GetRows(proj, dist), proj.Dim(0), nKV, nQ*seqs)
	bias := g.Add(g.MulMatF32(rows, g.Reshape(a.R, a.R.Dim(0), nHead, nQ*seqs)), mask) // [n_kv, n_head, n_q*n_seq]
	if nQ > 1 {
		bias = g.Permute(g.Reshape(bias, nKV*G, nHeadKV, nQ, seqs), 0, 2, 1, 3) // [n_kv*G, n_q, n_head_kv, n_seq]
		if !a.Flash {
			bias = g.Cont(bias)
		}
	}
	if a.Flash {
		bias = g.Cast(bias, binding.F16)
	}
	return attend(g, a, g.Reshape(bias, nKV, G*nQ, nHeadKV, seqs))
}

// FarMask prepares the mask of BandScatter: base for every head.
//
//	base: [n_kv, 1, n_q', n_seq]          F32, or F16 for the flash form; 0 or -inf
//	res:  [n_kv, G*n_q', n_head_kv, n_seq]
//
// The mask has one cell at least that is -inf for all queries. n_q' may exceed
// n_q: CUDA's kernel reads whole tiles of mask rows.
func FarMask(g *binding.Graph, base *binding.Tensor, G, nHeadKV int64) *binding.Tensor {
	n, rows, seqs := base.Dim(0), base.Dim(2), base.Dim(3)
	m := g.Repeat(base, [4]int64{n, G, rows, seqs})
	m = g.Repeat(g.Reshape(m, n, G*rows, 1, seqs), [4]int64{n, G * rows, nHeadKV, seqs})
	g.Expand(m)
	return m
}

// NearMask prepares the other mask of BandScatter.
//
//	base: [E+n_q-1, n_q, 1, n_seq]   F32, 0 or -inf
//	res:  [E+n_q-1, 1, n_q, n_head_kv*n_seq]
func NearMask(g *binding.Graph, base *binding.Tensor, nHeadKV int64) *binding.Tensor {
	P, nQ, seqs := base.Dim(0), base.Dim(1), base.Dim(3)
	return g.Reshape(g.Repeat(base, [4]int64{P, nQ, nHeadKV, seqs}), P, 1, nQ, nHeadKV*seqs)
}

// fold brings the heads of a group and their queries side by side, so that the
// rows of one kv head are one matrix.
//
//	x:   [d, n_head, n_q, n_seq]
//	res: [d, G*n_q, 1, n_head_kv*n_seq]
func fold(g *binding.Graph, x *binding.Tensor, G int64) *binding.Tensor {
	d, nHeadKV, nQ, seqs := x.Dim(0), x.Dim(1)/G, x.Dim(2), x.Dim(3)
	if nQ > 1 {
		x = g.Cont(g.Permute(g.Reshape(x, d*G, nHeadKV, nQ, seqs), 0, 2, 1, 3)) // [d*G, n_q, n_head_kv, n_seq]
	}
	return g.Reshape(x, d, G*nQ, 1, nHeadKV*seqs)
}

// attend is the attention of folded queries.
//
//	mask: [n_kv, G*n_q', n_head_kv, n_seq]     F16 for the flash form, else F32
//	res:  [head_dim*n_head, n_q*n_seq]
func attend(g *binding.Graph, a *Attention, mask *binding.Tensor) *binding.Tensor {
	dh, nHead, nQ := a.Q.Dim(0), a.Q.Dim(1), a.Q.Dim(2)
	nKV, nHeadKV, seqs, G := a.K.Dim(1), a.K.Dim(2), a.K.Dim(3), a.groups()
	hs := nHeadKV * seqs
	q := fold(g, a.Q, G)
	heads := func(x *binding.Tensor) *binding.Tensor { // [dh, n_kv, 1, n_head_kv*n_seq]
		return g.View(x, [4]int64{x.Dim(0), nKV, 1, hs}, x.Stride(1), x.Stride(2), x.Stride(2), 0)
	}
	mask = g.Reshape(mask, nKV, mask.Dim(1), 1, hs)

	var o *binding.Tensor // [dh, G*n_q] for each kv head of each sequence, in memory order
	if a.Flash {
		o = g.FlashAttnExt(q, heads(a.K), flashValues(g, heads(a.V)), mask, a.Scale)
	} else {
		o = g.MulMatF32(a.transposedValues(g), g.SoftMaxExtInplace(g.MulMatF32(heads(a.K), q), mask, a.Scale))
	}
	if nQ > 1 {
		o = g.Cont(g.Permute(g.Reshape(o, dh*G, nQ, nHeadKV, seqs), 0, 2, 1, 3)) // [dh*G, n_head_kv, n_q, n_seq]
	}
	return g.Reshape(o, dh*nHead, nQ*seqs)
}

// transposedValues gives the exact form its second operand.
//
//	res: [n_kv, head_dim, 1, n_head_kv*n_seq]
func (a *Attention) transposedValues(g *binding.Graph) *binding.Tensor {
	nKV, hs := a.K.Dim(1), a.K.Dim(2)*a.K.Dim(3)
	if t := a.VT; t != nil {
		return g.View(t, [4]int64{nKV, t.Dim(1), 1, hs}, t.Stride(1), t.Stride(2), t.Stride(2), 0)
	}
	v := g.View(a.V, [4]int64{a.V.Dim(0), nKV, 1, hs}, a.V.Stride(1), a.V.Stride(2), a.V.Stride(2), 0)
	if v.Type().Quantized() {
		v = g.Cast(v, binding.F32)
	}
	return g.Cont(g.Transpose(v))
}

// flashValues is v in a type that the device's fused kernel adds up in F32.
// ggml's CPU kernel adds F16 values up in F16, where a sum of a few thousand
// probabilities no longer grows.
func flashValues(g *binding.Graph, v *binding.Tensor) *binding.Tensor {
	if v.Type() == binding.F16 && g.Device().IsCPU() {
		return g.Cast(v, binding.F32)
	}
	return v
}
