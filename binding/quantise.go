package binding

// #include <stdlib.h>
// #include "gguf.h"
// #include "bridge.h"
//
// static void inkling_dequantise(enum ggml_type type, const void * src, float * dst, int64_t n) {
//     ggml_get_type_traits(type)->to_float(src, dst, n);
// }
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// maxQuantised is the largest magnitude that Quantise takes: ggml's blocks have
// scales in F16, and its searches over scales abort on what overflows.
const maxQuantised = 65504

// quantisable are the types that ggml_quantize_chunk knows and does not merely copy.
var quantisable = map[DType]bool{
	C.GGML_TYPE_Q4_0: true, C.GGML_TYPE_Q4_1: true, C.GGML_TYPE_Q5_0: true, C.GGML_TYPE_Q5_1: true,
	C.GGML_TYPE_Q8_0: true, C.GGML_TYPE_MXFP4: true,
	C.GGML_TYPE_Q2_K: true, C.GGML_TYPE_Q3_K: true, C.GGML_TYPE_Q4_K: true, C.GGML_TYPE_Q5_K: true, C.GGML_TYPE_Q6_K: true,
	C.GGML_TYPE_TQ1_0: true, C.GGML_TYPE_TQ2_0: true,
	C.GGML_TYPE_IQ2_XXS: true, C.GGML_TYPE_IQ2_XS: true, C.GGML_TYPE_IQ2_S: true,
	C.GGML_TYPE_IQ3_XXS: true, C.GGML_TYPE_IQ3_S: true, C.GGML_TYPE_IQ1_S: true, C.GGML_TYPE_IQ1_M: true,
	C.GGML_TYPE_IQ4_NL: true, C.GGML_TYPE_IQ4_XS: true,
}

// Quantisable reports whether Quantise writes the type.
func (t DType) Quantisable() bool { return quantisable[t] }

// NeedsImatrix reports whether the type cannot be quantised without the importance
// of each column.
func (t DType) NeedsImatrix() bool {
	return t.Quantisable() && bool(C.ggml_quantize_requires_imatrix(C.enum_ggml_type(t)))
}

// Quantise writes rows of cols weights in type t: ggml_quantize_chunk. dst has
// exactly the bytes they take. imatrix has the importance of each column, or is nil.
// It may be called from several goroutines.
//
// Weights that are NaN, infinite or beyond ±65504 are an error.
func Quantise(t DType, dst []byte, src []float32, cols int64, imatrix []float32) error {
	switch {
	case !t.Quantisable():
		return fmt.Errorf("%s is not a type that weights are quantised to", t)
	case cols <= 0 || int64(len(src))%cols != 0 || cols%t.BlockSize() != 0:
		return fmt.Errorf("%d weights in rows of %d: want whole rows of whole blocks of %d", len(src), cols, t.BlockSize())
	case int64(len(dst)) != int64(len(src))/t.BlockSize()*t.Size():
		return fmt.Errorf("%d bytes for %d weights in %s", len(dst), len(src), t)
	case imatrix != nil && int64(len(imatrix)) != cols:
		return fmt.Errorf("importance of %d columns for rows of %d", len(imatrix), cols)
	case imatrix == nil && t.NeedsImatrix():
		return fmt.Errorf("%s needs an importance matrix", t)
	case len(src) == 0:
		return nil
	}
	for i, x := range src {
		if !(x >= -maxQuantised && x <= maxQuantised) {
			return fmt.Errorf("weight %d is %v, want at most %d in magnitude", i, x, maxQuantised)
		}
	}
	for i, x := range imatrix {
		if !(x >= 0 && x <= math.MaxFloat32) {
			return fmt.Errorf("importance of column %d is %v", i, x)
		}
	}
	var importance *C.float
	if imatrix != nil {
		importance = (*C.float)(unsafe.Pointer(&imatrix[0]))
	}
	C.ggml_quantize_chunk(C.enum_ggml_type(t), (*C.float)(unsafe.Pointer(&src[0])), unsafe.Pointer(&dst[0]),
		0, C.int64_t(int64(len(src))/cols), C.int64_t(cols), importance)
	return nil
}

// Dequantise writes the weights that the blocks in src stand for. src has exactly the
// bytes that len(dst) weights take.
func Dequantise(t DType, dst []float32, src []byte) error {
	switch {
	case !t.Quantisable():
		return fmt.Errorf("%s is not a quantised type", t)
	case int64(len(dst))%t.BlockSize() != 0 || int64(len(src)) != int64(len(dst))/t.BlockSize()*t.Size():
		return fmt.Errorf("%d bytes for %d weights in %s", len(src), len(dst), t)
	case len(dst) == 0:
		return nil
	}
	C.inkling_dequantise(C.enum_ggml_type(t), unsafe.Pointer(&src[0]), (*C.float)(unsafe.Pointer(&dst[0])), C.int64_t(len(dst)))
	return nil
}

// OpenableGGUF asks ggml's own reader whether it opens the file, and returns how many
// keys and tensors it finds. It is for tests of the files we write.
func OpenableGGUF(path string) (keys, tensors int64, err error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	ctx := C.gguf_init_from_file(name, C.struct_gguf_init_params{no_alloc: true})
	if ctx == nil {
		return 0, 0, fmt.Errorf("%s: ggml does not open it", path)
	}
	defer C.gguf_free(ctx)
	return int64(C.gguf_get_n_kv(ctx)), int64(C.gguf_get_n_tensors(ctx)), nil
}
