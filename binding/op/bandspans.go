package op

import "github.com/inkling-go/inkling/binding"

// maxSpanScores is the size in bytes that a score matrix of BandSpans is cut to, so
// that it stays in the cache between the products and the softmax, unless fewer than
// minSpanQueries would be left, for which keys and values are read once. More than
// maxSpanQueries see many keys between them that each alone does not.
const (
	maxSpanScores  = 16 << 20
	minSpanQueries = 32
	maxSpanQueries = 128
)

// SpanPad is what ggml's kernels for blocks of products want the number of columns to
// be a multiple of.
const SpanPad = 32

// spanPlan says how BandSpans cuts the work of one sequence: see windowPlan.
func spanPlan(dh, nHead, nHeadKV, nQ, nKV int64, transposed bool) (perHead bool, block int64) {
	if perHead = !transposed && nHeadKV > 1 && 4*dh*nKV*nHeadKV > maxValues; perHead {
		nHead /= nHeadKV
	}
	perQuery := 4 * nKV * nHead
	return perHead, max(1, min(nQ, maxSpanQueries, max(minSpanQueries, maxSpanScores/perQuery), maxScores/perQuery))
}

// BandSpansBlocks is the number of score matrices that BandSpans makes at most.
func BandSpansBlocks(dh, nHead, nHeadKV, nQ, nKV int64) int64 {
	most := int64(0)
	for _, transposed := range []bool{false, true} {
		perHead, block := spanPlan(dh, nHead, nHeadKV, nQ, nKV, transposed)
		n := (nQ + block - 1) / block
		if perHead {
			n *= nHeadKV
		}
		most = max(most, n)
	}
	return most
}

// BandSpans attends on the CPU, with any number of queries over keys that each query
// sees as one or two runs of cells: a window of many queries, a full cache and a
// ring alike.
//
//	res: [head_dim*n_head, n_q*n_seq]
func BandSpans(g *binding.Graph, a *Attention) *binding.Tensor {
	nQ, hkv := a.Q.Dim(2), a.K.Dim(2)
	perHead, block := spanPlan(a.Q.Dim(0), a.Q.Dim(1), hkv, nQ, a.K.Dim(1), a.VT != nil)
	if a.Q.Dim(3) > 1 { // few queries of each
		perHead, block = false, nQ
	}
	if a.Block > 0 {
		block = a.Block
	}
	if !perHead {
		return bandSpans(g, a, block)
	}
	var out *binding.Tensor // [head_dim*G*(h+1), n_q]
	for h := range hkv {
		if o := bandSpans(g, a.head(g, h), block); out == nil {
			out = o
		} else {
			out = g.Concat(out, o, 0)
		}
	}
	return out
}

// bandSpans is BandSpans with block queries at a time; of several sequences all.
func bandSpans(g *binding.Graph, a *Attention, block int64) *binding.Tensor {
	dh, nHead, nQ, seqs := a.Q.Dim(0), a.Q.Dim(1), a.Q.Dim(2), a.Q.Dim(3)
	nKV, hkv, G := a.K.Dim(1), a.K.Dim(2), a.groups()
	hs := hkv * seqs
	allVT := a.transposedValues(g)
	p := binding.F32
	if allVT.Type() == binding.F16 {
		p = binding.F16 // what the product would round to
	}
	queries := func(x *binding.Tensor, i, n int64) *binding.Tensor { // of a tensor with queries in dimension 2
		if n == nQ {
			return x
		}
		return g.View(x, [4]int64{x.Dim(0), x.Dim(1), n, x.Dim(3)}, x.Stride(1), x.Stride(2), x.Stride(3), i*x.Stride(2))
	}
	var out *binding.Tensor
	for i := int64(0); i < nQ; i += block {
		n := min(block, nQ-i)
		first, count := a.columns(i, n)
		k := g.View(a.K, [4]int64{dh, count, 1, hs}, a.K.Stride(1), a.K.Stride(2), a.K.Stride(2), first*a.K.Stride(1))
		vt := allVT
		if count < nKV {
			vt = g.View(vt, [4]int64{count, dh, 1, hs}, vt.Stride(1), vt.Stride(2), vt.Stride(3), first*vt.Stride(0))
		}
		q := fold(g, queries(a.Q, i, n), G) // [dh, G*n, 1, n_head_kv*n_seq]
		scores := g.Reshape(g.MulMatF32(k, q), count, G, n, hs)
		probs := g.BandSoftMax(scores, queries(a.R, i, n), a.Band, queries(a.Spans, i, n), p, a.Scale, first)
		o := g.MulMatF32(vt, g.Reshape(probs, count, G*n, 1, hs)) // [dh, G*n, 1, n_head_kv*n_seq]
		if n > 1 {
			o = g.Cont(g.Permute(g.Reshape(o, dh*G, n, hkv, seqs), 0, 2, 1, 3)) // [dh*G, n_head_kv, n, n_seq]
		}
		o = g.Reshape(o, dh*nHead, n*seqs)
		g.Expand(o) // before the next block's scores take memory of their own
		if out == nil {
			out = o
		} else {
			out = g.Concat(out, o, 1)
		}
	}
	return out
}

// columns are those that n queries from the i-th on look at: what they see, with others
// beside it up to multiples of SpanPad.
func (a *Attention) columns(i, n int64) (first, count int64) {
	all := a.K.Dim(1)
	if a.Seen == nil {
		return 0, all
	}
	first, count = a.Seen(i, n)
	end := min(all, (first+count+SpanPad-1)/SpanPad*SpanPad)
	first = max(0, first) / SpanPad * SpanPad
	return first, end - first
}
