package op

import (
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

func TestGELUTanh(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		x := append(b.floats(6, 60), 0, 1e-20, 30, -30)
		var want []float64
		for _, v := range x {
			v := float64(v)
			want = append(want, v/2*(1+math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))))
		}
		closeTo(t, "gelu", b.run(GELUTanh(b.g, b.input(x, 8, 8)))[0], want, onGPU(be, 2e-6, 5e-6))
	})
}
