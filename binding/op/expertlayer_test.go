package op

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// expertLayer is a layer of experts as the tests of FusedExperts have it, and what its
// weights stand for.
type expertLayer struct {
	fusedExpertsCase
	gate, up, down, gateSh, upSh, downSh       *binding.Tensor
	gateV, upV, downV, gateShV, upShV, downShV []float32
}

// expertsInput is what a layer of experts is computed for.
type expertsInput struct {
	x       []float32 // [k, n]
	ids     []int32   // [used, n]
	weights []float32 // [used+shared, n]
}

func (b *bench) expertLayer(c fusedExpertsCase) *expertLayer {
	b.t.Helper()
	l := &expertLayer{fusedExpertsCase: c}
	l.gate, l.gateV = b.matrices(fusedTypes[c.gate], c.k, c.ff, c.experts)
	l.up, l.upV = b.matrices(fusedTypes[c.gate], c.k, c.ff, c.experts)
	l.down, l.downV = b.matrices(fusedTypes[c.down], c.ff, c.k, c.experts)
	if c.shared > 0 {
		l.gateSh, l.gateShV = b.matrices(fusedTypes[c.sh], c.k, c.ff, c.shared)
		l.upSh, l.upShV = b.matrices(fusedTypes[c.sh], c.k, c.ff, c.shared)
		l.downSh, l.downShV = b.matrices(fusedTypes[c.sh], c.ff, c.k, c.shared)
	}
	return l
}

// draw gives the rows values, and each of them different experts of the amongst that
// begin with first; behind the last is the first.
func (l *expertLayer) draw(rng *rand.Rand, first, amongst int64) expertsInput {
	floats := func(n int64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32()*2 - 1
		}
		return x
	}
	in := expertsInput{x: floats(l.k * l.n), weights: floats((l.used + l.shared) * l.n)}
	for range l.n {
		for _, i := range rng.Perm(int(amongst))[:l.used] {
			in.ids = append(in.ids, int32((first+int64(i))%l.experts))
		}
	}
	return in
}

// fuse is FusedExperts of the layer.
func (l *expertLayer) fuse(g *binding.Graph, x, ids, weights *binding.Tensor) (*binding.Tensor, bool) {
	return FusedExperts(g, x, ids, weights, l.gate, l.up, l.down, l.gateSh, l.upSh, l.downSh)
}

// sum is FusedExperts of the layer where the device must have it, else the composition, so
// that tests of views and replays are tested themselves without a GPU; and how far
// it may be off.
func (l *expertLayer) sum(t *testing.T, g *binding.Graph, x, ids, weights *binding.Tensor) (y *binding.Tensor, limit float64) {
	t.Helper()
	y, ok := l.fuse(g, x, ids, weights)
	if ok {
		return y, fusedExpertsLimit(l.n)
	}
	if g.Device().Fuses() && (l.n <= maxFusedChoices || multipliesTiles(t, g.Backend())) {
		t.Fatal("not supported")
	}
	return l.compose(g, x, ids, weights), composedExpertsLimit
}

// compose is the layer in ggml's own nodes.
func (l *expertLayer) compose(g *binding.Graph, x, ids, weights *binding.Tensor) *binding.Tensor {
	rows := g.Reshape(x, l.k, 1, l.n)
	h := g.SwiGLUSplit(g.MulMatID(l.gate, rows, ids), g.MulMatID(l.up, rows, ids))
	y := g.MulMatID(l.down, h, ids)
	var sum *binding.Tensor
	for s := range l.used + l.shared {
		var part *binding.Tensor
		if s < l.used {
			part = g.Cont(g.View(y, [4]int64{l.k, l.n, 1, 1}, y.Stride(2), y.Stride(2)*l.n, y.Stride(2)*l.n, s*y.Stride(1)))
		} else {
			of := func(bank *binding.Tensor) *binding.Tensor {
				return g.View(bank, [4]int64{bank.Dim(0), bank.Dim(1), 1, 1}, bank.Stride(1), bank.Stride(2), bank.Stride(2), (s-l.used)*bank.Stride(2))
			}
			part = g.MulMat(of(l.downSh), g.SwiGLUSplit(g.MulMat(of(l.gateSh), x), g.MulMat(of(l.upSh), x)))
		}
		part = g.Mul(part, g.Cont(g.Cols(weights, s, 1)))
		if sum == nil {
			sum = part
		} else {
			sum = g.Add(sum, part)
		}
	}
	return sum
}

// want is the layer in float64: [k, n].
func (l *expertLayer) want(in expertsInput) []float64 {
	want := make([]float64, l.k*l.n)
	slots, size := l.used+l.shared, l.k*l.ff
	for r := range l.n {
		row := wide(in.x[r*l.k : (r+1)*l.k])
		for s := range slots {
			e, g, u, d := s-l.used, l.gateShV, l.upShV, l.downShV
			if s < l.used {
				e, g, u, d = int64(in.ids[r*l.used+s]), l.gateV, l.upV, l.downV
			}
			h, _ := times(g[e*size:(e+1)*size], row)
			hu, _ := times(u[e*size:(e+1)*size], row)
			for i := range h {
				h[i] = h[i] / (1 + math.Exp(-h[i])) * hu[i]
			}
			out, _ := times(d[e*size:(e+1)*size], h)
			for i := range out {
				want[r*l.k+int64(i)] += float64(in.weights[r*slots+s]) * out[i]
			}
		}
	}
	return want
}

// check compares a result with want, both by the root mean square of want.
func (l *expertLayer) check(t *testing.T, got []float32, in expertsInput, limit float64) {
	t.Helper()
	want, scaled := l.want(in), make([]float32, len(got))
	scale := 0.0
	for _, v := range want {
		scale += v * v
	}
	scale = math.Sqrt(scale / float64(len(want)))
	for i := range want {
		want[i] /= scale
	}
	for i := range got {
		scaled[i] = got[i] / float32(scale)
	}
	closeTo(t, "sum of experts", scaled, want, limit)
}

// fusedExpertsLimit bounds the error of FusedExperts of n rows by the root mean square of
// the results: x is rounded twice by 0.4 %, h by 0.9 % as its blocks' largest values are 4
// times its mean, in all 1.2 %, and 5 sigma of that. Of many rows x, h and the weights are
// F16, of which each rounds by 0.02 % and scales of a block alike.
func fusedExpertsLimit(n int64) float64 {
	if n > maxFusedChoices {
		return 1e-2
	}
	return 6e-2
}

// composedExpertsLimit is that of the composition, which rounds to 8 bits too, blocks of up
// to 256 values: by 1.5 %, of which values of rows that are larger than others have
// several times as much. Another expert, row or weight would be off by all of a result.
const composedExpertsLimit = 2e-1
