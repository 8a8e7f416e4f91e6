package inkling

import (
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models"
)

// shape is what two steps must share to share a graph.
type shape struct {
	cache          uint64
	n, media, outs int
	nKV            int // cells of full layers that the step looks at
	pos            int // of the first row, in steps of many rows; they look at cells relative to it
}

func (c *config) shapeOf(s *cache, b *models.Batch) shape {
	n := len(b.Tokens)
	sh := shape{cache: s.id, n: n, media: len(b.MediaRows), outs: len(b.Outputs), nKV: roundUp(s.pos+n+1, cellPad)}
	if n > few {
		sh.pos = s.pos
	}
	return sh
}

// step holds the inputs of a graph.
type step struct {
	*config
	shape
	s     *cache
	flash bool

	ids       *binding.Tensor // [n] I32
	media     *binding.Tensor // [n_embd, media] F32
	mediaRows *binding.Tensor // [media] I64
	outRows   *binding.Tensor // [outs] I32, unless all rows are wanted
	tau       *binding.Tensor // [1, n] F32, with log scaling only

	full fullInputs
	ring ringInputs

	fills []func(b *models.Batch)
}

// fullInputs describe the cells of layers without window.
type fullInputs struct {
	write *binding.Tensor // [n] I64: the cells of the new rows
	// Few rows: BandScatter.
	near  *binding.Tensor // [E+n-1, 1, n] F32
	cells *binding.Tensor // [E+n-1] I64
	base  *binding.Tensor // [nKV, 1, n'] F32
	far   *binding.Tensor // [nKV, G, n', n_head_kv], made from base
	// Many rows: BandWindow.
	mask *binding.Tensor // [nKV, n] F32
}

// ringInputs describe the cells of layers with a window.
type ringInputs struct {
	write *binding.Tensor // [min(n, ring)] I64: the cells of the last new rows
	// Few rows: BandCells.
	dist *binding.Tensor // [ring*n] I32
	// Many rows: the keys of the window before the first row, in order.
	gather *binding.Tensor // [W-1, n_head_kv] I32
	// [ring, 1, n] or [W-1+n, n] F32
	mask *binding.Tensor
}

var negInf = float32(math.Inf(-1))

// newStep declares the inputs of a step in g.
func newStep(g *binding.Graph, c *config, s *cache, sh shape) *step {
	st := &step{config: c, shape: sh, s: s, flash: sh.n <= few && s.kv != binding.F32}
	n := int64(sh.n)
	st.ids = g.Input("ids", binding.I32, n)
	st.fill(func(b *models.Batch) { st.ids.SetInt32s(b.Tokens) })
	if sh.media > 0 {
		st.media = g.Input("media", binding.F32, int64(c.embd), int64(sh.media))
		st.mediaRows = g.Input("media_rows", binding.I64, int64(sh.media))
		rows := make([]int64, sh.media)
		st.fill(func(b *models.Batch) {
			st.media.SetFloats(b.Media)
			for i, r := range b.MediaRows {
				rows[i] = int64(r)
			}
			st.mediaRows.SetInt64s(rows)
		})
	}
	if sh.outs < sh.n {
		st.outRows = g.Input("out_rows", binding.I32, int64(sh.outs))
		st.fill(func(b *models.Batch) { st.outRows.SetInt32s(b.Outputs) })
	}
	st.declareFull(g)
	st.declareRing(g)
	return st
}

func (st *step) fill(f func(*models.Batch)) { st.fills = append(st.fills, f) }

// has reports whether the model has a layer of the kind, and gives one.
func (st *step) has(sliding bool) (layer int, ok bool) {
	for i, s := range st.sliding {
		if s == sliding {
			return i, true
		}
	}
	return 0, false
}

func mask(visible bool) float32 {
	if visible {
		return 0
	}
	return negInf
}

func (st *step) declareFull(g *binding.Graph) {
	i, ok := st.has(false)
	if !ok {
		return
	}
	f := &st.full
	n := st.n
	f.write = g.Input("full.write", binding.I64, int64(n))
	write := make([]int64, n)
	st.fill(func(*models.Batch) {
		for r := range write {
			write[r] = int64(st.s.pos + r)
		}
		f.write.SetInt64s(write)
	})
	if st.logFloor > 0 {
		st.tau = g.Input("tau", binding.F32, 1, int64(n))
		tau := make([]float32, n)
		st.fill(func(*models.Batch) {
			for r := range tau {
				tau[r] = st.config.tau(st.s.pos + r)
			}
			st.tau.SetFloats(tau)
		})
	}
	if n > few {
		f.mask = g.Input("full.mask", binding.F32, int64(st.nKV), int64(n))
		m := make([]float32, st.nKV*n)
		st.fill(func(*models.Batch) {
			for r := range n {
				for j := range st.nKV {
					m[r*st.nKV+j] = mask(j <= st.s.pos+r)
				}
			}
			f.mask.SetFloats(m)
		})
		return
	}
	st.declareScatter(g, i)
}

func (st *step) declareScatter(g *binding.Graph, i int) {
	f := &st.full
	E, n := st.relExtent, st.n
	P := E + n - 1
	f.near = g.Input("full.near", binding.F32, int64(P), 1, int64(n))
	f.cells = g.Input("full.cells", binding.I64, int64(P))
	f.base = g.Input("full.base", binding.F32, int64(st.nKV), 1, int64(n))
	near, cells, base := make([]float32, P*n), make([]int64, P), make([]float32, st.nKV*n)
	st.fill(func(*models.Batch) {
		pos := st.s.pos
		for col := range P {
			j := pos - E + 1 + col
			cells[col] = int64(j)
			if j < 0 {
				cells[col] = int64(st.nKV - 1) // shapeOf leaves it free
			}
			for r := range n {
				near[r*P+col] = mask(j >= 0 && j <= pos+r)
			}
		}
		for r := range n {
			for j := range st.nKV {
				base[r*st.nKV+j] = mask(j <= pos+r)
			}
		}
		f.near.SetFloats(near)
		f.cells.SetInt64s(cells)
		f.base.SetFloats(base)
	})
	b := f.base
	if st.flash {
		b = g.Cast(b, binding.F16)
	}
	f.far = op.FarMask(g, b, int64(st.nHead/st.nHeadKV[i]), int64(st.nHeadKV[i]))
}

func (st *step) declareRing(g *binding.Graph) {
	i, ok := st.has(true)
	if !ok {
		return
	}
	f := &st.ring
	R, n, W := st.s.ring, st.n, st.slidingWindow
	nw := min(n, R)
	f.write = g.Input("ring.write", binding.I64, int64(nw))
	write := make([]int64, nw)
	st.fill(func(*models.Batch) {
		for r := range write {
			write[r] = int64((st.s.pos + n - nw + r) % R)
		}
		f.write.SetInt64s(write)
	})
	if n <= few {
		st.declareCells(g)
		return
	}
	hkv, before := st.nHeadKV[i], W-1
	if before > 0 {
		f.gather = g.Input("ring.gather", binding.I32, int64(before), int64(hkv))
	}
	nKV := before + n
	f.mask = g.Input("ring.mask", binding.F32, int64(nKV), int64(n))
	gather, m := make([]int32, before*hkv), make([]float32, nKV*n)
	st.fill(func(*models.Batch) {
		first := st.s.pos - before // the position of column 0
		for h := range hkv {
			for c := range before {
				gather[h*before+c] = int32(max(first+c, 0) % R)
			}
		}
		for r := range n {
			for c := range nKV {
				d := before + r - c
				m[r*nKV+c] = mask(first+c >= 0 && d >= 0 && d < W)
			}
		}
		if before > 0 {
			f.gather.SetInt32s(gather)
		}
		f.mask.SetFloats(m)
	})
}

func (st *step) declareCells(g *binding.Graph) {
	f := &st.ring
	R, n, W, E := st.s.ring, st.n, st.slidingWindow, st.relExtSWA
	f.dist = g.Input("ring.dist", binding.I32, int64(R*n))
	f.mask = g.Input("ring.mask", binding.F32, int64(R), 1, int64(n))
	dist, m := make([]int32, R*n), make([]float32, R*n)
	st.fill(func(*models.Batch) {
		end := st.s.pos + n
		for c := range R {
			j := (end-1)/R*R + c // the last position that was written to cell c
			if j >= end {
				j -= R
			}
			for r := range n {
				d := st.s.pos + r - j
				m[r*R+c] = mask(j >= 0 && d >= 0 && d < W)
				dist[r*R+c] = int32(E)
				if d >= 0 && d < E {
					dist[r*R+c] = int32(d)
				}
			}
		}
		f.dist.SetInt32s(dist)
		f.mask.SetFloats(m)
	})
}
