package op

import (
	"testing"

	"github.com/inkling-go/inkling/binding"
)

var foldCases = []struct {
	name               string
	c, w, h, frames, n int64
	t, hw              int64
}{
	{"first of four layers", 3, 40, 40, 2, 3, 1, 5},
	{"two by two", 128, 8, 8, 2, 2, 1, 2},
	{"the rest of space", 20, 4, 4, 2, 3, 1, 4},
	{"time only", 48, 1, 1, 2, 5, 2, 1},
	{"all in one", 3, 40, 40, 2, 2, 2, 40},
	{"space and time", 7, 6, 4, 4, 2, 2, 2},
	{"nothing", 5, 3, 2, 2, 1, 1, 1},
}

// refFold is the 8-D transpose of the specification, on row-major [n, T, h, w, c].
func refFold(x []float32, c, w, h, frames, n, t, hw int64) []float64 {
	out := make([]float64, len(x))
	i := 0
	for b := range n {
		for bt := range frames / t {
			for bh := range h / hw {
				for bw := range w / hw {
					for it := range t {
						for ir := range hw {
							for ic := range hw {
								for ch := range c {
									src := (((b*frames+bt*t+it)*h+bh*hw+ir)*w+bw*hw+ic)*c + ch
									out[i] = float64(x[src])
									i++
								}
							}
						}
					}
				}
			}
		}
	}
	return out
}

func TestFold(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range foldCases {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, be)
				x := b.floats(1, c.c, c.w*c.h, c.frames, c.n)
				y := Fold(b.g, b.input(x, c.c, c.w*c.h, c.frames, c.n), c.w, c.h, c.t, c.hw)
				if want := [4]int64{c.c * c.hw * c.hw * c.t, c.w / c.hw * (c.h / c.hw), c.frames / c.t, c.n}; y.Shape() != want {
					t.Errorf("shape %v, want %v", y.Shape(), want)
				}
				got := b.run(b.g.Scale(y, 1)) // a node of its own: the fold may be a view of the input
				closeTo(t, "fold", got[0], refFold(x, c.c, c.w, c.h, c.frames, c.n, c.t, c.hw), 0)
			})
		}
	})
}

// TestFoldOrder is the specification's own example: a 2x2x2 cube keeps the order time, row, column.
func TestFoldOrder(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		x := []float32{0, 1, 2, 3, 4, 5, 6, 7}
		got := b.run(b.g.Scale(Fold(b.g, b.input(x, 1, 4, 2, 1), 2, 2, 2, 2), 1))
		closeTo(t, "fold", got[0], []float64{0, 1, 2, 3, 4, 5, 6, 7}, 0)
	})
}
