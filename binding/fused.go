package binding

// #include "bridge.h"
import "C"

import "math"

// FusedOp names an operation of ggml/cuda that does in one node, on CUDA devices,
// what a composition of others does everywhere.
type FusedOp int32

// The operations by file of ggml/cuda; package op has their operands.
const (
	FusedBandAttention FusedOp = 101 // attention.cu
	FusedBandPrefill   FusedOp = 102

	FusedConvAddNorm FusedOp = 201 // decode*.cu
	FusedQKV         FusedOp = 202
	FusedRouter      FusedOp = 203
	FusedRouting     FusedOp = 204
	FusedRows        FusedOp = 205 // rows.cu
	FusedRowSums     FusedOp = 206
	FusedHeadNorm    FusedOp = 207 // headnorm.cu

	FusedProducts    FusedOp = 301 // products.cu
	FusedExpertsUp   FusedOp = 302
	FusedExpertsDown FusedOp = 303

	FusedExpertsOrder FusedOp = 304 // expertsorder.cu
	FusedMatrixUp     FusedOp = 305 // expertsmatrix.cu
	FusedMatrixDown   FusedOp = 306
	FusedExpertsSum   FusedOp = 307 // expertsorder.cu

	FusedDenseProducts FusedOp = 308 // dense.cu
)

// Arg is a parameter of a fused operation.
type Arg int32

// FloatArg passes a float.
func FloatArg(x float32) Arg { return Arg(math.Float32bits(x)) }

// Fuses reports whether the module of the device has fused operations at all. Whether
// it has one for given operands is what Graph.Supports says of the node.
func (d Device) Fuses() bool { return !d.IsCPU() && C.inkling_fused_count(d.dev) > 0 }

// Fused is a node of the operation over src, at most 10, with a result of the type
// and shape given. Of the sources a kernel may write those that its operation says.
// On a device that does not support it the graph can not be allocated.
func (g *Graph) Fused(op FusedOp, t DType, ne [4]int64, args []Arg, src ...*Tensor) *Tensor {
	const maxArgs = 9
	need(len(src) > 0 && len(src) <= C.GGML_MAX_SRC && len(args) <= maxArgs, "fused", "too many operands", src...)
	var cSrc [C.GGML_MAX_SRC]*C.struct_ggml_tensor
	for i, s := range src {
		if s != nil {
			cSrc[i] = s.c()
		}
	}
	var cArgs [maxArgs]C.int32_t
	for i, a := range args {
		cArgs[i] = C.int32_t(a)
	}
	cNE := [4]C.int64_t{C.int64_t(ne[0]), C.int64_t(ne[1]), C.int64_t(ne[2]), C.int64_t(ne[3])}
	return g.node(C.inkling_fused(g.ctx, C.int32_t(op), &cArgs[0], C.int(len(args)), C.enum_ggml_type(t), &cNE[0], &cSrc[0], C.int(len(src))))
}

// Bits is a view of a whose elements are read as another type of the same size.
//
//	a: contiguous
func (g *Graph) Bits(a *Tensor, t DType) *Tensor {
	need(a.Contiguous() && a.Type().Size() == t.Size() && !a.Type().Quantized() && !t.Quantized(), "bits", "want contiguous elements of the same size", a)
	return g.node(C.inkling_bits(g.ctx, a.c(), C.enum_ggml_type(t)))
}
