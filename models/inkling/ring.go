package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models/layers"
)

// ringInputs describe the cells of layers with a window.
type ringInputs struct {
	write  *binding.Tensor // [min(N, ring), 1, Seqs] I64: the cells of the last new rows
	writeT *binding.Tensor // few rows: as that of full layers
	// Few rows: BandCells.
	dist *binding.Tensor // [ringCells*N*Seqs] I32
	// Many rows: the keys of the window before the first row, in order.
	gather map[int]*binding.Tensor // by pad: [pad+W-1, n_head_kv] I32
	mask   *binding.Tensor         // [ringCells, 1, N*Seqs] or [W-1+N, N] F32
	// In place of dist and mask: BandSpans.
	spans *binding.Tensor // from declareSpans
}

// declareRing declares where the new keys and values of layers with a window go, unless
// that was done. layer is one of them.
func (st *step) declareRing(g *binding.Graph, layer int) {
	f := &st.ring
	if f.write != nil {
		return
	}
	R, n := st.s.ring, st.N
	nw := min(n, R)
	f.write = g.Input("ring.write", binding.I64, int64(nw), 1, int64(st.Seqs))
	write := make([]int64, nw*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			for r := range nw {
				write[i*nw+r] = int64(R) // the cell that nobody sees
				if l.Batch != nil {
					write[i*nw+r] = int64((l.Pos + n - nw + r) % R)
				}
			}
		}
		f.write.SetInt64s(write)
	})
	if st.few() {
		f.writeT = st.declareTransposed(g, true, st.s.ringCells, func(l layers.Lane, r int) int {
			if l.Batch == nil {
				return R
			}
			return (l.Pos + r) % R
		})
	}
}

// declareRingKeys declares which of their keys each row sees, unless that was done.
func (st *step) declareRingKeys(g *binding.Graph, layer int) {
	f := &st.ring
	of := st.ringSpan
	if !st.few() {
		of = st.windowSpan(st.windowPad(layer))
		st.declareGather(g, st.nHeadKV[layer], st.windowPad(layer))
	}
	switch {
	case st.spanned(layer):
		if f.spans == nil {
			f.spans = st.declareSpans(g, "ring.spans", st.relExtSWA, of)
		}
	case f.mask != nil:
	case st.few():
		st.declareCells(g)
	default:
		st.declareWindow(g)
	}
}

// windowPad is how many columns that nobody looks at stand before the window of many
// rows, for the number of all to be what op.BandSpans is fastest with.
func (st *step) windowPad(layer int) int {
	if !st.spanned(layer) {
		return 0
	}
	return roundUp(st.slidingWindow-1+st.N, op.SpanPad) - (st.slidingWindow - 1 + st.N)
}

// declareGather declares the cells of the window before the first of many rows, in
// the order of their positions, behind pad others.
func (st *step) declareGather(g *binding.Graph, hkv, pad int) {
	cols := pad + st.slidingWindow - 1
	if cols == 0 || st.ring.gather[pad] != nil {
		return
	}
	first := st.pos - cols
	in := g.Input("ring.gather", binding.I32, int64(cols), int64(hkv))
	gather := make([]int32, cols*hkv)
	for h := range hkv {
		for c := range cols {
			gather[h*cols+c] = int32(max(first+c, 0) % st.s.ring)
		}
	}
	if st.ring.gather == nil {
		st.ring.gather = map[int]*binding.Tensor{}
	}
	st.ring.gather[pad] = in
	st.fill(func([]layers.Lane) { in.SetInt32s(gather) })
}

// declareWindow: column c of the keys stands at position pos-(W-1)+c.
func (st *step) declareWindow(g *binding.Graph) {
	f := &st.ring
	n, W := st.N, st.slidingWindow
	before := W - 1
	first, nKV := st.pos-before, before+n
	f.mask = g.Input("ring.mask", binding.F32, int64(nKV), int64(n))
	mask := make([]float32, nKV*n)
	for r := range n {
		for c := range nKV {
			d := before + r - c
			mask[r*nKV+c] = maskValue(first+c >= 0 && d >= 0 && d < W)
		}
	}
	st.fill(func([]layers.Lane) { f.mask.SetFloats(mask) })
}

func (st *step) declareCells(g *binding.Graph) {
	f := &st.ring
	R, cells, n, W, E := st.s.ring, st.s.ringCells, st.N, st.slidingWindow, st.relExtSWA
	f.dist = g.Input("ring.dist", binding.I32, int64(cells*n*st.Seqs))
	f.mask = g.Input("ring.mask", binding.F32, int64(cells), 1, int64(n*st.Seqs))
	dist, mask := make([]int32, cells*n*st.Seqs), make([]float32, cells*n*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		for i, l := range lanes {
			end := l.Pos + n
			for c := range cells {
				j := (end-1)/R*R + c // the last position that belongs into cell c
				if j >= end {
					j -= R
				}
				for r := range n {
					at := (i*n+r)*cells + c
					d := l.Pos + r - j
					switch {
					case l.Batch == nil: // an idle one looks at its first cell
						mask[at], d = maskValue(c == 0), E
					case c >= R:
						mask[at], d = negInf, E
					default:
						mask[at] = maskValue(j >= 0 && d >= 0 && d < W)
					}
					if d < 0 || d > E {
						d = E
					}
					dist[at] = int32(d)
				}
			}
		}
		f.dist.SetInt32s(dist)
		f.mask.SetFloats(mask)
	})
}
