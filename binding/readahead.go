package binding

// #include <stdlib.h>
// #include "bridge.h"
// #include "readahead.h"
import "C"

import "unsafe"

// Reads is what was chosen of experts that are mapped from a file, in bytes of whole
// pages, since the backend was opened.
type Reads struct {
	Chosen   int64 `json:"chosen_bytes"`
	Resident int64 `json:"resident_bytes"` // of them in memory when they were chosen
}

// Sub is what was added to earlier numbers.
func (r Reads) Sub(before Reads) Reads {
	return Reads{r.Chosen - before.Chosen, r.Resident - before.Resident}
}

// HitRate is the share that was in memory, 1 if nothing was chosen.
func (r Reads) HitRate() float64 {
	if r.Chosen == 0 {
		return 1
	}
	return float64(r.Resident) / float64(r.Chosen)
}

// CountReads makes graphs that are built from now on count how much of the experts
// that are chosen is in memory, and ask the system to read the rest at once: for
// mapped files that are larger than memory. Of a backend that has no CPU there is nothing to count.
func (b *Backend) CountReads() {
	if b.reads == nil && b.host() != nil {
		b.reads = (*C.struct_inkling_reads)(C.calloc(1, C.sizeof_struct_inkling_reads))
	}
}

// Reads is what was counted. ok is false without CountReads.
func (b *Backend) Reads() (r Reads, ok bool) {
	if b.reads == nil {
		return Reads{}, false
	}
	var c C.struct_inkling_reads
	C.inkling_reads_get(b.reads, &c)
	return Reads{int64(c.chosen), int64(c.resident)}, true
}

// ReadAhead makes the system read the chosen experts of banks, if CountReads was
// called and they are in host memory. What multiplies by them must be recorded afterwards.
//
//	ids:   [n_used, n]              I32
//	banks: [.., .., n_expert]
func (g *Graph) ReadAhead(ids *Tensor, banks ...*Tensor) {
	host := g.be.host()
	if g.be.reads == nil || g.be.plan {
		return
	}
	need(ids.Type() == I32 && len(banks) > 0, "read_ahead", "want ids and banks", ids)
	cs := make([]*C.struct_ggml_tensor, len(banks))
	for i, t := range banks {
		need(t.Dim(2) == banks[0].Dim(2), "read_ahead", "banks do not fit", t)
		if C.inkling_is_elsewhere(t.c(), host.b) {
			return
		}
		cs[i] = t.c()
	}
	node := C.inkling_read_ahead(g.ctx, ids.c(), &cs[0], C.int(len(cs)), g.be.reads)
	if node == nil {
		return
	}
	before := g.place.follows
	g.place.follows = host
	g.Expand(g.node(node))
	g.place.follows = before
}

func (b *Backend) freeReads() {
	C.free(unsafe.Pointer(b.reads))
	b.reads = nil
}
