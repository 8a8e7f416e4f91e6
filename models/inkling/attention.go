package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
)

// attention is the first branch of layer i, without its short convolution.
//
//	a:   [n_embd, n*seqs]     the normed stream
//	res: [n_embd, n*seqs]
func (st *step) attention(g *binding.Graph, w *layer, i int, a *binding.Tensor) *binding.Tensor {
	at := &op.Attention{Scale: 1 / float32(st.headDimOf(i)), Flash: st.flash(i)}
	var o *binding.Tensor
	if q, r, ok := st.fusedHeads(g, w, i, a); ok {
		at.Q, at.R = q, r
		o = st.attend(g, at, w, i)
	} else {
		q, r, k, v := st.heads(g, w, i, a)
		if at.Q, at.R = q, r; st.sliding[i] && !st.few() {
			o = st.slidingPrefill(g, at, w, i, k, v)
		} else {
			st.writeCells(g, i, k, v)
			o = st.attend(g, at, w, i)
		}
	}
	g.Tap(o, "attn_heads", i)
	return product(g, w.O, o)
}

// heads makes what attention works on; keys and values are in no cell yet.
//
//	a:    [n_embd, n*seqs]               the normed stream
//	q:    [head_dim, n_head, n, seqs]
//	r:    [d_rel, n_head, n, seqs]
//	k, v: [head_dim, n, n_head_kv, seqs]
func (st *step) heads(g *binding.Graph, w *layer, i int, a *binding.Tensor) (q, r, k, v *binding.Tensor) {
	n, seqs, nHead := int64(st.N), int64(st.Seqs), int64(st.nHead)
	dh, hkv, dRel := int64(st.headDimOf(i)), int64(st.nHeadKV[i]), int64(st.dRel)

	qProj, kv, r := projections(g, w, i, a)
	q = op.HeadNorm(g, g.Reshape(qProj, dh, nHead, n, seqs), w.QNorm, st.eps)
	g.Tap(q, "q", i)
	kv = st.conv(g, kv, w.kvConv, st.s.layers[i].kvConv) // before the norm
	k, v = g.Cols(kv, 0, dh*hkv), g.Cols(kv, dh*hkv, dh*hkv)
	g.Tap(k, "k_sconv", i)
	g.Tap(v, "v", i)
	split := func(x *binding.Tensor) *binding.Tensor { // [head_dim, n_head_kv, n, seqs]
		return g.View(x, [4]int64{dh, hkv, n, seqs}, 4*dh, x.Stride(1), n*x.Stride(1), 0)
	}
	k, v = op.HeadNorm(g, split(k), w.KNorm, st.eps), split(v)
	g.Tap(k, "k", i)
	g.Tap(r, "r", i)

	if st.tau != nil && !st.sliding[i] { // content and bias alike
		q = g.Reshape(g.Mul(g.Reshape(q, dh*nHead, n*seqs), st.tau), dh, nHead, n, seqs)
		r = g.Mul(r, st.tau)
	}
	return q, g.Reshape(r, dRel, nHead, n, seqs), g.Permute(k, 0, 2, 1, 3), g.Permute(v, 0, 2, 1, 3)
}

// projections are the products of a layer's attention with its rows.
//
//	a:  [n_embd, n]
//	q:  [head_dim*n_head, n]
//	kv: [2*head_dim*n_head_kv, n]   keys before values
//	r:  [d_rel*n_head, n]
func projections(g *binding.Graph, w *layer, i int, a *binding.Tensor) (q, kv, r *binding.Tensor) {
	if ys, ok := op.DenseProducts(g, a, []*binding.Tensor{w.Q}, []*binding.Tensor{w.K, w.V}, []*binding.Tensor{w.R}); ok {
		return ys[0], ys[1], ys[2]
	}
	k := g.MulMat(w.K, a)
	g.Tap(k, "k_proj", i)
	return g.MulMat(w.Q, a), g.Concat(k, g.MulMat(w.V, a), 0), g.MulMat(w.R, a)
}

// conv is a short convolution over rows of all sequences.
//
//	x:   [channels, n*seqs]
//	res: [channels, n*seqs]
func (st *step) conv(g *binding.Graph, x, w, table *binding.Tensor) *binding.Tensor {
	st.declareConv(g)
	c := x.Dim(0)
	y := op.ShortConv(g, g.Reshape(x, c, int64(st.N), int64(st.Seqs)), w, table, st.convRead, st.convWrite)
	return g.Reshape(y, c, int64(st.N*st.Seqs))
}

// cells is the view of the first n cells of the step's sequences.
//
//	t:   [head_dim, cells, n_head_kv, all sequences]
//	res: [head_dim, n, n_head_kv, seqs]
func (st *step) cells(g *binding.Graph, t *binding.Tensor, n int) *binding.Tensor {
	return g.View(t, [4]int64{t.Dim(0), int64(n), t.Dim(2), int64(st.Seqs)}, t.Stride(1), t.Stride(2), t.Stride(3), int64(st.Lo)*t.Stride(3))
}

// writeCells puts the new rows where the layer's later steps look for them.
//
//	k, v: [head_dim, n, n_head_kv, seqs]
func (st *step) writeCells(g *binding.Graph, i int, k, v *binding.Tensor) {
	lc, n := &st.s.layers[i], st.s.full
	var write, writeT *binding.Tensor
	if st.sliding[i] {
		st.declareRing(g, i)
		n, write, writeT = st.s.ringCells, st.ring.write, st.ring.writeT
	} else {
		st.declareFull(g, i)
		write, writeT = st.full.write, st.full.writeT
	}
	g.Expand(g.SetRows(st.cells(g, lc.k, n), k, write))
	switch {
	case lc.vt == nil:
		g.Expand(g.SetRows(st.cells(g, lc.v, n), v, write))
	case st.few():
		st.writeTransposed(g, lc.vt, v, writeT)
	default:
		st.writeColumns(g, lc.vt, v, st.pos)
	}
}

// attend is attention over cells that hold the new rows: of full layers, and of rings
// if the rows are few, because these overwrite only cells that no query sees any more.
//
//	at: without keys and values
//	res: [head_dim*n_head, n*seqs]
func (st *step) attend(g *binding.Graph, at *op.Attention, w *layer, i int) *binding.Tensor {
	lc, n := &st.s.layers[i], st.nKV
	if st.sliding[i] {
		n = st.s.ringCells
	}
	at.K = st.cells(g, lc.k, n)
	if lc.vt != nil {
		at.VT = st.columns(g, lc.vt, 0, n)
	} else {
		at.V = st.cells(g, lc.v, n)
		if o, ok := st.fusedAttention(g, at, w, i); ok {
			return o
		}
	}
	at.Band = w.band
	if st.sliding[i] {
		st.declareRingKeys(g, i)
		if at.Spans = st.ring.spans; st.spanned(i) {
			return op.BandSpans(g, at)
		}
		return op.BandCells(g, at, w.proj, st.ring.dist, st.ring.mask)
	}
	st.declareFullKeys(g, i)
	switch at.Spans = st.full.spans; {
	case st.spanned(i):
		if !st.few() {
			at.Seen = func(first, n int64) (int64, int64) { return 0, int64(st.pos) + first + n }
		}
		return op.BandSpans(g, at)
	case st.few():
		return op.BandScatter(g, at, w.projRev, st.full.near, st.full.cells, st.farMask(g, i))
	}
	return op.BandWindow(g, at, w.projRev, st.full.mask, int64(st.pos))
}

// columns is the view of n cells of transposed values of the step's sequences.
//
//	vt:  [cells, head_dim, n_head_kv, all sequences]
//	res: [n, head_dim, n_head_kv, seqs]
func (st *step) columns(g *binding.Graph, vt *binding.Tensor, first, n int) *binding.Tensor {
	at := int64(st.Lo)*vt.Stride(3) + int64(first)*vt.Stride(0)
	return g.View(vt, [4]int64{int64(n), vt.Dim(1), vt.Dim(2), int64(st.Seqs)}, vt.Stride(1), vt.Stride(2), vt.Stride(3), at)
}

// writeTransposed puts few new values one by one into their column of every row,
// so that the graph is the same at every position.
//
//	vt:    [cells, head_dim, n_head_kv, all sequences]
//	v:     [head_dim, n, n_head_kv, seqs]   permuted from [head_dim, n_head_kv, n, seqs]
//	cells: from declareTransposed
func (st *step) writeTransposed(g *binding.Graph, vt, v, cells *binding.Tensor) {
	flat := g.Cont(g.Permute(v, 0, 2, 1, 3)) // [head_dim, n_head_kv, n, seqs]
	g.Expand(g.SetRows(g.Reshape(vt, 1, vt.Elems()), g.Reshape(flat, 1, flat.Elems()), cells))
}

// writeColumns puts many new values of one sequence as a block from cell first on.
func (st *step) writeColumns(g *binding.Graph, vt, v *binding.Tensor, first int) {
	g.Expand(g.Cpy(g.Permute(v, 1, 0, 2, 3), st.columns(g, vt, first, int(v.Dim(1)))))
}

// slidingPrefill attends with many rows beside the ring, where they would overwrite
// what they see, and writes them afterwards.
func (st *step) slidingPrefill(g *binding.Graph, at *op.Attention, w *layer, i int, k, v *binding.Tensor) *binding.Tensor {
	lc := &st.s.layers[i]
	kCells := st.cells(g, lc.k, st.s.ringCells)
	st.declareRing(g, i)
	o, ok := st.fusedPrefill(g, at, w, i, k, v)
	if !ok {
		st.declareRingKeys(g, i)
		pad := st.windowPad(i)
		at.K = st.windowed(g, kCells, k, pad)
		if lc.vt != nil {
			at.VT = st.windowedColumns(g, lc.vt, v, pad)
		} else {
			at.V = st.windowed(g, st.cells(g, lc.v, st.s.ringCells), v, pad)
		}
		if at.Spans, at.Band = st.ring.spans, w.band; st.spanned(i) {
			before := int64(st.slidingWindow - 1)
			at.Seen = func(first, n int64) (int64, int64) { return int64(pad) + first, before + n }
			o = op.BandSpans(g, at)
		} else {
			o = op.BandWindow(g, at, w.projRev, st.ring.mask, int64(st.slidingWindow-1))
		}
	}
	g.Expand(o)
	last := st.ring.write.Dim(0)
	g.Expand(g.SetRows(kCells, g.Rows(k, k.Dim(1)-last, last), st.ring.write))
	v = g.Rows(v, v.Dim(1)-last, last)
	if lc.vt == nil {
		g.Expand(g.SetRows(st.cells(g, lc.v, st.s.ringCells), v, st.ring.write))
		return o
	}
	from := int64(0)
	for _, s := range st.segments(st.pos+st.N-int(last), int(last)) {
		st.writeColumns(g, lc.vt, g.Rows(v, from, int64(s.n)), s.first)
		from += int64(s.n)
	}
	return o
}

// segment is a run of neighbouring cells.
type segment struct{ first, n int }

// segments are the cells of n positions from pos on in a ring. Positions before 0
// have cells too, which nobody looks at.
func (st *step) segments(pos, n int) []segment {
	R := st.s.ring
	first := ((pos % R) + R) % R
	if first+n <= R {
		return []segment{{first, n}}
	}
	return []segment{{first, R - first}, {0, first + n - R}}
}

// windowedColumns is windowed for transposed values.
//
//	vt:  [ringCells, head_dim, n_head_kv, all sequences]
//	v:   [head_dim, n, n_head_kv]
//	res: [pad+W-1+n, head_dim, n_head_kv]   F32
func (st *step) windowedColumns(g *binding.Graph, vt, v *binding.Tensor, pad int) *binding.Tensor {
	x := g.Permute(v, 1, 0, 2, 3) // [n, head_dim, n_head_kv]
	if t := vt.Type(); t != binding.F32 {
		x = g.Cast(g.Cast(x, t), binding.F32)
	} else {
		x = g.Cont(x)
	}
	var pieces []segment
	if pad > 0 {
		pieces = append(pieces, segment{0, pad}) // any
	}
	if before := st.slidingWindow - 1; before > 0 {
		pieces = append(pieces, st.segments(st.pos-before, before)...)
	}
	var past *binding.Tensor
	for _, s := range pieces {
		if part := g.Cast(st.columns(g, vt, s.first, s.n), binding.F32); past == nil {
			past = part
		} else {
			past = g.Concat(past, part, 0)
		}
	}
	if past == nil {
		return x
	}
	return g.Concat(past, x, 0)
}

// windowed joins the window before the first row with the new rows, rounded as
// the cache will round them, so that the result does not depend on how a
// prompt is cut into steps. pad cells that nobody looks at come first.
//
//	cells: [head_dim, ringCells, n_head_kv]
//	x:     [head_dim, n, n_head_kv]
//	res:   [head_dim, pad+W-1+n, n_head_kv]   F32
func (st *step) windowed(g *binding.Graph, cells, x *binding.Tensor, pad int) *binding.Tensor {
	x = g.Cont(x)
	if t := cells.Type(); t != binding.F32 {
		x = g.Cast(g.Cast(x, t), binding.F32)
	}
	gather := st.ring.gather[pad]
	if gather == nil {
		return x
	}
	return g.Concat(g.GetRows(cells, gather), x, 1)
}
