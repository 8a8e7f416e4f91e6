package op

import (
	"fmt"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

func TestFusedRouter(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ nExpert, nShared, k, n int }{
			{8, 2, 3, 1}, {8, 2, 2, 19}, {64, 1, 6, 5}, {256, 2, 6, 1}, {256, 2, 6, 100}, {384, 0, 8, 4}, {512, 2, 8, 3}, {30, 2, 30, 2},
		} {
			t.Run(fmt.Sprintf("%d+%d experts, %d used, %d tokens", c.nExpert, c.nShared, c.k, c.n), func(t *testing.T) {
				b := newBench(t, be)
				logits := b.floats(4, int64(c.nExpert+c.nShared), int64(c.n))
				bias := b.floats(0.5, int64(c.nExpert))
				ids, w, ok := FusedRouter(b.g, b.input(logits, int64(c.nExpert+c.nShared), int64(c.n)), b.persistent(binding.F32, bias, int64(c.nExpert)), c.k, 2.5)
				if !ok {
					t.Fatal("not supported")
				}
				got := b.run(b.g.Cont(ids), b.g.Cont(w))
				wantIDs, wantW := refSinkRouter(logits, bias, c.nShared, c.k, 2.5)
				byIndex(got[0], got[1], c.k)
				byIndex(wantIDs, wantW, c.k)
				closeTo(t, "ids", got[0], wantIDs, 0)
				closeTo(t, "weights", got[1], wantW, 1e-6)
			})
		}
	})
}

// TestFusedRouterTies: of equal choices the lower index comes first, and negative
// choices are ordered too.
func TestFusedRouterTies(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		logits, bias := make([]float32, 257), make([]float32, 256)
		for i := range bias {
			bias[i] = -2
		}
		bias[200], bias[40], bias[41], bias[8] = -1, -1, -1, 3
		ids, w, ok := FusedRouter(b.g, b.input(logits, 257, 1), b.persistent(binding.F32, bias, 256), 6, 1)
		if !ok {
			t.Fatal("not supported")
		}
		got := b.run(b.g.Cont(ids), b.g.Cont(w))
		closeTo(t, "ids", got[0], []float64{8, 40, 41, 200, 0, 1}, 0)
		want := make([]float64, 7)
		for i := range want {
			want[i] = 1.0 / 7
		}
		closeTo(t, "weights", got[1], want, 1e-6)
	})
}

// TestFusedRouting: the product, the choice and the weights, twice, because the
// tickets must be as they were.
func TestFusedRouting(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ embd, nExpert, nShared, k, n int }{
			{128, 8, 2, 3, 1}, {256, 8, 2, 2, 5}, {1028, 60, 1, 6, 3}, {4096, 256, 2, 6, 1}, {4096, 256, 2, 6, 8}, {6144, 256, 2, 6, 4}, {8192, 512, 0, 8, 2},
		} {
			t.Run(fmt.Sprintf("n_embd %d, %d+%d experts, %d used, %d tokens", c.embd, c.nExpert, c.nShared, c.k, c.n), func(t *testing.T) {
				b := newBench(t, be)
				x, router := b.floats(1, int64(c.embd), int64(c.n)), b.floats(0.1, int64(c.embd), int64(c.nExpert+c.nShared))
				bias := b.floats(0.5, int64(c.nExpert))
				tickets, err := b.mem.New("tickets", binding.I32, 64)
				if err != nil {
					t.Fatal(err)
				}
				b.set = append(b.set, func() { tickets.SetInt32s(make([]int32, 64)) })
				operand, weight, shift := b.input(x, int64(c.embd), int64(c.n)), b.persistent(binding.F32, router, int64(c.embd), int64(c.nExpert+c.nShared)), b.persistent(binding.F32, bias, int64(c.nExpert))
				var outs []*binding.Tensor
				for range 2 {
					logits, ids, w, ok := FusedRouting(b.g, operand, weight, shift, tickets, c.k, 2.5)
					if !ok {
						t.Fatal("not supported")
					}
					outs = append(outs, b.g.Cont(logits), b.g.Cont(ids), b.g.Cont(w))
				}
				got := b.run(outs...)
				var want []float64
				var logits []float32
				for row := range c.n {
					for e := range c.nExpert + c.nShared {
						sum := 0.0
						for i := range c.embd {
							sum += float64(x[row*c.embd+i]) * float64(router[e*c.embd+i])
						}
						want, logits = append(want, sum), append(logits, float32(sum))
					}
				}
				wantIDs, wantW := refSinkRouter(logits, bias, c.nShared, c.k, 2.5)
				byIndex(wantIDs, wantW, c.k)
				for i := range 2 {
					closeTo(t, fmt.Sprint("logits: ", i), got[3*i], want, 1e-5) // 8192 terms of up to 0.1
					byIndex(got[3*i+1], got[3*i+2], c.k)
					closeTo(t, fmt.Sprint("ids: ", i), got[3*i+1], wantIDs, 0)
					closeTo(t, fmt.Sprint("weights: ", i), got[3*i+2], wantW, 5e-6)
				}
				left := make([]int32, 64)
				tickets.Int32s(left)
				if !slices.Equal(left, make([]int32, 64)) {
					t.Errorf("tickets %v, want zeros", left)
				}
			})
		}
	})
}
