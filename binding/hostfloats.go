package binding

// #include "bridge.h"
import "C"

import "unsafe"

// HostFloats is memory for values that are written to tensors again and again. It is pinned
// where the device can have that: a GPU fetches from it several times as fast as from Go's
// memory, which its driver copies first.
type HostFloats struct {
	Values []float32 // until Close

	buffer C.ggml_backend_buffer_t // nil: Go's memory
}

// NewHostFloats returns memory for n values that are written to tensors of b's device.
func (b *Backend) NewHostFloats(n int) *HostFloats {
	if t := C.ggml_backend_dev_host_buffer_type(b.home().dev.dev); t != nil && n > 0 {
		if buffer := C.ggml_backend_buft_alloc_buffer(t, C.size_t(4*n)); buffer != nil {
			return &HostFloats{unsafe.Slice((*float32)(C.ggml_backend_buffer_get_base(buffer)), n), buffer}
		}
	}
	return &HostFloats{Values: make([]float32, n)}
}

// Close frees the memory.
func (h *HostFloats) Close() {
	if h == nil {
		return
	}
	C.ggml_backend_buffer_free(h.buffer)
	h.Values, h.buffer = nil, nil
}
