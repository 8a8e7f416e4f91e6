package binding

// #include "bridge.h"
// #include "products.h"
import "C"

// MulMat is b times the transpose of a, in F32.
//
//	a:   [k, m, x, y]         weights, any type
//	b:   [k, n, x*r, y*s]     F32 (or F16)
//	res: [m, n, x*r, y*s]
//
// On the CPU it is a kernel of this project where there is one for a's type: the same
// products, added up in another order.
func (g *Graph) MulMat(a, b *Tensor) *Tensor {
	need(a.Dim(0) == b.Dim(0) && b.Dim(2)%a.Dim(2) == 0 && b.Dim(3)%a.Dim(3) == 0, "mul_mat", "shapes do not fit", a, b)
	need(a.Stride(0) <= a.Stride(1), "mul_mat", "the first operand is transposed", a, b)
	if b.Type() == F32 && contiguousRows(b) && b.Dim(3) == 1 && g.multiplies(a) {
		team := g.be.host().team
		g.teamWork = max(g.teamWork, int64(C.inkling_product_work(team, a.c(), b.c())))
		return g.node(C.inkling_product(g.ctx, a.c(), b.c(), team))
	}
	return g.plainMulMat(a, b)
}

// plainMulMat is MulMat by ggml's kernels.
func (g *Graph) plainMulMat(a, b *Tensor) *Tensor { return g.node(C.ggml_mul_mat(g.ctx, a.c(), b.c())) }

// MulMatF32 is MulMat with accumulation in F32 also on devices whose default is F16.
func (g *Graph) MulMatF32(a, b *Tensor) *Tensor {
	t := g.MulMat(a, b)
	if t.c().op != C.GGML_OP_MUL_MAT {
		return t
	}
	C.ggml_mul_mat_set_prec(t.c(), C.GGML_PREC_F32)
	return t
}

// OutProd is a times the transpose of b, where both have their columns in memory
// order: the sum over k of outer products.
//
//	a:   [m, k, x, y]       F32
//	b:   [n, k, x*r, y*s]   F32
//	res: [m, n, x*r, y*s]
func (g *Graph) OutProd(a, b *Tensor) *Tensor {
	need(a.Type() == F32 && b.Type() == F32 && contiguousRows(a), "out_prod", "want F32 with contiguous rows", a, b)
	need(a.Stride(0) <= a.Stride(1), "out_prod", "the first operand is transposed", a, b)
	need(a.Dim(1) == b.Dim(1) && b.Dim(2)%a.Dim(2) == 0 && b.Dim(3)%a.Dim(3) == 0, "out_prod", "shapes do not fit", a, b)
	return g.node(C.ggml_out_prod(g.ctx, a.c(), b.c()))
}

// MulMatID multiplies each row of b by the matrices that ids chooses for it.
//
//	as:  [k, m, n_expert]
//	b:   [k, n_used or 1, n_tokens]
//	ids: [n_used, n_tokens]     I32
//	res: [m, n_used, n_tokens]
func (g *Graph) MulMatID(as, b, ids *Tensor) *Tensor {
	need(as.Dim(0) == b.Dim(0) && as.Dim(3) == 1 && b.Dim(3) == 1 && ids.Type() == I32 && ids.Dim(2) == 1 && ids.Dim(3) == 1 &&
		ids.Dim(1) == b.Dim(2) && ids.Dim(0)%b.Dim(1) == 0, "mul_mat_id", "shapes do not fit", as, b, ids)
	return g.node(C.ggml_mul_mat_id(g.ctx, as.c(), b.c(), ids.c()))
}
