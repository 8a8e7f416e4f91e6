package op

import "github.com/inkling-go/inkling/binding"

// Rope2D turns the head vectors of patches by their place in the grid. A head
// is head_dim/2 pairs of neighbours; pair j of the columns' turns by
// col·base^(-4j/head_dim), pair j of the rows' by row·base^(-4j/head_dim).
//
// If interleaved, columns' and rows' pairs alternate in x, the columns' first,
// as in the published weights; else the first half of a head are the columns'
// pairs and the second half the rows'. The result has the second order in
// either case, which makes no difference to products of queries and keys.
//
//	x:    [head_dim, n_head, n]   F32, contiguous rows; head_dim a multiple of 4
//	cols: [n]                     I32
//	rows: [n]                     I32
//	res:  [head_dim, n_head, n]   contiguous
//
// Source: Rope2DPosEmb of MoonViT (Kimi-VL, Kimi-K2.5).
func Rope2D(g *binding.Graph, x, cols, rows *binding.Tensor, base float32, interleaved bool) *binding.Tensor {
	dh, heads, n := x.Dim(0), x.Dim(1), x.Dim(2)
	if interleaved {
		if !x.Contiguous() {
			x = g.Cont(x)
		}
		x = g.Permute(g.Reshape(x, 2, 2, dh/4, heads*n), 0, 2, 1, 3) // [re/im, pair, axis, n_head*n]
		x = g.Reshape(g.Cont(x), dh, heads, n)
	}
	half := dh / 2
	turn := func(first int64, pos *binding.Tensor) *binding.Tensor {
		return g.RopeExt(g.Cols(x, first, half), pos, nil, int(half), binding.RopeNorm, 0, base, 1, 0, 1, 0, 0)
	}
	return g.Concat(turn(0, cols), turn(half, rows), 0)
}
