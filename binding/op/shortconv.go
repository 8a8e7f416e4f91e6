package op

import "github.com/inkling-go/inkling/binding"

// ShortConv is a causal convolution of each channel with its own past,
// y[c, t] = Σ_j w[j, c]·x[c, t-(K-1)+j]. The layer's inner residual is 1 more in
// w[K-1].
//
// The inputs are kept as rows of a table, a ring for each sequence: step t is
// written to the row that write names, and the K-1 rows before the first one
// are read from where read says, an always zero row standing for what was
// before the beginning. Nothing is shifted, so that going back some steps needs
// no more than other row numbers. Few steps are written first and read back with
// those before them, which spares joining the two.
//
//	x:     [channels, n, n_seq]       F32, contiguous
//	w:     [K, channels]              F32; w[K-1] multiplies the current row
//	table: [channels, rows]           F32, persistent; read, then written
//	read:  [(K-1)*n_seq]              I32; or [(K-1+n)*n_seq], with the new rows behind those before, if m = n
//	write: [m*n_seq], m <= n          I64; the last m steps of each sequence are kept
//	res:   [channels, n, n_seq]
//
// Source: the Inkling layer's "short convolution with inner residual" (InklingShortConv of transformers 5.17).
//
// On the CPU it is one operation of our own, elsewhere a composition.
func ShortConv(g *binding.Graph, x, w, table, read, write *binding.Tensor) *binding.Tensor {
	if g.Device().IsCPU() && w.Dim(0) <= binding.MaxTableKernel {
		y := g.TableConv(x, w, table, read, write)
		g.Expand(y) // the table is written when it is computed
		return y
	}
	return composedConv(g, x, w, table, read, write)
}

// composedConv is ShortConv of ggml's operations.
func composedConv(g *binding.Graph, x, w, table, read, write *binding.Tensor) *binding.Tensor {
	channels, n, seqs := x.Dim(0), x.Dim(1), x.Dim(2)
	past := w.Dim(0) - 1
	if back := (past + n) * seqs; read.Dim(0) == back {
		g.Expand(g.SetRows(table, g.Reshape(x, channels, n*seqs), write))
		return causal(g, g.Reshape(g.GetRows(table, read), channels, past+n, seqs), w)
	}
	before := g.Reshape(g.GetRows(table, read), channels, past, seqs)
	y := causal(g, g.Concat(before, x, 1), w)
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

// causal is Σ_j w[j, c]·rows[c, t+j]: one node where the device has a kernel for
// these sizes, else a product for each j.
//
//	rows: [channels, K-1+n, n_seq]   contiguous
//	w:    [K, channels]
//	res:  [channels, n, n_seq]
func causal(g *binding.Graph, rows, w *binding.Tensor) *binding.Tensor {
	channels, k, seqs := w.Dim(1), w.Dim(0), rows.Dim(2)
	if y := g.SSMConv(g.Cont(g.Transpose(rows)), w); g.Supports(y) {
		return y
	}
	n := rows.Dim(1) - (k - 1)
	wt := g.Cont(g.Transpose(w)) // [channels, K]
	var sum *binding.Tensor
	for j := range k {
		part := g.Mul(g.View(rows, [4]int64{channels, n, seqs, 1}, rows.Stride(1), rows.Stride(2), rows.Stride(3), j*rows.Stride(1)), g.Rows(wt, j, 1))
		if sum == nil {
			sum = part
		} else {
			sum = g.Add(sum, part)
		}
	}
	return sum
}
