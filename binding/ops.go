package binding

// #include "bridge.h"
import "C"

import (
	"fmt"
	"math"
)

// node counts, places and wraps the result of an operation.
func (g *Graph) node(t *C.struct_ggml_tensor) *Tensor {
	g.count()
	g.pin(wrap(t))
	return wrap(t)
}

// need panics with a ShapeError unless ok.
func need(ok bool, op, reason string, operands ...*Tensor) {
	if !ok {
		fail(op, "%s", operands, reason)
	}
}

// canRepeat reports whether b can be broadcast over a.
func canRepeat(b, a *Tensor) bool {
	for i := range 4 {
		if a.Dim(i)%b.Dim(i) != 0 {
			return false
		}
	}
	return true
}

// contiguousRows reports whether the elements of each row lie without gaps.
func contiguousRows(t *Tensor) bool {
	return t.Stride(0) == t.Type().Size()
}

// Add is a + b, b broadcast over a.
func (g *Graph) Add(a, b *Tensor) *Tensor {
	need(canRepeat(b, a), "add", "shapes do not fit", a, b)
	return g.node(C.ggml_add(g.ctx, a.c(), b.c()))
}

// AddInplace is Add that overwrites a.
func (g *Graph) AddInplace(a, b *Tensor) *Tensor {
	need(canRepeat(b, a), "add", "shapes do not fit", a, b)
	return g.node(C.ggml_add_inplace(g.ctx, a.c(), b.c()))
}

// Sub is a - b, b broadcast over a.
func (g *Graph) Sub(a, b *Tensor) *Tensor {
	need(canRepeat(b, a), "sub", "shapes do not fit", a, b)
	return g.node(C.ggml_sub(g.ctx, a.c(), b.c()))
}

// Mul is the elementwise product, b broadcast over a.
func (g *Graph) Mul(a, b *Tensor) *Tensor {
	need(canRepeat(b, a), "mul", "shapes do not fit", a, b)
	return g.node(C.ggml_mul(g.ctx, a.c(), b.c()))
}

// Div is the elementwise quotient, b broadcast over a.
func (g *Graph) Div(a, b *Tensor) *Tensor {
	need(canRepeat(b, a), "div", "shapes do not fit", a, b)
	return g.node(C.ggml_div(g.ctx, a.c(), b.c()))
}

// Scale is a times s.
func (g *Graph) Scale(a *Tensor, s float32) *Tensor {
	need(contiguousRows(a) && a.Type() == F32, "scale", "want F32 with contiguous rows", a)
	return g.node(C.ggml_scale(g.ctx, a.c(), C.float(s)))
}

// ScaleBias is a times s, plus b.
func (g *Graph) ScaleBias(a *Tensor, s, b float32) *Tensor {
	need(contiguousRows(a) && a.Type() == F32, "scale_bias", "want F32 with contiguous rows", a)
	return g.node(C.ggml_scale_bias(g.ctx, a.c(), C.float(s), C.float(b)))
}

// Fill is a tensor of a's shape whose elements are all c.
func (g *Graph) Fill(a *Tensor, c float32) *Tensor {
	need(a.Type() == F32 && a.Contiguous(), "fill", "want contiguous F32", a)
	return g.node(C.ggml_fill(g.ctx, a.c(), C.float(c)))
}

// Sgn is 1 for positive elements, -1 for negative ones and else 0.
func (g *Graph) Sgn(a *Tensor) *Tensor {
	need(a.Type() == F32 && a.Contiguous(), "sgn", "want contiguous F32", a)
	return g.node(C.ggml_sgn(g.ctx, a.c()))
}

// Arange counts from 0 in steps of step > 0.
//
//	res: [n]    F32
func (g *Graph) Arange(n int64, step float32) *Tensor {
	need(n > 0 && n <= 1<<24 && step > 0, "arange", fmt.Sprintf("%d steps of %g", n, step))
	return g.node(C.ggml_arange(g.ctx, 0, C.float(float32(n)*step), C.float(step)))
}

// RMSNorm normalises rows by their root mean square and multiplies by the weight.
//
//	x:   [n, ...]
//	w:   [n]
//	res: [n, ...]
func (g *Graph) RMSNorm(x, w *Tensor, eps float32) *Tensor {
	need(x.Type() == F32 && contiguousRows(x), "rms_norm", "want F32 with contiguous rows", x)
	return g.Mul(g.node(C.ggml_rms_norm(g.ctx, x.c(), C.float(eps))), w)
}

// Norm is the layer norm: rows are brought to mean 0 and variance 1, multiplied
// by the weight and moved by the bias.
//
//	x:   [n, ...]
//	w:   [n]
//	b:   [n]
//	res: [n, ...]
func (g *Graph) Norm(x, w, b *Tensor, eps float32) *Tensor {
	need(x.Type() == F32 && contiguousRows(x), "norm", "want F32 with contiguous rows", x)
	return g.Add(g.Mul(g.node(C.ggml_norm(g.ctx, x.c(), C.float(eps))), w), b)
}

// SwiGLUSplit is silu(a) times b.
func (g *Graph) SwiGLUSplit(a, b *Tensor) *Tensor {
	need(a.Shape() == b.Shape() && a.Type() == b.Type() && contiguousRows(a) && contiguousRows(b), "swiglu_split", "shapes do not fit", a, b)
	return g.node(C.ggml_swiglu_split(g.ctx, a.c(), b.c()))
}

// SiLU is x·sigmoid(x).
func (g *Graph) SiLU(x *Tensor) *Tensor {
	need(contiguousRows(x), "silu", "want contiguous rows", x)
	return g.node(C.ggml_silu(g.ctx, x.c()))
}

// GELU is the tanh approximation of x·Φ(x). The CPU's kernel looks it up by the
// F16 value of x.
func (g *Graph) GELU(x *Tensor) *Tensor {
	need(contiguousRows(x), "gelu", "want contiguous rows", x)
	return g.node(C.ggml_gelu(g.ctx, x.c()))
}

// GELUErf is the exact form x·Φ(x).
func (g *Graph) GELUErf(x *Tensor) *Tensor {
	need(contiguousRows(x), "gelu_erf", "want contiguous rows", x)
	return g.node(C.ggml_gelu_erf(g.ctx, x.c()))
}

// Sigmoid is 1 / (1 + exp(−x)).
func (g *Graph) Sigmoid(x *Tensor) *Tensor {
	need(contiguousRows(x), "sigmoid", "want contiguous rows", x)
	return g.node(C.ggml_sigmoid(g.ctx, x.c()))
}

// SumRows adds up each row.
//
//	x:   [n, ...]
//	res: [1, ...]
func (g *Graph) SumRows(x *Tensor) *Tensor {
	need(x.Type() == F32 && contiguousRows(x), "sum_rows", "want F32 with contiguous rows", x)
	return g.node(C.ggml_sum_rows(g.ctx, x.c()))
}

// SoftMax is softmax along rows.
func (g *Graph) SoftMax(a *Tensor) *Tensor {
	need(a.Type() == F32 && a.Contiguous(), "soft_max", "want contiguous F32", a)
	return g.node(C.ggml_soft_max(g.ctx, a.c()))
}

// SoftMaxExtInplace overwrites a by softmax(a·scale + mask) along rows.
//
//	a:    [n, rows, x, y]       F32, contiguous
//	mask: [n, >= rows, x/r, y/s] F32 or F16, contiguous; nil for none
func (g *Graph) SoftMaxExtInplace(a, mask *Tensor, scale float32) *Tensor {
	if mask == nil {
		need(a.Type() == F32 && a.Contiguous(), "soft_max_ext", "want contiguous F32", a)
		return g.node(C.ggml_soft_max_ext_inplace(g.ctx, a.c(), nil, C.float(scale), 0))
	}
	need(a.Type() == F32 && a.Contiguous() && mask.Contiguous() && (mask.Type() == F32 || mask.Type() == F16) &&
		mask.Dim(0) == a.Dim(0) && mask.Dim(1) >= a.Dim(1) && a.Dim(2)%mask.Dim(2) == 0 && a.Dim(3)%mask.Dim(3) == 0,
		"soft_max_ext", "shapes do not fit", a, mask)
	return g.node(C.ggml_soft_max_ext_inplace(g.ctx, a.c(), mask.c(), C.float(scale), 0))
}

// FlashAttnExt is softmax(q·kᵀ·scale + mask)·v without the score matrix in memory.
//
//	q:    [dk, n_q, h, b]             F32
//	k:    [dk, n_kv, h/r, b]
//	v:    [dv, n_kv, h/r, b]          not transposed
//	mask: [n_kv, >= n_q, h/s, b/t]    F16, contiguous
//	res:  [dv, h, n_q, b]             !! permuted !!
func (g *Graph) FlashAttnExt(q, k, v, mask *Tensor, scale float32) *Tensor {
	need(q.Type() == F32 && mask.Type() == F16 && mask.Contiguous() &&
		q.Dim(0) == k.Dim(0) && q.Dim(2)%k.Dim(2) == 0 && q.Dim(2)%v.Dim(2) == 0 && q.Dim(3) == k.Dim(3) && q.Dim(3) == v.Dim(3) &&
		k.Dim(1) == v.Dim(1) && mask.Dim(0) == k.Dim(1) && mask.Dim(1) >= q.Dim(1) && q.Dim(2)%mask.Dim(2) == 0 && q.Dim(3)%mask.Dim(3) == 0,
		"flash_attn_ext", "shapes do not fit", q, k, v, mask)
	t := g.node(C.ggml_flash_attn_ext(g.ctx, q.c(), k.c(), v.c(), mask.c(), C.float(scale), 0, 0))
	C.ggml_flash_attn_ext_set_prec(t.c(), C.GGML_PREC_F32)
	return t
}

// SSMConv is a causal convolution along time, separate for each channel:
// res[c, t] = Σ_j w[j, c]·x[t+j, c].
//
//	x:   [k-1+n_tokens, channels, n_seq]   F32, time fastest
//	w:   [k, channels]                     F32
//	res: [channels, n_tokens, n_seq]
func (g *Graph) SSMConv(x, w *Tensor) *Tensor {
	need(x.Dim(3) == 1 && w.Dim(2) == 1 && w.Dim(3) == 1 && x.Dim(1) == w.Dim(1) && x.Dim(0) >= w.Dim(0) &&
		x.Type() == F32 && w.Type() == F32 && x.Contiguous() && w.Contiguous(), "ssm_conv", "shapes do not fit", x, w)
	return g.node(C.ggml_ssm_conv(g.ctx, x.c(), w.c()))
}

// GetRows gathers rows of a, in F32.
//
//	a:   [n, rows, x, y]
//	ids: [m, x, y]         I32
//	res: [n, m, x, y]
func (g *Graph) GetRows(a, ids *Tensor) *Tensor {
	need(ids.Type() == I32 && a.Dim(2) == ids.Dim(1) && a.Dim(3) == ids.Dim(2) && ids.Dim(3) == 1, "get_rows", "shapes do not fit", a, ids)
	return g.node(C.ggml_get_rows(g.ctx, a.c(), ids.c()))
}

// SetRows writes the rows of b to a, which it returns a view of, converting
// from F32 to a's type. The write is ordered only by Expand.
//
//	a:   [n, rows, x, y]
//	b:   [n, m, x, y]           F32, contiguous rows
//	ids: [m, x/r, y/s]          I64 or I32
func (g *Graph) SetRows(a, b, ids *Tensor) *Tensor {
	need(a.Dim(0) == b.Dim(0) && a.Dim(2) == b.Dim(2) && a.Dim(3) == b.Dim(3) && b.Dim(1) == ids.Dim(0) && b.Dim(2)%ids.Dim(1) == 0 &&
		b.Dim(3)%ids.Dim(2) == 0 && ids.Dim(3) == 1 && b.Type() == F32 && (ids.Type() == I64 || ids.Type() == I32) && contiguousRows(a) && contiguousRows(b),
		"set_rows", "shapes do not fit", a, b, ids)
	return g.node(C.ggml_set_rows(g.ctx, a.c(), b.c(), ids.c()))
}

// Cpy copies a to b's memory and type and returns a view of b. The write is
// ordered only by Expand.
func (g *Graph) Cpy(a, b *Tensor) *Tensor {
	need(a.Elems() == b.Elems(), "cpy", "sizes differ", a, b)
	return g.node(C.ggml_cpy(g.ctx, a.c(), b.c()))
}

// Cast copies a to a new contiguous tensor of type t.
func (g *Graph) Cast(a *Tensor, t DType) *Tensor {
	need(t.Known() && a.Dim(0)%t.BlockSize() == 0, "cast", "rows are not whole blocks of "+t.String(), a)
	return g.node(C.ggml_cast(g.ctx, a.c(), C.enum_ggml_type(t)))
}

// Cont copies a to contiguous memory.
func (g *Graph) Cont(a *Tensor) *Tensor { return g.node(C.ggml_cont(g.ctx, a.c())) }

// Permute moves dimension i of a to place ax[i] without copying.
func (g *Graph) Permute(a *Tensor, ax0, ax1, ax2, ax3 int) *Tensor {
	seen := 0
	for _, ax := range []int{ax0, ax1, ax2, ax3} {
		need(ax >= 0 && ax < 4, "permute", "axis outside 0 to 3", a)
		seen |= 1 << ax
	}
	need(seen == 15, "permute", "an axis is named twice", a)
	return g.node(C.ggml_permute(g.ctx, a.c(), C.int(ax0), C.int(ax1), C.int(ax2), C.int(ax3)))
}

// Transpose exchanges the first two dimensions without copying.
func (g *Graph) Transpose(a *Tensor) *Tensor { return g.node(C.ggml_transpose(g.ctx, a.c())) }

// Reshape gives the contiguous a another shape of one to four dimensions.
func (g *Graph) Reshape(a *Tensor, ne ...int64) *Tensor {
	n := int64(1)
	d := [4]int64{1, 1, 1, 1}
	for i, v := range ne {
		n *= v
		d[i] = v
	}
	need(a.Contiguous() && n == a.Elems() && len(ne) >= 1 && len(ne) <= 4, "reshape", "want the same number of contiguous elements", a)
	switch len(ne) {
	case 1:
		return g.node(C.ggml_reshape_1d(g.ctx, a.c(), C.int64_t(d[0])))
	case 2:
		return g.node(C.ggml_reshape_2d(g.ctx, a.c(), C.int64_t(d[0]), C.int64_t(d[1])))
	case 3:
		return g.node(C.ggml_reshape_3d(g.ctx, a.c(), C.int64_t(d[0]), C.int64_t(d[1]), C.int64_t(d[2])))
	}
	return g.node(C.ggml_reshape_4d(g.ctx, a.c(), C.int64_t(d[0]), C.int64_t(d[1]), C.int64_t(d[2]), C.int64_t(d[3])))
}

// View is a window on a's memory: shape ne, strides in bytes of dimensions 1
// to 3, and the byte offset of its first element. Strides may overlap.
func (g *Graph) View(a *Tensor, ne [4]int64, nb1, nb2, nb3, off int64) *Tensor {
	row := a.Type().Size() * (ne[0] / a.Type().BlockSize())
	last := off + row + (ne[1]-1)*nb1 + (ne[2]-1)*nb2 + (ne[3]-1)*nb3
	need(ne[0]%a.Type().BlockSize() == 0 && off >= 0 && nb1 >= 0 && nb2 >= 0 && nb3 >= 0 && min(ne[0], ne[1], ne[2], ne[3]) > 0 && last <= a.Bytes(),
		"view", "outside the tensor's memory", a)
	// ggml compares the elements' own size, without strides, with the memory of the tensor that is viewed in the end.
	root, rootOff := a, off
	if src := a.c().view_src; src != nil {
		root, rootOff = wrap(src), off+int64(a.c().view_offs)
	}
	need(rootOff+row*ne[1]*ne[2]*ne[3] <= root.Bytes(), "view", "overlaps more than ggml accepts", a)
	return g.node(C.ggml_view_4d(g.ctx, a.c(), C.int64_t(ne[0]), C.int64_t(ne[1]), C.int64_t(ne[2]), C.int64_t(ne[3]),
		C.size_t(nb1), C.size_t(nb2), C.size_t(nb3), C.size_t(off)))
}

// Rows is the view of rows first to first+n-1 of a.
func (g *Graph) Rows(a *Tensor, first, n int64) *Tensor {
	return g.View(a, [4]int64{a.Dim(0), n, a.Dim(2), a.Dim(3)}, a.Stride(1), a.Stride(2), a.Stride(3), first*a.Stride(1))
}

// Cols is the view of elements first to first+n-1 of each row of a.
func (g *Graph) Cols(a *Tensor, first, n int64) *Tensor {
	need(a.Type().BlockSize() == 1, "view", "rows of blocks can't be cut", a)
	return g.View(a, [4]int64{n, a.Dim(1), a.Dim(2), a.Dim(3)}, a.Stride(1), a.Stride(2), a.Stride(3), first*a.Type().Size())
}

// Concat puts b behind a along dimension dim.
func (g *Graph) Concat(a, b *Tensor, dim int) *Tensor {
	for i := range 4 {
		need(i == dim || a.Dim(i) == b.Dim(i), "concat", "shapes do not fit", a, b)
	}
	need(dim >= 0 && dim < 4 && a.Type() == b.Type(), "concat", "types differ", a, b)
	return g.node(C.ggml_concat(g.ctx, a.c(), b.c(), C.int(dim)))
}

// Pad appends n zeros to each row.
func (g *Graph) Pad(a *Tensor, n int64) *Tensor {
	need(n >= 0 && n <= math.MaxInt32 && a.Type() == F32, "pad", "want F32", a)
	return g.node(C.ggml_pad(g.ctx, a.c(), C.int(n), 0, 0, 0))
}

// Repeat broadcasts a to the shape ne.
func (g *Graph) Repeat(a *Tensor, ne [4]int64) *Tensor {
	for i := range 4 {
		need(ne[i] > 0 && ne[i]%a.Dim(i) == 0, "repeat", "shapes do not fit", a)
	}
	return g.node(C.ggml_repeat_4d(g.ctx, a.c(), C.int64_t(ne[0]), C.int64_t(ne[1]), C.int64_t(ne[2]), C.int64_t(ne[3])))
}

// ArgsortTopK gives the indices of the k largest elements of each row, the largest first.
//
//	a:   [n, rows, ...]    F32
//	res: [k, rows, ...]    I32, a view
func (g *Graph) ArgsortTopK(a *Tensor, k int) *Tensor {
	need(k >= 1 && int64(k) <= a.Dim(0) && a.Type() == F32 && a.Dim(0) <= math.MaxInt32, "argsort", "too few elements", a)
	g.count() // argsort and the view of it
	return g.node(C.ggml_argsort_top_k(g.ctx, a.c(), C.int(k)))
}

// ArgMax is the index of the largest element of each row.
//
//	a:   [n, rows]   F32
//	res: [rows]      I32
func (g *Graph) ArgMax(a *Tensor) *Tensor {
	need(a.Type() == F32 && contiguousRows(a) && a.Dim(0) <= math.MaxInt32 && a.Dim(2) == 1 && a.Dim(3) == 1, "argmax", "want a matrix of F32", a)
	return g.node(C.ggml_argmax(g.ctx, a.c()))
}
