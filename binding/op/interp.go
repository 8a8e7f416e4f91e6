package op

import (
	"math"

	"github.com/inkling-go/inkling/binding"
)

// BicubicWeights is the matrix that resamples one axis of a position grid from
// in to out points: cubic convolution (Keys) with a = -0.75, corners not
// aligned, the border repeated, no widening when shrinking. A row has at most
// four weights; out = in gives the identity.
//
//	res: [out][in]
//
// Source: torch.nn.functional.interpolate(mode="bicubic"), as MoonViT calls it.
func BicubicWeights(in, out int) []float32 {
	const a = -0.75
	w := make([]float32, out*in)
	for i := range out {
		src := (float64(i)+0.5)*float64(in)/float64(out) - 0.5
		base := int(math.Floor(src))
		row := make([]float64, in)
		for tap := base - 1; tap <= base+2; tap++ {
			d := math.Abs(src - float64(tap))
			v := 0.0
			switch {
			case d <= 1:
				v = ((a+2)*d-(a+3))*d*d + 1
			case d < 2:
				v = ((d-5)*d+8)*a*d - 4*a
			}
			row[min(max(tap, 0), in-1)] += v
		}
		for j, v := range row {
			w[i*in+j] = float32(v)
		}
	}
	return w
}

// Interp resamples a grid along both axes.
//
//	grid: [c, w, h]     F32, contiguous
//	wx:   [w, w2]       F32, from BicubicWeights
//	wy:   [h, h2]       F32
//	res:  [c, w2*h2]
func Interp(g *binding.Graph, grid, wx, wy *binding.Tensor) *binding.Tensor {
	c, w, h := grid.Dim(0), grid.Dim(1), grid.Dim(2)
	w2, h2 := wx.Dim(1), wy.Dim(1)
	x := g.Cont(g.Transpose(g.Reshape(grid, c*w, h)))            // [h, c*w]
	x = g.Reshape(g.MulMatF32(x, wy), c, w, h2)                  //
	x = g.MulMatF32(wx, g.Cont(g.Permute(x, 1, 0, 2, 3)))        // [w2, c, h2]
	return g.Reshape(g.Cont(g.Permute(x, 1, 0, 2, 3)), c, w2*h2) // [c, w2, h2]
}
