package op

import (
	"math"

	"github.com/inkling-go/inkling/binding"
)

// GELUTanh is the tanh approximation of x·Φ(x) in full F32 precision, which
// ggml's node does not have on the CPU: with u = √(2/π)·(x + 0.044715·x³),
// x/2·(1 + tanh u) = x·σ(2u) = silu(2u)/(2u/x).
//
//	x:   [...]   F32, contiguous; |x| below 1e12
//	res: [...]
//
// Source: gelu_pytorch_tanh (Hendrycks and Gimpel 2016).
func GELUTanh(g *binding.Graph, x *binding.Tensor) *binding.Tensor {
	if !g.Device().IsCPU() {
		return g.GELU(x)
	}
	c := 2 * math.Sqrt(2/math.Pi)
	slope := g.ScaleBias(g.Mul(x, x), float32(c*0.044715), float32(c)) // 2u/x, above 0
	return g.Div(g.SiLU(g.Mul(x, slope)), slope)
}
