package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestProductsOfExperts: rows that choose among experts, on every device. GPUs cut such
// products into tiles, whose width follows from rows and experts: few and many rows of an
// expert, experts that nobody chooses, one that all choose, and rows of weights that fill
// no tile.
func TestProductsOfExperts(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			typ                             string
			k, rows, experts, used, n, step int64
		}{
			{"q4_K", 512, 128, 32, 4, 40, 7},
			{"q4_K", 512, 130, 8, 2, 130, 3},
			{"q6_K", 256, 300, 16, 6, 67, 5},
			{"iq3_xxs", 512, 256, 64, 6, 33, 1},
			{"iq3_xxs", 256, 131, 4, 2, 200, 1},
			{"q5_K", 768, 77, 12, 3, 96, 0},
			{"q8_0", 256, 257, 24, 8, 161, 11},
			{"q3_K", 256, 128, 5, 1, 300, 2},
			{"q4_0", 512, 64, 128, 6, 64, 13},
			{"iq4_xs", 512, 200, 6, 2, 48, 5},
		} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				b := newBench(t, be)
				x := b.floats(1, c.k, c.n)
				ids := make([]int32, c.used*c.n)
				for r := range c.n {
					for i := range c.used {
						ids[r*c.used+i] = int32((r*c.step + i) % c.experts) // step 0: all choose the same
					}
				}
				bank, values := b.matrices(fusedTypes[c.typ], c.k, c.rows, c.experts)
				got := b.run(b.g.MulMatID(bank, b.input(x, c.k, 1, c.n), b.inputI32(ids, c.used, c.n)))[0]
				var off []float64
				at := 0
				for r := range c.n {
					row := wide(x[r*c.k : (r+1)*c.k])
					for _, e := range ids[r*c.used : (r+1)*c.used] {
						want, spread := times(values[int64(e)*c.k*c.rows:int64(e+1)*c.k*c.rows], row)
						for i := range want {
							off = append(off, (float64(got[at])-want[i])/spread[i])
							at++
						}
					}
				}
				// Of 700,000 values some are beyond 5 sigma; GPUs keep sums and minima of Q4_K and Q5_K as F16.
				closeTo(t, "difference by the norm of the products", narrow(off), make([]float64, len(off)), onGPU(be, 3e-2, 5e-2))
			})
		}
	})
}
