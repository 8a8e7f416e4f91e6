package binding

// #include "bridge.h"
// #include "cpuops.h"
import "C"

// Bring gives copies in the CPU's memory of rows that On's device has computed, if Follow
// lets the CPU go on with them. They come together: the scheduler waits for each tensor
// that it copies, as long as such a copy takes. What On's device has to do until it needs
// the CPU's result should be expanded next: it begins with that before the CPU computes.
//
//	ts:  [.., n]   F32 or I32, rows contiguous, as many of each
//	res: the same values; ts itself if the CPU does not go on, or the device can not put them together
func (g *Graph) Bring(ts ...*Tensor) []*Tensor {
	if !g.Beside() {
		return ts
	}
	together, ok := g.together(ts)
	if !ok {
		return ts
	}
	all := g.node(C.inkling_bring(g.ctx, together.c()))
	g.Expand(all)
	res := make([]*Tensor, len(ts))
	begin := int64(0)
	for i, t := range ts {
		from := all
		if t.Type() != F32 {
			from = g.Bits(all, t.Type())
		}
		res[i] = g.Cols(from, begin, t.Dim(0))
		begin += t.Dim(0)
	}
	return res
}

// together puts rows behind one another on On's device, as they are in bits. ok is false
// if it has no kernel for that.
func (g *Graph) together(ts []*Tensor) (all *Tensor, ok bool) {
	cpu := g.place.follows
	g.place.follows = nil
	defer func() { g.place.follows = cpu }()
	for _, t := range ts {
		need((t.Type() == F32 || t.Type() == I32) && contiguousRows(t) && t.Dim(1) == ts[0].Dim(1) && t.Dim(2)*t.Dim(3) == 1,
			"bring", "want as many rows of numbers of 32 bits", t, ts[0])
		if t.Type() != F32 {
			t = g.Bits(t, F32)
		}
		if all == nil {
			all = t
			continue
		}
		if all = g.Concat(all, t, 0); !g.Supports(all) {
			return nil, false
		}
	}
	return all, true
}
