package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refRope2D turns pair 2j of a head by col·θ_j and pair 2j+1 by row·θ_j,
// θ_j = base^(-4j/dh), as the published layout has them, and returns the head
// with all columns' pairs first.
func refRope2D(head []float32, col, row int, base float64) []float64 {
	dh := len(head)
	out := make([]float64, dh)
	for j := range dh / 4 {
		theta := math.Pow(base, -4*float64(j)/float64(dh))
		for axis, pos := range []int{col, row} {
			re, im := float64(head[4*j+2*axis]), float64(head[4*j+2*axis+1])
			sin, cos := math.Sincos(float64(pos) * theta)
			at := axis*dh/2 + 2*j
			out[at], out[at+1] = re*cos-im*sin, re*sin+im*cos
		}
	}
	return out
}

// split is the order of the converted weights: the columns' pairs of a head, then the rows'.
func split(head []float32) []float32 {
	out := make([]float32, len(head))
	for j := range len(head) / 4 {
		for axis := range 2 {
			copy(out[axis*len(head)/2+2*j:][:2], head[4*j+2*axis:][:2])
		}
	}
	return out
}

func TestRope2D(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ dh, heads, frames, w, h int }{
			{36, 4, 1, 8, 6}, {72, 16, 1, 5, 3}, {4, 1, 1, 2, 1}, {36, 2, 3, 6, 4}, {72, 1, 1, 512, 1},
		} {
			for _, interleaved := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v interleaved=%v", c, interleaved), func(t *testing.T) {
					b := newBench(t, be)
					n := c.frames * c.w * c.h
					x := b.floats(1, int64(c.dh), int64(c.heads), int64(n))
					var cols, rows []int32
					for i := range n { // the frame never enters
						cols = append(cols, int32(i%c.w))
						rows = append(rows, int32(i/c.w%c.h))
					}
					in, want := x, []float64{}
					if !interleaved {
						in = nil
					}
					for at := 0; at < len(x); at += c.dh {
						i := at / c.dh / c.heads
						want = append(want, refRope2D(x[at:at+c.dh], int(cols[i]), int(rows[i]), 10000)...)
						if !interleaved {
							in = append(in, split(x[at:at+c.dh])...)
						}
					}
					y := Rope2D(b.g, b.input(in, int64(c.dh), int64(c.heads), int64(n)), b.inputI32(cols, int64(n)), b.inputI32(rows, int64(n)), 10000, interleaved)
					closeTo(t, "rope", b.run(y)[0], want, onGPU(be, 5e-5, 2e-4))
				})
			}
		}
	})
}

// TestRope2DView: heads that lie within longer rows, as in a joint projection of q, k and v.
func TestRope2DView(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		x := b.floats(1, 24, 2)
		in := b.input(x, 24, 2)
		k := b.g.View(in, [4]int64{4, 2, 2, 1}, 16, 96, 192, 32) // the second of three parts of 8
		y := Rope2D(b.g, k, b.inputI32([]int32{0, 3}, 2), b.inputI32([]int32{2, 1}, 2), 10000, false)
		var want []float64
		for tok, pos := range [][2]int{{0, 2}, {3, 1}} {
			for head := range 2 {
				h := x[24*tok+8+4*head:][:4]
				want = append(want, refRope2D(h, pos[0], pos[1], 10000)...) // one pair an axis: both orders are the same
			}
		}
		closeTo(t, "rope", b.run(y)[0], want, 1e-5)
	})
}
