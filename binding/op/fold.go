package op

import "github.com/inkling-go/inkling/binding"

// Fold moves hw x hw neighbouring pixels, then t neighbouring frames, into the
// channels. The new channel order is (frame, row, column, channel), channel
// fastest. It is an 8-D transpose, done as at most two 4-D permutes.
//
//	x:   [c,         w*h,           T,   n]     F32, contiguous; w*h row by row
//	res: [c*hw*hw*t, (w/hw)*(h/hw), T/t, n]
//
// Source: the fold of the HMLP image tower (seed 000; InklingVisionModel of transformers 5.17).
func Fold(g *binding.Graph, x *binding.Tensor, w, h, t, hw int64) *binding.Tensor {
	c, frames, n := x.Dim(0), x.Dim(2), x.Dim(3)
	if hw > 1 {
		x = g.Reshape(x, c*hw, w/hw, hw, h/hw*frames*n)
		if w > hw { // else the rows of a block are neighbours already
			x = g.Cont(g.Permute(x, 0, 2, 1, 3)) // [c*hw, hw, w/hw, h/hw*T*n]
		}
		c, w, h = c*hw*hw, w/hw, h/hw
	}
	if t > 1 {
		x = g.Reshape(x, c, w*h, t, frames/t*n)
		if w*h > 1 {
			x = g.Cont(g.Permute(x, 0, 2, 1, 3)) // [c, t, w*h, T/t*n]
		}
		c, frames = c*t, frames/t
	}
	return g.Reshape(x, c, w*h, frames, n)
}
