package op

import "github.com/inkling-go/inkling/binding"

// ShortConv adds to each channel a causal convolution of its own past,
// y[c, t] = x[c, t] + Σ_j w[j, c]·x[c, t-(K-1)+j], and moves the state on: the
// last K-1 inputs, zero before the first position.
//
//	x:     [channels, n_tokens]   F32, contiguous
//	w:     [K, channels]          F32; w[K-1] multiplies the current row
//	state: [K-1, channels]        F32, persistent, time fastest; read, then written
//	res:   [channels, n_tokens]
//
// Source: docs of the Inkling layer, "short convolution with inner residual" (seed 002; InklingShortConv of transformers 5.17).
func ShortConv(g *binding.Graph, x, w, state *binding.Tensor) *binding.Tensor {
	channels, n, past := x.Dim(0), x.Dim(1), state.Dim(0)
	xt := x
	if n == 1 {
		xt = g.Reshape(x, 1, channels)
	} else {
		xt = g.Cont(g.Transpose(x)) // [n_tokens, channels]
	}
	sx := g.Concat(state, xt, 0) // [K-1+n_tokens, channels]
	y := g.SSMConv(g.Reshape(sx, past+n, channels, 1), w)
	y = g.Add(g.Reshape(y, channels, n), x)
	g.Expand(y)
	g.Expand(g.Cpy(g.Cols(sx, n, past), state))
	return y
}
