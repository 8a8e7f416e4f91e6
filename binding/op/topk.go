package op

import (
	"math/bits"

	"github.com/inkling-go/inkling/binding"
)

// topK gives the indices of the k largest elements of each row. Where equal
// elements lie on both sides of the edge, the CPU takes the lowest indices.
// Other devices take those that their sort happens to put first, always the
// same for the same row: there each of the six nodes more costs a launch.
//
//	x:   [n, rows]    F32, contiguous
//	res: [k, rows]    I32, a view; CPU: those above the edge by index, then those on it
func topK(g *binding.Graph, x *binding.Tensor, k int) *binding.Tensor {
	ids := g.ArgsortTopK(x, k)
	if !g.Device().IsCPU() {
		return ids
	}
	// ggml's sort is not stable. A second one has no equal keys: 1, 0 or -1 for
	// elements above, on and below the edge, less the index in steps whose sum
	// stays within 1/2. All of these are exact in F32.
	n, rows := x.Dim(0), x.Dim(1)
	step := 1 / float32(uint64(2)<<bits.Len64(uint64(n-1)))
	edge := g.GetRows(g.Reshape(x, 1, n, rows), g.Cols(ids, int64(k-1), 1)) // [1, 1, rows]
	side := g.Sgn(g.Sub(x, g.Reshape(edge, 1, rows)))
	return g.ArgsortTopK(g.Sub(side, g.Arange(n, step)), k)
}
