package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refSegment attends in float64; q, k, v are [row][head][dh].
func refSegment(q, k, v []float32, dh, nHead, n int, scale float64) []float64 {
	out := make([]float64, len(q))
	for i := range n {
		for h := range nHead {
			p, sum := make([]float64, n), 0.0
			for j := range p {
				dot := 0.0
				for d := range dh {
					dot += float64(q[(i*nHead+h)*dh+d]) * float64(k[(j*nHead+h)*dh+d])
				}
				p[j] = math.Exp(dot * scale)
				sum += p[j]
			}
			for j := range p {
				for d := range dh {
					out[(i*nHead+h)*dh+d] += p[j] / sum * float64(v[(j*nHead+h)*dh+d])
				}
			}
		}
	}
	return out
}

func TestSegmentAttention(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ dh, nHead, n, block int }{
			{36, 4, 48, 0}, {36, 4, 48, 16}, {72, 2, 37, 10}, {72, 16, 4, 1}, {8, 1, 1, 0},
		} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				b := newBench(t, be)
				dh, nHead, n := int64(c.dh), int64(c.nHead), int64(c.n)
				q := b.floats(2, dh, nHead, n)
				kv := b.floats(2, 2*dh*nHead, n) // k and v beside each other, as in a joint projection
				in := b.input(kv, 2*dh*nHead, n)
				part := func(first int64) *binding.Tensor {
					return b.g.View(in, [4]int64{dh, nHead, n, 1}, 4*dh, 8*dh*nHead, 8*dh*nHead*n, 4*first)
				}
				o := SegmentAttention(b.g, b.g.Scale(b.input(q, dh, nHead, n), 1), part(0), part(dh*nHead), 0.2, int64(c.block))
				var k, v []float32
				for r := 0; r < len(kv); r += 2 * c.dh * c.nHead {
					k = append(k, kv[r:r+c.dh*c.nHead]...)
					v = append(v, kv[r+c.dh*c.nHead:r+2*c.dh*c.nHead]...)
				}
				closeTo(t, "attention", b.run(o)[0], refSegment(q, k, v, c.dh, c.nHead, c.n, 0.2), 3e-6)
			})
		}
	})
}
