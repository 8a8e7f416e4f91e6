package op

import "github.com/inkling-go/inkling/binding"

// Rows are rows of a table of any type.
//
//	table: [k, rows]
//	ids:   [n]         I32
//	res:   [k, n]      F32
//	ok:    whether the device has a kernel for it
func Rows(g *binding.Graph, table, ids *binding.Tensor) (res *binding.Tensor, ok bool) {
	if res = g.GetRows(table, ids); g.Supports(res) {
		return res, true
	}
	if g.Device().Fuses() {
		if fused := g.Fused(binding.FusedRows, binding.F32, [4]int64{table.Dim(0), ids.Dim(0), 1, 1}, nil, table, ids); g.Supports(fused) {
			return fused, true
		}
	}
	return res, false
}

// FusedRowSums are sums of rows of a table in one launch, on devices that have a kernel for it.
//
//	table: [k, rows]   F32, F16 or BF16
//	ids:   [n, m]      I32, contiguous
//	res:   [k, n]      F32: of row i Σ_j table[ids[i, j]]; false: use the composition
func FusedRowSums(g *binding.Graph, table, ids *binding.Tensor) (*binding.Tensor, bool) {
	if !g.Device().Fuses() {
		return nil, false
	}
	res := g.Fused(binding.FusedRowSums, binding.F32, [4]int64{table.Dim(0), ids.Dim(0), 1, 1}, nil, table, ids)
	return res, g.Supports(res)
}
