package binding

// #include "bridge.h"
import "C"

// RopeMode says which elements of a row form the pairs that are turned.
type RopeMode int

// RopeNorm pairs neighbours: elements 2i and 2i+1.
const RopeNorm RopeMode = C.GGML_ROPE_TYPE_NORMAL

// RopeExt turns pair i of the first nDims elements of each row by the angle
// pos·freqBase^(-2i/nDims)/factors[i], scaled by freqScale and mixed as YaRN
// does if extFactor is not 0, and multiplies it by attnFactor.
//
//	a:       [n, heads, n_tokens, x]   F32 or F16, contiguous rows
//	pos:     [n_tokens]                I32
//	factors: [>= nDims/2]              F32, or nil for ones
//	res:     [n, heads, n_tokens, x]   contiguous
func (g *Graph) RopeExt(a, pos, factors *Tensor, nDims int, mode RopeMode, nCtxOrig int, freqBase, freqScale, extFactor, attnFactor, betaFast, betaSlow float32) *Tensor {
	need((a.Type() == F32 || a.Type() == F16) && contiguousRows(a), "rope_ext", "want F32 or F16 with contiguous rows", a)
	need(nDims > 0 && nDims%2 == 0 && int64(nDims) <= a.Dim(0) && a.Dim(0)%2 == 0, "rope_ext", "want an even number of elements, no more than a row has", a)
	need(pos.Type() == I32 && pos.Dim(0) == a.Dim(2) && pos.Elems() == pos.Dim(0), "rope_ext", "want one I32 position per token", a, pos)
	var c *C.struct_ggml_tensor
	if factors != nil {
		need(factors.Type() == F32 && factors.Dim(0) >= int64(nDims/2), "rope_ext", "want an F32 factor per pair", a, factors)
		c = factors.c()
	}
	return g.node(C.ggml_rope_ext(g.ctx, a.c(), pos.c(), c, C.int(nDims), C.int(mode), C.int(nCtxOrig),
		C.float(freqBase), C.float(freqScale), C.float(extFactor), C.float(attnFactor), C.float(betaFast), C.float(betaSlow)))
}
