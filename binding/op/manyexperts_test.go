package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestExpertsReplayed: a graph that is computed again and again, as a GPU records and replays
// it, gives what a new one gives, bit for bit. How many tiles an expert's rows fill
// differs from step to step.
func TestExpertsReplayed(t *testing.T) {
	steps := []struct{ first, amongst int64 }{{0, 8}, {6, 2}, {1, 3}, {0, 8}, {3, 2}, {5, 4}, {0, 2}}
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		if !be.Device().IsCPU() && !(be.Device().Fuses() && multipliesTiles(t, be)) {
			t.Skip("no kernels of this project to replay")
		}
		for _, c := range []fusedExpertsCase{
			{k: 256, ff: 512, experts: 8, used: 2, n: 70, gate: "q4_K", down: "q6_K"},
			{k: 512, ff: 256, experts: 8, used: 2, n: 33, gate: "iq3_xxs", down: "q5_K"},
			{k: 256, ff: 256, experts: 40, used: 2, n: 200, gate: "q8_0", down: "q4_0"},
		} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				b := newBench(t, be)
				l := b.expertLayer(c)
				x := b.g.Input("x", binding.F32, c.k, c.n)
				ids := b.g.Input("ids", binding.I32, c.used, c.n)
				weights := b.g.Input("weights", binding.F32, c.used+c.shared, c.n)
				y, limit := l.sum(t, b.g, x, ids, weights)
				step, done := b.ready(y)
				defer done()
				rng := rand.New(rand.NewPCG(3, 4))
				before, counts := be.Device().Replays()
				for i, s := range steps {
					in := l.draw(rng, s.first, s.amongst)
					x.SetFloats(in.x)
					ids.SetInt32s(in.ids)
					weights.SetFloats(in.weights)
					step()
					got := make([]float32, y.Elems())
					y.Floats(got)
					l.check(t, got, in, limit)
					if want := computedAnew(t, be, c, in); !slices.Equal(got, want) {
						t.Errorf("step %d: not what a new graph gives", i)
					}
				}
				if after, _ := be.Device().Replays(); counts { // the first is run directly, the second recorded
					if did := after.Sub(before); did.Replayed < int64(len(steps)-2) {
						t.Errorf("%d steps: %+v, want %d replayed", len(steps), did, len(steps)-2)
					}
				}
			})
		}
	})
}

// computedAnew is the result of a graph that is computed once. It is closed when t ends: no
// other that is new meanwhile can be taken for it.
func computedAnew(t *testing.T, be *binding.Backend, c fusedExpertsCase, in expertsInput) []float32 {
	b := newBench(t, be)
	y, _ := b.expertLayer(c).sum(t, b.g, b.input(in.x, c.k, c.n), b.inputI32(in.ids, c.used, c.n), b.input(in.weights, c.used+c.shared, c.n))
	return b.run(y)[0]
}

// TestExpertsOfViews: ids and weights whose rows have gaps between them.
func TestExpertsOfViews(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct {
			name             string
			idsGap, topK     bool
			weightsGap       bool
			n, used, experts int64
			typ              string
		}{
			{name: "ids with gaps", idsGap: true, n: 40, used: 3, experts: 12, typ: "q4_K"},
			{name: "ids of a top-k", topK: true, n: 130, used: 6, experts: 32, typ: "q4_K"},
			{name: "weights with gaps", weightsGap: true, n: 40, used: 3, experts: 12, typ: "q4_K"},
			{name: "both with gaps", idsGap: true, weightsGap: true, n: 130, used: 2, experts: 5, typ: "q4_K"},
			{name: "top-k and weights with gaps", topK: true, weightsGap: true, n: 65, used: 1, experts: 7, typ: "q4_K"},
			{name: "both of few rows", idsGap: true, weightsGap: true, n: 5, used: 3, experts: 12, typ: "q8_0"},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, be)
				l := b.expertLayer(fusedExpertsCase{k: 512, ff: 256, experts: c.experts, used: c.used, n: c.n, gate: c.typ, down: c.typ})
				in := l.draw(b.rng, 0, c.experts)
				var ids, weights *binding.Tensor
				switch {
				case c.topK:
					ids = b.topKOf(in.ids, c.experts, c.used, c.n)
				case c.idsGap:
					other := func() int32 { return int32(b.rng.Int64N(c.experts)) }
					ids = columns(b.g, b.inputI32(within(in.ids, c.used, other), c.used+gapBefore+gapBehind, c.n))
				default:
					ids = b.inputI32(in.ids, c.used, c.n)
				}
				if c.weightsGap {
					other := func() float32 { return 100 }
					weights = columns(b.g, b.input(within(in.weights, l.used+l.shared, other), l.used+l.shared+gapBefore+gapBehind, c.n))
				} else {
					weights = b.input(in.weights, l.used+l.shared, c.n)
				}
				y, limit := l.sum(t, b.g, b.input(in.x, l.k, l.n), ids, weights)
				l.check(t, b.run(y)[0], in, limit)
			})
		}
	})
}

// Values between the rows of a view.
const gapBefore, gapBehind = 1, 2

// columns is the view of what within put into wider rows.
func columns(g *binding.Graph, a *binding.Tensor) *binding.Tensor {
	return g.Cols(a, gapBefore, a.Dim(0)-gapBefore-gapBehind)
}

// within is x with gaps that other fills around its rows of width values.
func within[T any](x []T, width int64, other func() T) []T {
	var y []T
	for row := range slices.Chunk(x, int(width)) {
		for range gapBefore {
			y = append(y, other())
		}
		y = append(y, row...)
		for range gapBehind {
			y = append(y, other())
		}
	}
	return y
}

// topKOf are ids [used, n] as the view that a top-k of scores is.
func (b *bench) topKOf(ids []int32, experts, used, n int64) *binding.Tensor {
	scores := make([]float32, experts*n)
	for i := range scores {
		scores[i] = -float32(i) // all others, each another
	}
	for i, id := range ids {
		r, slot := int64(i)/used, int64(i)%used
		scores[r*experts+int64(id)] = float32(used - slot)
	}
	return b.g.ArgsortTopK(b.input(scores, experts, n), int(used))
}

// mostOrdered is how many experts rows are sorted by: ORDER_EXPERTS of ggml/cuda/experts.cuh.
const mostOrdered = 1024

// TestMostExperts: as many experts as rows are sorted by, each chosen by one row or two.
func TestMostExperts(t *testing.T) {
	c := fusedExpertsCase{k: 256, ff: 256, experts: mostOrdered, used: 6, n: 200, gate: "q4_0", down: "q4_0"}
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		bank, values := b.matrices(fusedTypes[c.gate], c.k, c.ff, c.experts) // one for all three: its values take 256 MiB
		l := &expertLayer{fusedExpertsCase: c, gate: bank, up: bank, down: bank, gateV: values, upV: values, downV: values}
		in := expertsInput{x: b.floats(1, c.k, c.n), weights: b.floats(1, c.used, c.n)}
		for i := range c.used * c.n {
			in.ids = append(in.ids, int32(mostOrdered-1-i%mostOrdered))
		}
		y, limit := l.sum(t, b.g, b.input(in.x, c.k, c.n), b.inputI32(in.ids, c.used, c.n), b.input(in.weights, c.used, c.n))
		l.check(t, b.run(y)[0], in, limit)
	})
}

// TestExpertsOutOfRange: an id that is no expert's, as rows have that nobody reads, stands for
// expert 0. The composition has no such rule.
func TestExpertsOutOfRange(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, n := range []int64{3, 40} {
			t.Run(fmt.Sprintf("%d rows", n), func(t *testing.T) {
				if n > maxFusedChoices && !multipliesTiles(t, be) {
					t.Skip("too little shared memory for tiles of experts")
				}
				b := newBench(t, be)
				l := b.expertLayer(fusedExpertsCase{k: 512, ff: 256, experts: 5, used: 2, n: n, gate: "q8_0", down: "q8_0"})
				in := l.draw(b.rng, 1, 4)
				ids := slices.Clone(in.ids)
				for i, id := range []int32{-1, int32(l.experts), math.MinInt32, math.MaxInt32} {
					ids[i], in.ids[i] = id, 0
				}
				y, ok := l.fuse(b.g, b.input(in.x, l.k, n), b.inputI32(ids, l.used, n), b.input(in.weights, l.used+l.shared, n))
				if !ok {
					t.Fatal("not supported")
				}
				l.check(t, b.run(y)[0], in, fusedExpertsLimit(n))
			})
		}
	})
}
