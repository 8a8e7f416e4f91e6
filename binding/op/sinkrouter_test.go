package op

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

func logSigmoid(x float64) float64 { return min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }

// refSinkRouter returns for each token the chosen experts, best first, and
// softmax(log σ(v))·scale over the chosen and the shared logits.
func refSinkRouter(logits, bias []float32, nShared, k int, scale float64) (ids, weights []float64) {
	nExpert := len(bias)
	n := nExpert + nShared
	for t := 0; t < len(logits); t += n {
		row := logits[t : t+n]
		order := make([]int, nExpert)
		for e := range order {
			order[e] = e
		}
		score := func(e int) float64 { return 1/(1+math.Exp(-float64(row[e]))) + float64(bias[e]) }
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case score(a) > score(b):
				return -1
			case score(a) < score(b):
				return 1
			}
			return 0
		})
		var v []float64
		for _, e := range order[:k] {
			ids = append(ids, float64(e))
			v = append(v, logSigmoid(float64(row[e])))
		}
		for _, z := range row[nExpert:] {
			v = append(v, logSigmoid(float64(z)))
		}
		top := slices.Max(v)
		sum := 0.0
		for _, x := range v {
			sum += math.Exp(x - top)
		}
		for _, x := range v {
			weights = append(weights, math.Exp(x-top)/sum*scale)
		}
	}
	return ids, weights
}

func TestSinkRouter(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ nExpert, nShared, k, n int }{
			{8, 2, 3, 1}, {8, 2, 2, 19}, {64, 1, 6, 5}, {256, 2, 6, 33}, {384, 0, 8, 4},
		} {
			t.Run(fmt.Sprintf("%d+%d experts, %d used, %d tokens", c.nExpert, c.nShared, c.k, c.n), func(t *testing.T) {
				b := newBench(t, be)
				logits := b.floats(4, int64(c.nExpert+c.nShared), int64(c.n))
				bias := b.floats(0.5, int64(c.nExpert))
				ids, w := SinkRouter(b.g, b.input(logits, int64(c.nExpert+c.nShared), int64(c.n)), b.persistent(binding.F32, bias, int64(c.nExpert)), c.k, 2.5)
				got := b.run(b.g.Cont(ids), w)
				wantIDs, wantW := refSinkRouter(logits, bias, c.nShared, c.k, 2.5)
				byIndex(got[0], got[1], c.k)
				byIndex(wantIDs, wantW, c.k)
				closeTo(t, "ids", got[0], wantIDs, 0)
				closeTo(t, "weights", got[1], wantW, 1e-6)
			})
		}
	})
}

// TestSinkRouterBiasChoosesOnly: a bias of 100 brings an expert in and leaves its weight alone.
func TestSinkRouterBiasChoosesOnly(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		logits := []float32{3, 2, -5, 1, 0.5} // four experts, one shared
		ids, w := SinkRouter(b.g, b.input(logits, 5, 1), b.persistent(binding.F32, []float32{0, 0, 100, 0}, 4), 2, 1)
		got := b.run(b.g.Cont(ids), w)
		byIndex(got[0], got[1], 2)
		closeTo(t, "ids", got[0], []float64{0, 2}, 0)
		s := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
		sum := s(-5) + s(3) + s(0.5)
		closeTo(t, "weights", got[1], []float64{s(3) / sum, s(-5) / sum, s(0.5) / sum}, 1e-6)
	})
}
