package op

import "math"

// Sinusoid is the table that tells the frames of a clip apart: row f is
// sin(f·10000^(-j/half)) for j below half = dim/2, then the cosines, then a
// zero if dim is odd. It is added to all patches of frame f. The table is small
// and made on the host in float64, since angles grow with the clip.
//
//	res: [frames][dim]
//
// Source: get_1d_sincos_pos_embed of MoonViT3d (Kimi-K2.5; seed 001).
func Sinusoid(frames, dim int) []float32 {
	half := dim / 2
	x := make([]float32, frames*dim)
	for f := range frames {
		row := x[f*dim : (f+1)*dim]
		for j := range half {
			sin, cos := math.Sincos(float64(f) * math.Pow(10000, -float64(j)/float64(half)))
			row[j], row[half+j] = float32(sin), float32(cos)
		}
	}
	return x
}
