package inkling

import "github.com/inkling-go/inkling/binding"

// on is the device of layer i.
func (c *config) on(i int) *binding.Backend { return c.devices[i] }

// transposed says that full layer i keeps its values so that the exact attention
// reads them as they lie. On the CPU it is the form of choice for F16 and F32: the
// fused kernel there adds F16 values up in F16.
func (c *config) transposed(i int, kv binding.DType) bool {
	return c.on(i).Device().IsCPU() && (kv == binding.F16 || kv == binding.F32)
}

// hasFlash asks the device of layer i for a fused kernel for cells of type kv.
func (c *config) hasFlash(i int, kv binding.DType) bool {
	if kv == binding.F32 {
		return false // whoever asks for it wants the exact form
	}
	g := c.on(i).NewGraph(8)
	defer g.Close()
	dh, hkv, rows := int64(c.headDimOf(i)), int64(c.nHeadKV[i]), int64(c.nHead/c.nHeadKV[i])
	cells := g.Input("cells", kv, dh, cellPad, 1, hkv)
	return g.Supports(g.FlashAttnExt(g.Input("q", binding.F32, dh, rows, 1, hkv), cells, cells,
		g.Input("mask", binding.F16, cellPad, rows, 1, hkv), 1))
}

// queryRows is the number of queries that a mask of full layers is made for.
// CUDA's fused kernel reads whole tiles of 8 to 64 mask rows, a row for each query
// and head of a group, whether there are as many or not.
func (st *step) queryRows(layer int) int {
	if lc := st.s.layers[layer]; !lc.flash || st.on(layer).Device().IsCPU() {
		return st.N
	}
	group := st.nHead / st.nHeadKV[layer]
	tile := 8
	for tile < 64 && tile < group*st.N {
		tile *= 2
	}
	return (roundUp(group*st.N, tile) + group - 1) / group
}
