package binding

// #include "cpuops.h"
import "C"

// MaxTableKernel is the longest kernel of TableConv.
const MaxTableKernel = 16

// BandSoftMax is softmax(scores·scale + bias) over the keys that each query sees and 0
// for all others, on the CPU alone. The bias of a query and head at the distance d is
// Σ_m r[m]·band[E-1-d, m], and 0 from d = E on.
//
// A span is a run of columns whose keys lie in the order of their positions: its first
// column, how many there are, and the distance of the first. A query has two, the
// second behind the first; a length of 0 is none. Each is cut at the distance 0. Columns
// are counted from one that is skip columns before those of scores.
//
//	scores: [n_kv, G, n_q, n_head_kv*n_seq]   F32, contiguous; overwritten
//	r:      [d_rel, n_head, n_q, n_seq]   F32, rows contiguous
//	band:   [E, d_rel]                    F32, contiguous
//	spans:  [3, 2, n_q, n_seq]            I32, rows contiguous
//	res:    as scores, of type t: F32 in the same memory, or F16
func (g *Graph) BandSoftMax(scores, r, band, spans *Tensor, t DType, scale float32, skip int64) *Tensor {
	heads, q := scores.Dim(1), scores.Dim(2)
	need(g.Device().IsCPU() && (t == F32 || t == F16) && scores.Type() == F32 && scores.Contiguous() && r.Type() == F32 && contiguousRows(r) &&
		band.Type() == F32 && band.Contiguous() && band.Dim(1) == r.Dim(0) && band.Elems() == band.Dim(0)*band.Dim(1) &&
		r.Dim(1)%heads == 0 && r.Dim(2) == q && r.Dim(1)/heads*r.Dim(3) == scores.Dim(3),
		"band_soft_max", "shapes do not fit", scores, r, band)
	need(spans.Type() == I32 && spans.Dim(0) == 3 && spans.Dim(1) == 2 && spans.Stride(0) == 4 && spans.Stride(1) == 12 &&
		spans.Dim(2) == q && spans.Dim(3) == r.Dim(3), "band_soft_max", "spans do not fit", scores, spans)
	return g.node(C.inkling_band_softmax(g.ctx, C.enum_ggml_type(t), scores.c(), r.c(), band.c(), spans.c(), C.float(scale), C.int32_t(skip)))
}

// TableConv is a causal convolution of each channel with its own past, on the CPU
// alone: y[c, t] = Σ_j w[j, c]·x[c, t-(K-1)+j]. What was before the first step is read
// from rows of a table, which the last m steps are then written to.
//
//	x:     [channels, n, n_seq]      F32, contiguous
//	w:     [K, channels]             F32, contiguous; K <= MaxTableKernel
//	table: [channels, rows]          F32, rows contiguous; read, then written
//	read:  [reads*n_seq]             I32; the first K-1 of each sequence count
//	write: [m*n_seq], m <= n         I64
//	res:   [channels, n, n_seq]
func (g *Graph) TableConv(x, w, table, read, write *Tensor) *Tensor {
	seqs := x.Dim(2)
	need(g.Device().IsCPU() && x.Type() == F32 && x.Contiguous() && x.Dim(3) == 1 && w.Type() == F32 && w.Contiguous() && w.Dim(1) == x.Dim(0) &&
		w.Dim(0) <= MaxTableKernel && table.Type() == F32 && contiguousRows(table) && table.Dim(0) == x.Dim(0),
		"table_conv", "shapes do not fit", x, w, table)
	need(read.Type() == I32 && write.Type() == I64 && read.Dim(0)%seqs == 0 && read.Dim(0)/seqs >= w.Dim(0)-1 &&
		write.Dim(0)%seqs == 0 && write.Dim(0)/seqs <= x.Dim(1), "table_conv", "rows do not fit", x, read, write)
	return g.node(C.inkling_table_conv(g.ctx, x.c(), w.c(), table.c(), read.c(), write.c()))
}
