package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/binding"
)

// byIndex orders the k experts of each token, and the first k of its weights, by index.
func byIndex[F float32 | float64](ids, weights []F, k int) {
	tokens := len(ids) / k
	width := len(weights) / tokens
	for t := range tokens {
		order := make([]int, k)
		for i := range order {
			order[i] = i
		}
		row, w := ids[t*k:][:k], weights[t*width:][:k]
		slices.SortFunc(order, func(a, b int) int { return int(row[a]) - int(row[b]) })
		oldRow, oldW := slices.Clone(row), slices.Clone(w)
		for i, o := range order {
			row[i], w[i] = oldRow[o], oldW[o]
		}
	}
}

// lowestFirst are the indices of the k largest elements, of equal ones the
// first, in ascending order.
func lowestFirst(row []float32, k int) []int {
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case row[a] > row[b]:
			return -1
		case row[a] < row[b]:
			return 1
		}
		return 0
	})
	order = order[:k]
	slices.Sort(order)
	return order
}

// TestTopKTies: rows of few different values, so that equal ones lie on both
// sides of the edge. The CPU takes the lowest indices. Other devices may take
// any of equal ones: the chosen values are the same, and so are the indices of
// equal rows.
func TestTopKTies(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ n, k, values int }{
			{4, 2, 1}, {8, 3, 2}, {16, 8, 1}, {17, 8, 1}, {64, 6, 3}, {256, 6, 2}, {256, 8, 40}, {384, 8, 1}, {384, 8, 100}, {300, 300, 7}, {8, 1, 1},
		} {
			t.Run(fmt.Sprintf("%d of %d, %d values", c.k, c.n, c.values), func(t *testing.T) {
				b := newBench(t, be)
				const rows = 21 // the last one as the first
				rng := rand.New(rand.NewPCG(uint64(c.n), uint64(c.values)))
				x := make([]float32, c.n*rows)
				for i := range x {
					// Neighbours in F32: an offset on the values could not tell them from equal ones.
					x[i] = 0.75 + float32(rng.IntN(c.values))/(1<<24)
				}
				copy(x[(rows-1)*c.n:], x[:c.n])
				got := b.run(b.g.Cont(topK(b.g, b.input(x, int64(c.n), rows), c.k)))[0]
				for r := range rows {
					row := x[r*c.n:][:c.n]
					var ids []int
					for _, id := range got[r*c.k:][:c.k] {
						ids = append(ids, int(id))
					}
					slices.Sort(ids)
					want := lowestFirst(row, c.k)
					if be.Device().IsCPU() {
						if diff := cmp.Diff(want, ids); diff != "" {
							t.Fatalf("row %d (-want +got):\n%s", r, diff)
						}
						continue
					}
					if len(slices.Compact(slices.Clone(ids))) != c.k {
						t.Fatalf("row %d: %v has an index twice", r, ids)
					}
					if diff := cmp.Diff(valuesOf(row, want), valuesOf(row, ids)); diff != "" {
						t.Fatalf("values of row %d (-want +got):\n%s", r, diff)
					}
				}
				if first, last := got[:c.k], got[(rows-1)*c.k:]; !slices.Equal(first, last) {
					t.Errorf("equal rows have indices %v and %v", first, last)
				}
			})
		}
	})
}

// valuesOf are the elements at ids, in ascending order.
func valuesOf(row []float32, ids []int) []float32 {
	var values []float32
	for _, id := range ids {
		values = append(values, row[id])
	}
	slices.Sort(values)
	return values
}

// TestRouterTies: equal experts through both routers, also in equal groups. With
// equal scores the weights are equal too, whichever experts a device takes.
func TestRouterTies(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		const nExpert, k, n = 64, 6, 3
		for name, route := range map[string]func(b *bench) (ids, weights *binding.Tensor){
			"sink": func(b *bench) (ids, weights *binding.Tensor) {
				return SinkRouter(b.g, b.input(make([]float32, nExpert*n), nExpert, n), b.persistent(binding.F32, make([]float32, nExpert), nExpert), k, k)
			},
			"top k": func(b *bench) (ids, weights *binding.Tensor) {
				return TopKRouter(b.g, b.input(make([]float32, nExpert*n), nExpert, n), nil, Router{Used: k, Groups: 1, GroupsUsed: 1, Normalize: true, Scale: k})
			},
			"top k in groups": func(b *bench) (ids, weights *binding.Tensor) {
				return TopKRouter(b.g, b.input(make([]float32, nExpert*n), nExpert, n), nil, Router{Used: k, Groups: 32, GroupsUsed: 3, Normalize: true, Scale: k})
			},
		} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, be)
				ids, weights := route(b)
				got := b.run(b.g.Cont(ids), weights)
				var wantIDs, wantW []float64
				for range n {
					for e := range k {
						wantIDs, wantW = append(wantIDs, float64(e)), append(wantW, 1)
					}
				}
				if be.Device().IsCPU() {
					byIndex(got[0], got[1], k)
					closeTo(t, "ids of equal experts", got[0], wantIDs, 0)
				}
				closeTo(t, "weights of equal experts", got[1], wantW, 1e-6)
			})
		}
	})
}
