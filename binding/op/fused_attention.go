package op

import "github.com/inkling-go/inkling/binding"

// Cells say where the keys of fused attention lie and which of them a query sees.
type Cells struct {
	Extent int // distances that have a bias
	Window int // distances that are seen; 0: all
	Ring   int // position p is in cell p mod Ring; 0: in cell p
}

// FusedAttention attends with up to 16 queries of each sequence over cells of its
// own, a full cache or a ring, in one launch, on devices that have a kernel for it.
// Neither mask nor distances are uploaded: all follows from the positions. It does
// what BandScatter and BandCells do, but scores and bias are F32 whatever K's type.
//
//	a:       Q, R, K, V, Scale; R is [d_rel, n_head, n_q, n_seq], d_rel a multiple of 4 and up to 16
//	proj:    [d_rel, >= E]     F32, in the order of distances
//	first:   [n_seq]           I32, the position of each sequence's first query; -1: it is idle, its result is 0
//	tickets: [2*n_head*n_seq]  I32 of persistent memory, zero; the operation leaves zeros
//	res:     [head_dim*n_head, n_q*n_seq]
//	ok:      false: use one of the forms above
//
// The cells of the queries' own positions must have been written. A ring holds the
// window of each query: Window+n_q-1 <= Ring.
func FusedAttention(g *binding.Graph, a *Attention, proj, first, tickets *binding.Tensor, c Cells) (res *binding.Tensor, ok bool) {
	if !g.Device().Fuses() {
		return nil, false
	}
	args := []binding.Arg{binding.FloatArg(a.Scale), binding.Arg(c.Ring), binding.Arg(c.Window), binding.Arg(c.Extent)}
	res = g.Fused(binding.FusedBandAttention, binding.F32, a.resultShape(), args, a.Q, a.R, proj, a.K, a.V, first, tickets)
	return res, g.Supports(res)
}

// Fresh are keys and values of the queries' own positions that are in no cell yet.
type Fresh struct {
	K, V *binding.Tensor // [head_dim, n_q, n_head_kv]   of the cells' type; rows contiguous
}

// FusedPrefill attends with many queries of one sequence, on devices that have a
// kernel for it. It does what BandWindow does without a score, a bias or a mask in
// memory. Products are of F16 values, as those of flash attention are.
//
//	a:     Q, R, K, V, Scale; R is [d_rel, n_head, n_q], d_rel 8 or 16; K and V F16, BF16 or Q8_0
//	proj:  [d_rel, >= E]   F16, in the order of distances
//	pos:   the position of the first query
//	fresh: nil if the queries' own keys are in cells
//	res:   [head_dim*n_head, n_q]
//	ok:    false: use BandWindow
func FusedPrefill(g *binding.Graph, a *Attention, proj *binding.Tensor, pos int, fresh *Fresh, c Cells) (res *binding.Tensor, ok bool) {
	if !g.Device().Fuses() {
		return nil, false
	}
	args := []binding.Arg{binding.FloatArg(a.Scale), binding.Arg(c.Ring), binding.Arg(c.Window), binding.Arg(c.Extent), binding.Arg(pos)}
	src := []*binding.Tensor{a.Q, a.R, proj, a.K, a.V}
	if fresh != nil {
		src = append(src, fresh.K, fresh.V)
	}
	res = g.Fused(binding.FusedBandPrefill, binding.F32, a.resultShape(), args, src...)
	return res, g.Supports(res)
}

func (a *Attention) resultShape() [4]int64 {
	return [4]int64{a.Q.Dim(0) * a.Q.Dim(1), a.Q.Dim(2) * a.Q.Dim(3), 1, 1}
}
