package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestDenseProducts: products of quantised weights with many rows, on every device. Those
// of data centres multiply by F16 from 96 rows on (ggml/cuda/dense.cuh): rows a hundred
// million times as large as others beside them, zeros, rows with gaps between them, several matrices, and
// more weights than are decoded at once.
func TestDenseProducts(t *testing.T) {
	even := func(int64) float32 { return 1 }
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		bound := onGPU(be, 3e-2, 5e-2)
		for _, c := range []struct {
			name, typ            string
			k, rows, matrices, n int64
			scale                func(row int64) float32
			gap                  int64 // between rows of x
		}{
			{"one row less than many", "q4_K", 512, 96, 1, 95, even, 0},
			{"iq3_xxs", "iq3_xxs", 768, 160, 1, 96, even, 0},
			{"q3_K", "q3_K", 256, 100, 1, 150, even, 0},
			{"q4_K", "q4_K", 1024, 33, 1, 131, even, 0},
			{"q5_K", "q5_K", 512, 64, 1, 200, even, 0},
			{"q6_K", "q6_K", 512, 130, 1, 128, even, 0},
			{"q8_0", "q8_0", 256, 77, 1, 300, even, 0},
			{"q4_0", "q4_0", 512, 32, 1, 129, even, 0},
			{"iq4_xs", "iq4_xs", 512, 65, 1, 140, even, 0},
			{"a type without a decoder", "mxfp4", 512, 64, 1, 128, even, 0},
			{"rows of other sizes", "q4_K", 512, 64, 1, 128, func(row int64) float32 { return []float32{1, 1e6, 1e-2, 0}[row%4] }, 0},
			{"small", "q6_K", 256, 64, 1, 128, func(int64) float32 { return 1e-12 }, 0},
			{"large", "q6_K", 256, 64, 1, 128, func(int64) float32 { return 1e12 }, 0},
			{"zeros", "q8_0", 256, 64, 1, 128, func(int64) float32 { return 0 }, 0},
			{"gaps", "q4_K", 512, 64, 1, 130, even, 12},
			{"matrices", "q5_K", 256, 96, 3, 128, even, 0},
			{"weights in parts", "q4_0", 256, 1<<17 + 3, 1, 128, even, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, be)
				values := b.floats(1, c.k+c.gap, c.n, c.matrices)
				for i := range values {
					values[i] *= c.scale(int64(i) / (c.k + c.gap))
				}
				w, weights := b.matrices(fusedTypes[c.typ], c.k, c.rows, c.matrices)
				x := b.input(values, c.k+c.gap, c.n, c.matrices)
				if c.gap > 0 {
					x = b.g.Cols(x, 0, c.k)
				}
				got := b.run(b.g.MulMat(w, x))[0]

				every := max(c.rows/100, 1) // rows of weights that are looked at, and the last
				var off []float64
				for i := range c.n * c.matrices {
					row := wide(values[i*(c.k+c.gap) : i*(c.k+c.gap)+c.k])
					for m := int64(0); m < c.rows; m = nextOf(m, every, c.rows) {
						at := i/c.n*c.rows + m
						want, spread := times(weights[at*c.k:(at+1)*c.k], row)
						off = append(off, (float64(got[i*c.rows+m])-want[0])/max(spread[0], 1e-30))
					}
				}
				bound := bound
				if c.n >= 96 && c.typ != "mxfp4" && !be.Device().IsCPU() && multipliesTiles(t, be) {
					bound = 5e-3 // F16 has 11 bits, of weights and of rows
				}
				closeTo(t, fmt.Sprintf("difference by the norm of the products: %s", c.name), narrow(off), make([]float64, len(off)), bound)
			})
		}
	})
}

// nextOf is the row behind m of every so many and the last.
func nextOf(m, every, rows int64) int64 {
	if m < rows-1 && m+every >= rows {
		return rows - 1
	}
	return m + every
}

// TestDenseProductsOfSeveral: the results of weights in groups are those of each alone.
func TestDenseProductsOfSeveral(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		if !multipliesTiles(t, be) {
			t.Skip("no card of a data centre")
		}
		for _, groups := range [][]int{{1}, {2}, {1, 1}, {1, 2, 1}, {3, 1}} { // weights in each
			t.Run(fmt.Sprint(groups), func(t *testing.T) {
				b := newBench(t, be)
				const k, n = 512, 101
				x := b.input(b.floats(1, k, n), k, n)
				var in [][]*binding.Tensor
				var outs []*binding.Tensor
				for _, count := range groups {
					var ws []*binding.Tensor
					for range count {
						w, _ := b.matrices(fusedTypes[[]string{"q4_K", "q6_K", "iq3_xxs", "q8_0"}[len(outs)]], k, int64(32+40*len(outs)))
						ws, outs = append(ws, w), append(outs, b.g.MulMat(w, x))
					}
					in = append(in, ws)
				}
				ys, ok := DenseProducts(b.g, x, in...)
				if !ok {
					t.Fatal("not supported")
				}
				alone := len(outs)
				for _, y := range ys {
					outs = append(outs, b.g.Cont(y))
				}
				got := b.run(outs...)
				at := 0
				for i, ws := range in {
					col, width := int64(0), ys[i].Dim(0)
					for _, w := range ws {
						m := w.Dim(1)
						var have []float32
						for r := range int64(n) {
							have = append(have, got[alone+i][r*width+col:][:m]...)
						}
						closeTo(t, fmt.Sprintf("beside others: weight %d", at), have, wide(got[at]), 1e-3) // the same F16, added up in another order
						col, at = col+m, at+1
					}
				}
			})
		}
	})
}
