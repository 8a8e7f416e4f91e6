package op

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refTopKRouter is the rule in float64, for one token.
func refTopKRouter(logits, bias []float32, r Router) (ids, weights []float64) {
	n := len(logits)
	scores, choice := make([]float64, n), make([]float64, n)
	total := 0.0
	for i, z := range logits {
		scores[i] = 1 / (1 + math.Exp(-float64(z)))
		if r.SoftMax {
			scores[i] = math.Exp(float64(z))
			total += scores[i]
		}
	}
	for i := range scores {
		if r.SoftMax {
			scores[i] /= total
		}
		choice[i] = scores[i]
		if bias != nil {
			choice[i] += float64(bias[i])
		}
	}
	best := func(x []float64) []int {
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case x[a] > x[b]:
				return -1
			case x[a] < x[b]:
				return 1
			}
			return 0
		})
		return order
	}
	per := n / r.Groups
	group := make([]float64, r.Groups)
	for g := range group {
		part := slices.Sorted(slices.Values(choice[g*per : (g+1)*per]))
		group[g] = part[per-1]
		if per > 1 {
			group[g] += part[per-2]
		}
	}
	for _, g := range best(group)[r.GroupsUsed:] {
		for i := range per {
			choice[g*per+i] = math.Inf(-1)
		}
	}
	sum := 0.0
	for _, e := range best(choice)[:r.Used] {
		ids = append(ids, float64(e))
		weights = append(weights, scores[e])
		sum += scores[e]
	}
	for i := range weights {
		if r.Normalize {
			weights[i] /= sum
		}
		weights[i] *= float64(r.Scale)
	}
	return ids, weights
}

func TestTopKRouter(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			nExpert, n int
			bias       bool
			r          Router
		}{
			{8, 1, true, Router{Used: 3, Groups: 1, GroupsUsed: 1, Normalize: true, Scale: 2.827}},
			{384, 5, true, Router{Used: 8, Groups: 1, GroupsUsed: 1, Normalize: true, Scale: 2.827}},
			{256, 19, true, Router{Used: 8, Groups: 8, GroupsUsed: 4, Normalize: true, Scale: 2.5}},
			{16, 33, true, Router{Used: 2, Groups: 4, GroupsUsed: 2, Scale: 1}},
			{8, 4, true, Router{Used: 2, Groups: 8, GroupsUsed: 3, Normalize: true, Scale: 1}}, // groups of one
			{64, 7, false, Router{Used: 6, Groups: 1, GroupsUsed: 1, SoftMax: true, Scale: 1}},
			{12, 7, false, Router{Used: 3, Groups: 3, GroupsUsed: 1, SoftMax: true, Normalize: true, Scale: 16}},
		} {
			t.Run(fmt.Sprintf("%d experts, %d tokens, %+v", c.nExpert, c.n, c.r), func(t *testing.T) {
				b := newBench(t, be)
				logits := b.floats(3, int64(c.nExpert), int64(c.n))
				var bias []float32
				var biasT *binding.Tensor
				if c.bias {
					bias = b.floats(0.5, int64(c.nExpert))
					biasT = b.persistent(binding.F32, bias, int64(c.nExpert))
				}
				ids, w := TopKRouter(b.g, b.input(logits, int64(c.nExpert), int64(c.n)), biasT, c.r)
				got := b.run(b.g.Cont(ids), w)
				var wantIDs, wantW []float64
				for i := range c.n {
					id, w := refTopKRouter(logits[i*c.nExpert:(i+1)*c.nExpert], bias, c.r)
					wantIDs, wantW = append(wantIDs, id...), append(wantW, w...)
				}
				byIndex(got[0], got[1], c.r.Used)
				byIndex(wantIDs, wantW, c.r.Used)
				closeTo(t, "ids", got[0], wantIDs, 0)
				closeTo(t, "weights", got[1], wantW, 5e-6)
			})
		}
	})
}

// TestTopKRouterBias: a bias of 100 selects an expert and leaves its weight as it was.
func TestTopKRouterBias(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		logits := b.input([]float32{3, 2, -1, 1}, 4, 1)
		bias := b.persistent(binding.F32, []float32{0, 0, 100, 0}, 4)
		ids, w := TopKRouter(b.g, logits, bias, Router{Used: 2, Groups: 1, GroupsUsed: 1, Normalize: true, Scale: 2})
		got := b.run(b.g.Cont(ids), w)
		byIndex(got[0], got[1], 2)
		closeTo(t, "ids", got[0], []float64{0, 2}, 0)
		s2, s0 := 1/(1+math.E), 1/(1+math.Exp(-3))
		closeTo(t, "weights", got[1], []float64{2 * s0 / (s0 + s2), 2 * s2 / (s0 + s2)}, 1e-6)
	})
}
