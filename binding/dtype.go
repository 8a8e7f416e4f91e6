package binding

// #include "bridge.h"
import "C"

import "fmt"

// DType is ggml's element type; the numbers are those of ggml_type and of GGUF.
type DType uint32

// The types that graphs are built with. Weights may have any type that Known accepts.
const (
	F32  DType = C.GGML_TYPE_F32
	F16  DType = C.GGML_TYPE_F16
	BF16 DType = C.GGML_TYPE_BF16
	Q8_0 DType = C.GGML_TYPE_Q8_0
	I32  DType = C.GGML_TYPE_I32
	I64  DType = C.GGML_TYPE_I64
)

// Known reports whether this build of ggml has the type, so that its kernels
// can be asked for it.
func (t DType) Known() bool {
	// ggml's table has empty rows for types that were removed.
	return t < C.GGML_TYPE_COUNT && C.ggml_blck_size(C.enum_ggml_type(t)) > 0 && C.ggml_type_size(C.enum_ggml_type(t)) > 0
}

func (t DType) String() string {
	if !t.Known() {
		return fmt.Sprintf("type%d", uint32(t))
	}
	return C.GoString(C.ggml_type_name(C.enum_ggml_type(t)))
}

// BlockSize is the number of elements that are stored together.
func (t DType) BlockSize() int64 { return int64(C.ggml_blck_size(C.enum_ggml_type(t))) }

// Size is the number of bytes of one block.
func (t DType) Size() int64 { return int64(C.ggml_type_size(C.enum_ggml_type(t))) }

// Quantized reports whether the type stores blocks of codes.
func (t DType) Quantized() bool { return bool(C.ggml_is_quantized(C.enum_ggml_type(t))) }

// Multiplied reports whether weights can have the type: ggml has types that only the other
// operand of a product is converted to.
func (t DType) Multiplied() bool {
	return C.ggml_get_type_traits_cpu(C.enum_ggml_type(t)).vec_dot != nil
}
