package binding

// #include "bridge.h"
import "C"

import (
	"os"
	"slices"
	"unsafe"
)

// span is a piece of host memory: where it begins, and its length in bytes.
type span struct{ at, size uintptr }

// NoPinVariable, set to anything, leaves host memory unpinned: ggml's own name.
const NoPinVariable = "GGML_CUDA_NO_PINNED"

// registerVariable has to be set for CUDA's backend to pin memory that it did not allocate.
const registerVariable = "GGML_CUDA_REGISTER_HOST"

// HostBytes is the size of the pages that hold weights in host memory.
func (m *Memory) HostBytes() int64 {
	n := uintptr(0)
	for _, s := range m.hostPages() {
		n += s.size
	}
	return int64(n)
}

// Pin locks the weights in host memory for a GPU that computes beside the CPU: it
// then copies them at the full speed of its link, and the system does not take their
// pages away. It returns how many bytes of HostBytes were pinned. What the driver
// refuses stays as it is and is copied more slowly.
func (m *Memory) Pin() int64 {
	gpu := m.be.home()
	if _, off := os.LookupEnv(NoPinVariable); off || m.be.plan || gpu.dev.IsCPU() {
		return 0
	}
	n := uintptr(0)
	for _, s := range m.hostPages() {
		if C.inkling_pin(gpu.dev.dev, pointer(s.at), C.size_t(s.size)) {
			m.pinned = append(m.pinned, s)
			n += s.size
		}
	}
	m.be.pinned += len(m.pinned)
	return int64(n)
}

// HasPinned reports whether host memory of b is pinned.
func (b *Backend) HasPinned() bool { return b.pinned > 0 }

func (m *Memory) hostPages() []span { return pages(m.host, uintptr(os.Getpagesize())) }

func (m *Memory) unpin() {
	for _, s := range m.pinned {
		C.inkling_unpin(m.be.home().dev.dev, pointer(s.at))
	}
	m.be.pinned -= len(m.pinned)
	m.pinned = nil
}

// pages are the pages that spans touch, neighbours joined: no page may be pinned twice.
func pages(spans []span, page uintptr) []span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	var out []span
	for _, s := range spans {
		begin, end := s.at/page*page, (s.at+s.size+page-1)/page*page
		if n := len(out); n > 0 && begin <= out[n-1].at+out[n-1].size {
			out[n-1].size = max(out[n-1].size, end-out[n-1].at)
			continue
		}
		out = append(out, span{begin, end - begin})
	}
	return out
}

// pointer is an address of C memory, or of a mapped file.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
