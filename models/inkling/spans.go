package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models/layers"
)

// spanned reports whether layer i takes op.BandSpans: on the CPU, unless the fused
// kernel is the form of choice.
func (st *step) spanned(i int) bool { return st.on(i).Device().IsCPU() && !st.flash(i) }

// span is a run of cells: the first, how many, and how far the first's position is behind the query.
type span struct{ first, n, distance int }

// declareSpans declares the cells that each row sees; of gives those of row r of a
// sequence whose first row stands at pos.
//
//	res: [3, 2, N, Seqs]   I32
func (st *step) declareSpans(g *binding.Graph, name string, extent int, of func(pos, r int) [2]span) *binding.Tensor {
	in := g.Input(name, binding.I32, 3, 2, int64(st.N), int64(st.Seqs))
	all := make([]int32, 0, 6*st.N*st.Seqs)
	st.fill(func(lanes []layers.Lane) {
		all = all[:0]
		for _, l := range lanes {
			for r := range st.N {
				seen := [2]span{{0, 1, extent}} // an idle one looks at its first cell
				if l.Batch != nil {
					seen = of(l.Pos, r)
				}
				for _, s := range seen {
					all = append(all, int32(s.first), int32(s.n), int32(s.distance))
				}
			}
		}
		in.SetInt32s(all)
	})
	return in
}

// fullSpan: cell = position.
func fullSpan(pos, r int) [2]span { return [2]span{{0, pos + r + 1, pos + r}} }

// windowSpan: column c of the keys stands at position pos-(W-1)-pad+c.
func (st *step) windowSpan(pad int) func(pos, r int) [2]span {
	return func(pos, r int) [2]span {
		before := st.slidingWindow - 1
		first := max(r, before-pos)
		return [2]span{{pad + first, before + r + 1 - first, before + r - first}}
	}
}

// ringSpan: position p lies in cell p mod ring.
func (st *step) ringSpan(pos, r int) [2]span {
	R, last := st.s.ring, pos+r
	first := max(0, last-st.slidingWindow+1)
	if first/R == last/R {
		return [2]span{{first % R, last - first + 1, last - first}}
	}
	return [2]span{{0, last%R + 1, last % R}, {first % R, R - first%R, last - first}}
}
