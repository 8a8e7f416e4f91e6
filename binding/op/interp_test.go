package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refBicubic samples the grid [h][w][c] at one point of a w2 x h2 grid.
func refBicubic(grid []float32, c, w, h, w2, h2, x2, y2, ch int) float64 {
	kernel := func(d float64) float64 {
		const a = -0.75
		switch d = math.Abs(d); {
		case d <= 1:
			return (a+2)*d*d*d - (a+3)*d*d + 1
		case d < 2:
			return a*d*d*d - 5*a*d*d + 8*a*d - 4*a
		}
		return 0
	}
	sx := (float64(x2)+0.5)*float64(w)/float64(w2) - 0.5
	sy := (float64(y2)+0.5)*float64(h)/float64(h2) - 0.5
	sum := 0.0
	for ty := int(math.Floor(sy)) - 1; ty <= int(math.Floor(sy))+2; ty++ {
		for tx := int(math.Floor(sx)) - 1; tx <= int(math.Floor(sx))+2; tx++ {
			x, y := min(max(tx, 0), w-1), min(max(ty, 0), h-1)
			sum += kernel(sx-float64(tx)) * kernel(sy-float64(ty)) * float64(grid[(y*w+x)*c+ch])
		}
	}
	return sum
}

func TestInterp(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, s := range []struct{ c, w, h, w2, h2 int }{
			{16, 8, 8, 8, 8}, {16, 8, 8, 6, 10}, {8, 64, 64, 2, 2}, {8, 64, 64, 3, 128}, {4, 8, 8, 30, 4}, {4, 6, 9, 1, 1},
		} {
			t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
				b := newBench(t, be)
				grid := b.floats(1, int64(s.c), int64(s.w), int64(s.h))
				got := b.run(Interp(b.g, b.input(grid, int64(s.c), int64(s.w), int64(s.h)),
					b.input(BicubicWeights(s.w, s.w2), int64(s.w), int64(s.w2)),
					b.input(BicubicWeights(s.h, s.h2), int64(s.h), int64(s.h2))))[0]
				var want []float64
				for y := range s.h2 {
					for x := range s.w2 {
						for ch := range s.c {
							want = append(want, refBicubic(grid, s.c, s.w, s.h, s.w2, s.h2, x, y, ch))
						}
					}
				}
				tol := 2e-6
				if s.w == s.w2 && s.h == s.h2 {
					tol = 0 // the identity
				}
				closeTo(t, "grid", got, want, tol)
			})
		}
	})
}

// TestBicubicWeightsSum: a constant grid stays constant.
func TestBicubicWeightsSum(t *testing.T) {
	for _, s := range [][2]int{{64, 1}, {64, 2}, {64, 64}, {64, 128}, {8, 30}, {1, 7}} {
		w := BicubicWeights(s[0], s[1])
		for i := range s[1] {
			sum := 0.0
			for _, v := range w[i*s[0] : (i+1)*s[0]] {
				sum += float64(v)
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("%d to %d: weights of point %d sum to %v, want 1", s[0], s[1], i, sum)
			}
		}
	}
}
