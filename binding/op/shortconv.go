package op

import "github.com/inkling-go/inkling/binding"

// ShortConv adds to each channel a causal convolution of its own past,
// y[c, t] = x[c, t] + Σ_j w[j, c]·x[c, t-(K-1)+j].
//
// The inputs are kept as rows of a table, a ring for each sequence: step t is
// written to the row that write names, and the K-1 rows before the first one
// are read from where read says, an always zero row standing for what was
// before the beginning. Nothing is shifted, so that going back some steps needs
// no more than other row numbers.
//
//	x:     [channels, n, n_seq]       F32, contiguous
//	w:     [K, channels]              F32; w[K-1] multiplies the current row
//	table: [channels, rows]           F32, persistent; read, then written
//	read:  [(K-1)*n_seq]              I32
//	write: [m*n_seq], m <= n          I64; the last m steps of each sequence are kept
//	res:   [channels, n, n_seq]
//
// Source: the Inkling layer's "short convolution with inner residual" (InklingShortConv of transformers 5.17).
func ShortConv(g *binding.Graph, x, w, table, read, write *binding.Tensor) *binding.Tensor {
	channels, n, seqs := x.Dim(0), x.Dim(1), x.Dim(2)
	past := w.Dim(0) - 1
	before := g.Reshape(g.GetRows(table, read), channels, past, seqs)
	sx := g.Cont(g.Transpose(g.Concat(before, x, 1))) // [K-1+n, channels, n_seq]
	y := g.Add(g.SSMConv(sx, w), x)
	g.Expand(y)
	m := write.Dim(0) / seqs
	last := g.View(x, [4]int64{channels, m, seqs, 1}, x.Stride(1), x.Stride(2), x.Stride(3), (n-m)*x.Stride(1))
	if m < n && seqs > 1 {
		last = g.Cont(last)
	}
	if seqs > 1 {
		last = g.Reshape(last, channels, m*seqs)
	}
	g.Expand(g.SetRows(table, last, write))
	return y
}
