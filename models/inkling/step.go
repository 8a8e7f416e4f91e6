package inkling

import (
	"math"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// shape is what two steps must share to share a graph.
type shape struct {
	cache uint64
	rows  layers.Rows
	nKV   int // cells of full layers that the step looks at
	pos   int // of the first row, if there are more than few: then cells are taken relative to it, and there is one sequence
}

// few reports whether the step has the forms whose graph is the same at every position.
func (sh shape) few() bool { return sh.rows.N <= few }

// shapeOf finds the shape of a step; the batches have the same number of rows.
func shapeOf(s *cache, bs []models.Batch, out models.Outputs) shape {
	sh := shape{cache: s.id, rows: layers.RowsOf(bs, out)}
	end := 0
	for _, b := range bs {
		end = max(end, s.seqs[b.Seq].pos+len(b.Tokens))
	}
	sh.nKV = roundUp(end+1, cellPad)
	if !sh.few() {
		sh.pos = s.seqs[bs[0].Seq].pos
	}
	return sh
}

// step holds the inputs of a graph. Rows of idle sequences compute something
// that nobody reads and that is written nowhere anybody looks.
type step struct {
	*config
	*layers.Inputs
	shape
	s *cache

	tau       *binding.Tensor // [1, N*Seqs] F32, with log scaling only: from scaling
	first     *binding.Tensor // [Seqs] I32: the position of each sequence's first row, -1 if it is idle; for fused operations only
	convRead  *binding.Tensor // [(K-1)*Seqs] I32; of few rows [(K-1+N)*Seqs]
	convWrite *binding.Tensor // [min(N, conv)*Seqs] I64

	full fullInputs
	ring ringInputs

	fills []func(lanes []layers.Lane)
}

// fullInputs describe the cells of layers without window.
type fullInputs struct {
	write  *binding.Tensor // [N, 1, Seqs] I64: the cells of the new rows
	writeT *binding.Tensor // [head_dim*n_head_kv*N*Seqs] I64: the same for each value, if they are kept transposed
	// Few rows: BandScatter.
	near  *binding.Tensor // from NearMask
	cells *binding.Tensor // [E+N-1, 1, n_head_kv*Seqs] I64
	base  *binding.Tensor // [nKV, 1, N', Seqs] F32, of which far is made
	far   map[farKey]*binding.Tensor
	// Many rows: BandWindow.
	mask *binding.Tensor // [nKV, N] F32
	// In place of these: BandSpans.
	spans *binding.Tensor // from declareSpans
}

// farKey tells the masks of BandScatter apart. They are overwritten, so each device
// has one of its own.
type farKey struct {
	on    *binding.Backend
	flash bool
}

var negInf = float32(math.Inf(-1))

func maskValue(visible bool) float32 {
	if visible {
		return 0
	}
	return negInf
}

// newStep declares the inputs of a step in g that every layer reads. Those of the
// compositions are declared when a layer takes one: an input that nothing reads has no
// memory, and its upload would cost as much as another's.
func newStep(g *binding.Graph, c *config, s *cache, sh shape) *step {
	st := &step{config: c, Inputs: layers.NewInputs(g, sh.rows, c.embd), shape: sh, s: s}
	st.declareFirst(g)
	return st
}

// flash reports whether layer i takes ggml's fused kernel. CUDA's reads whole tiles of
// mask rows, and the mask of a ring has no more rows than there are queries.
func (st *step) flash(i int) bool {
	lc := &st.s.layers[i]
	return st.few() && lc.flash && lc.vt == nil && (!st.sliding[i] || st.on(i).Device().IsCPU())
}

// fill runs f before every computation.
func (st *step) fill(f func(lanes []layers.Lane)) { st.fills = append(st.fills, f) }

// filler returns the function that uploads the inputs.
func (st *step) filler() func(bs []models.Batch) {
	return func(bs []models.Batch) {
		lanes := st.Fill(bs, st.s)
		for _, f := range st.fills {
			f(lanes)
		}
	}
}

// layerOf gives a layer of the kind, if there is one; all of one kind are alike.
func (st *step) layerOf(sliding bool) (layer int, ok bool) {
	for i, s := range st.sliding {
		if s == sliding {
			return i, true
		}
	}
	return 0, false
}

// scaling declares the scale of queries by position, which is that of the
// cache's row and shift(lane) more.
func (st *step) scaling(g *binding.Graph, shift func(lane int) int) *binding.Tensor {
	if st.logFloor == 0 {
		return nil
	}
	n := st.N
	in := g.Input("tau", binding.F32, 1, int64(n*st.Seqs))
	tau := make([]float32, n*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			for r := range n {
				tau[i*n+r] = st.config.tau(l.Pos + r + shift(i))
			}
		}
		in.SetFloats(tau)
	})
	return in
}

// declareFirst declares what fused operations derive all cells from.
func (st *step) declareFirst(g *binding.Graph) {
	if !g.Device().Fuses() {
		return
	}
	st.first = g.Input("first", binding.I32, int64(st.Seqs))
	g.Expand(st.first) // has memory whether a layer reads it or not
	first := make([]int32, st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			first[i] = -1
			if l.Batch != nil {
				first[i] = int32(l.Pos)
			}
		}
		st.first.SetInt32s(first)
	})
}

// declareConv declares where convolutions read the inputs before the first row
// and keep the last new ones, unless that was done.
func (st *step) declareConv(g *binding.Graph) {
	if st.convRead != nil {
		return
	}
	past, m, size := st.shortconvKernel-1, min(st.N, st.s.conv), st.s.conv
	back := past
	if st.few() {
		back += st.N
	}
	st.convRead = g.Input("conv.read", binding.I32, int64(back*st.Seqs))
	st.convWrite = g.Input("conv.write", binding.I64, int64(m*st.Seqs))
	read, write := make([]int32, back*st.Seqs), make([]int64, m*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			base := (st.Lo + i) * st.s.convRows
			for j := range back {
				read[i*back+j] = int32(base + size) // the zero row
				if p := l.Pos - past + j; p >= 0 && l.Batch != nil {
					read[i*back+j] = int32(base + p%size)
				}
			}
			for j := range m {
				write[i*m+j] = int64(base + size + 1) // the unread row
				if l.Batch != nil {
					write[i*m+j] = int64(base + (l.Pos+st.N-m+j)%size)
				}
			}
		}
		st.convRead.SetInt32s(read)
		st.convWrite.SetInt64s(write)
	})
}

// declareFull declares where the new keys and values of layers without window go, unless
// that was done. layer is one of them.
func (st *step) declareFull(g *binding.Graph, layer int) {
	f := &st.full
	if f.write != nil {
		return
	}
	n := st.N
	f.write = g.Input("full.write", binding.I64, int64(n), 1, int64(st.Seqs))
	write := make([]int64, n*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			for r := range n {
				write[i*n+r] = int64(st.s.full - 1)
				if l.Batch != nil {
					write[i*n+r] = int64(l.Pos + r)
				}
			}
		}
		f.write.SetInt64s(write)
	})
	if st.few() {
		f.writeT = st.declareTransposed(g, false, st.s.full, func(l layers.Lane, r int) int {
			if l.Batch == nil {
				return st.s.full - 1
			}
			return l.Pos + r
		})
	}
}

// declareFullKeys declares which of their keys each row sees, unless that was done.
func (st *step) declareFullKeys(g *binding.Graph, layer int) {
	f := &st.full
	g.On(nil) // what is made of them is for layers of all devices
	defer g.On(st.on(layer))
	switch {
	case st.spanned(layer):
		if f.spans == nil {
			f.spans = st.declareSpans(g, "full.spans", st.relExtent, fullSpan)
		}
	case f.base != nil || f.mask != nil:
	case st.few():
		st.declareScatter(g, layer)
	default:
		st.declareMask(g)
	}
}

// declareMask declares what each of many rows sees of the cells.
func (st *step) declareMask(g *binding.Graph) {
	f, n := &st.full, st.N
	f.mask = g.Input("full.mask", binding.F32, int64(st.nKV), int64(n))
	mask := make([]float32, st.nKV*n)
	for r := range n { // relative to pos, which is part of the shape
		for j := range st.nKV {
			mask[r*st.nKV+j] = maskValue(j <= st.pos+r)
		}
	}
	st.fill(func([]layers.Lane) { f.mask.SetFloats(mask) })
}

// declareTransposed: value d of kv head h in cell c of sequence s is element
// c + cells·(d + head_dim·(h + n_head_kv·s)). It declares nothing unless layers of
// the kind keep values so; cell is where row r of a lane belongs.
func (st *step) declareTransposed(g *binding.Graph, sliding bool, cells int, cell func(l layers.Lane, r int) int) *binding.Tensor {
	at := slices.IndexFunc(st.s.layers, func(l layerCache) bool { return l.sliding == sliding && l.vt != nil })
	if at < 0 {
		return nil
	}
	per, n := st.headDimOf(at)*st.nHeadKV[at], st.N
	in := g.Input("values.write", binding.I64, int64(per*n*st.Seqs))
	ids := make([]int64, per*n*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			base := int64(cells) * int64(per) * int64(st.Lo+i)
			for r := range n {
				first := base + int64(cell(l, r))
				for e := range per {
					ids[(i*n+r)*per+e] = first + int64(cells)*int64(e)
				}
			}
		}
		in.SetInt64s(ids)
	})
	return in
}

func (st *step) declareScatter(g *binding.Graph, layer int) {
	f := &st.full
	E, n, seqs, hkv := st.relExtent, st.N, st.Seqs, st.nHeadKV[layer]
	P := E + n - 1
	nearBase := g.Input("full.near", binding.F32, int64(P), int64(n), 1, int64(seqs))
	f.cells = g.Input("full.cells", binding.I64, int64(P), 1, int64(hkv*seqs))
	rows := n // of the mask: those behind the queries stay -inf
	for i, sliding := range st.sliding {
		if !sliding {
			rows = max(rows, st.queryRows(i))
		}
	}
	f.base = g.Input("full.base", binding.F32, int64(st.nKV), 1, int64(rows), int64(seqs))
	near, cells, far := make([]float32, P*n*seqs), make([]int64, P*hkv*seqs), make([]float32, st.nKV*rows*seqs)
	for i := range far {
		far[i] = negInf
	}
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			one := cells[i*hkv*P : (i+1)*hkv*P]
			for col := range P {
				j := l.Pos - E + 1 + col
				if one[col] = int64(j); j < 0 || l.Batch == nil {
					one[col] = int64(st.nKV - 1) // shapeOf leaves it free
				}
				for r := range n {
					near[(i*n+r)*P+col] = maskValue(l.Batch != nil && j >= 0 && j <= l.Pos+r)
				}
			}
			for h := 1; h < hkv; h++ {
				copy(one[h*P:], one[:P])
			}
			for r := range n {
				for j := range st.nKV {
					far[(i*rows+r)*st.nKV+j] = maskValue(j <= l.Pos+r) // an idle one looks at its first cell
				}
			}
		}
		nearBase.SetFloats(near)
		f.cells.SetInt64s(cells)
		f.base.SetFloats(far)
	})
	f.near, f.far = op.NearMask(g, nearBase, int64(hkv)), map[farKey]*binding.Tensor{}
}

// farMask is the mask that full layer i overwrites: the one of its device.
func (st *step) farMask(g *binding.Graph, i int) *binding.Tensor {
	key := farKey{st.on(i), st.flash(i)}
	m, ok := st.full.far[key]
	if !ok {
		base := st.full.base
		if key.flash {
			base = g.Cast(base, binding.F16)
		}
		hkv := st.nHeadKV[i]
		m = op.FarMask(g, base, int64(st.nHead/hkv), int64(hkv))
		st.full.far[key] = m
	}
	return m
}
