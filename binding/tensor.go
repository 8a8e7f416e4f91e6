package binding

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Tensor is ggml's tensor struct itself: shape, strides, type, and where the
// data lies. It lives in C memory and is never copied.
type Tensor C.struct_ggml_tensor

func (t *Tensor) c() *C.struct_ggml_tensor { return (*C.struct_ggml_tensor)(t) }

func wrap(t *C.struct_ggml_tensor) *Tensor { return (*Tensor)(t) }

func unsafePointer[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// Dim is the number of elements along dimension i, 0 to 3.
func (t *Tensor) Dim(i int) int64 { return int64(t.c().ne[i]) }

// Stride is the distance in bytes between neighbours along dimension i.
func (t *Tensor) Stride(i int) int64 { return int64(t.c().nb[i]) }

// Shape is [ne0, ne1, ne2, ne3].
func (t *Tensor) Shape() [4]int64 {
	return [4]int64{t.Dim(0), t.Dim(1), t.Dim(2), t.Dim(3)}
}

// Type is the element type.
func (t *Tensor) Type() DType { return DType(t.c()._type) }

// Elems is the number of elements.
func (t *Tensor) Elems() int64 { return t.Dim(0) * t.Dim(1) * t.Dim(2) * t.Dim(3) }

// Bytes is the number of bytes from the first element to the last.
func (t *Tensor) Bytes() int64 { return int64(C.ggml_nbytes(t.c())) }

// Contiguous reports whether the elements lie without gaps in ggml's order.
func (t *Tensor) Contiguous() bool { return bool(C.ggml_is_contiguous(t.c())) }

// Name is the tensor's name, empty if it was given none.
func (t *Tensor) Name() string { return C.GoString(&t.c().name[0]) }

// SetName names the tensor for messages and dumps. ggml keeps 63 bytes.
func (t *Tensor) SetName(name string) *Tensor {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	C.ggml_set_name(t.c(), s)
	return t
}

func (t *Tensor) String() string {
	return fmt.Sprintf("%s %s%v", t.Name(), t.Type(), t.Shape())
}

// SetFloats writes x to the F32 tensor t, from its first element on.
func (t *Tensor) SetFloats(x []float32) { set(t, F32, x, 4) }

// SetInt32s writes x to the I32 tensor t.
func (t *Tensor) SetInt32s(x []int32) { set(t, I32, x, 4) }

// SetInt64s writes x to the I64 tensor t.
func (t *Tensor) SetInt64s(x []int64) { set(t, I64, x, 8) }

// SetBytes writes raw data of t's own type, starting at byte offset off.
func (t *Tensor) SetBytes(x []byte, off int64) {
	if off < 0 || off+int64(len(x)) > t.Bytes() {
		fail("tensor_set", "%d bytes at offset %d do not fit", []*Tensor{t}, len(x), off)
	}
	if len(x) > 0 && !t.planned() {
		C.ggml_backend_tensor_set(t.c(), unsafe.Pointer(&x[0]), C.size_t(off), C.size_t(len(x)))
	}
}

func set[T any](t *Tensor, want DType, x []T, size int64) {
	if t.Type() != want || int64(len(x)) > t.Elems() || !t.Contiguous() {
		fail("tensor_set", "%d values of type %s do not fit", []*Tensor{t}, len(x), want)
	}
	if len(x) > 0 && !t.planned() {
		C.ggml_backend_tensor_set(t.c(), unsafe.Pointer(&x[0]), 0, C.size_t(int64(len(x))*size))
	}
}

// Floats reads the first len(dst) elements of the contiguous F32 tensor t.
func (t *Tensor) Floats(dst []float32) { get(t, F32, dst, 4) }

// Int32s reads the first len(dst) elements of the contiguous I32 tensor t.
func (t *Tensor) Int32s(dst []int32) { get(t, I32, dst, 4) }

// ReadBytes reads len(dst) bytes of raw data, starting at byte offset off.
func (t *Tensor) ReadBytes(dst []byte, off int64) {
	if off < 0 || off+int64(len(dst)) > t.Bytes() {
		fail("tensor_get", "%d bytes at offset %d lie outside", []*Tensor{t}, len(dst), off)
	}
	if len(dst) > 0 && !t.planned() {
		C.ggml_backend_tensor_get(t.c(), unsafe.Pointer(&dst[0]), C.size_t(off), C.size_t(len(dst)))
	}
}

func get[T any](t *Tensor, want DType, dst []T, size int64) {
	if t.Type() != want || int64(len(dst)) > t.Elems() || !t.Contiguous() {
		fail("tensor_get", "%d values of type %s are not there", []*Tensor{t}, len(dst), want)
	}
	if len(dst) > 0 && !t.planned() {
		C.ggml_backend_tensor_get(t.c(), unsafe.Pointer(&dst[0]), 0, C.size_t(int64(len(dst))*size))
	}
}

// planned reports whether t has a place on a planner and no memory.
func (t *Tensor) planned() bool { return t.c().data == nil && t.c().buffer != nil }

// ZeroBytes fills n bytes from byte offset off on with zeros.
func (t *Tensor) ZeroBytes(off, n int64) {
	if off < 0 || n < 0 || off+n > t.Bytes() {
		fail("tensor_memset", "%d bytes at offset %d lie outside", []*Tensor{t}, n, off)
	}
	if n > 0 && !t.planned() {
		C.ggml_backend_tensor_memset(t.c(), 0, C.size_t(off), C.size_t(n))
	}
}
