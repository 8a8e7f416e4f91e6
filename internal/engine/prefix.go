package engine

import (
	"slices"

	"github.com/inkling-go/inkling/models"
)

// Saved states are for prompts to come that begin as an earlier one did. leastSaved
// is the number of rows from which computing them again costs more than a saved
// state; maxPoints bounds the points of one sequence.
const (
	leastSaved = 64
	maxPoints  = 8
)

// parked is the state of a sequence that had to make room, in host memory.
type parked struct {
	content
	state models.Checkpoint
	reach int
}

func (p *parked) size() int64 { return p.state.Bytes() + p.pointBytes() }

// prefixes finds the state that has most of a new prompt, among the slots and
// what was parked.
type prefixes struct {
	cache  models.Cache
	slots  []*slot
	parked []*parked
	limit  int64 // of host memory
	clock  uint64
}

// bytes is the host memory that is taken.
func (x *prefixes) bytes() int64 {
	n := int64(0)
	for _, s := range x.slots {
		n += s.pointBytes()
	}
	for _, p := range x.parked {
		n += p.size()
	}
	return n
}

// source is where the beginning of a prompt comes from: one of slot and parked.
type source struct {
	*content
	slot   *slot
	parked *parked
	n, at  int // as of content.usable
}

// find returns the best source, without content if there is none, and the row
// where p parts from the states that have most in common with it, whether they
// can be used or not: of rows so near to each other that one point serves them
// all, the first. Of equal sources an idle slot is best, then what is parked,
// then a busy slot.
func (x *prefixes) find(p rows) (best source, parts int) {
	var commons []int
	offer := func(s source, reach int) {
		commons = append(commons, s.fed.common(p))
		if s.n, s.at = s.usable(p, reach); s.n > best.n {
			best = s
		}
	}
	for _, busy := range []bool{false, true} {
		for _, s := range x.slots {
			if (s.t != nil) == busy {
				offer(source{content: &s.content, slot: s}, x.cache.Reach(s.seq))
			}
		}
		if busy {
			break
		}
		for _, k := range x.parked {
			offer(source{content: &k.content, parked: k}, k.reach)
		}
	}
	parts = slices.Max(commons)
	for _, n := range commons {
		if n > slices.Max(commons)-leastSaved {
			parts = min(parts, n)
		}
	}
	return best, parts
}

// place brings as much of p as is known into an idle slot, which there must be,
// and returns it with the number of rows that need not be computed, and their
// last logits if they are all. branch, if not 0, is a row where p and another
// prompt part, and where a point would have helped.
func (x *prefixes) place(p rows) (s *slot, cached int, logits []float32, branch int) {
	x.clock++
	src, parts := x.find(p)
	if parts >= src.n+leastSaved && parts < len(p.ids) {
		branch = parts
	}
	if src.content == nil {
		s = x.vacate(nil)
		s.used = x.clock
		return s, 0, nil, branch
	}
	src.used = x.clock
	if src.at >= 0 {
		src.points[src.at].used = x.clock
	}
	s, err := x.bring(src)
	if err == nil {
		logits, err = s.goBack(src.n, src.at)
	}
	if err != nil { // nothing was promised
		s.reset()
		src.n = 0
	}
	if src.n < len(p.ids) {
		logits = nil
	}
	s.used = x.clock
	x.makeRoom(0, s) // the points that it has taken over from another count too
	return s, src.n, logits, branch
}

// bring returns an idle slot that holds what src holds.
func (x *prefixes) bring(src source) (*slot, error) {
	// Cut back to less than its prompt it would be lost for its own conversation.
	other := src.n+leastSaved <= src.prompt
	switch {
	case src.parked != nil:
		s := x.vacate(nil)
		if err := x.cache.Load(s.seq, src.parked.state); err != nil {
			return s, err
		}
		if !other {
			x.parked = slices.DeleteFunc(x.parked, func(p *parked) bool { return p == src.parked })
		}
		return s, s.adopt(src.content)
	case src.slot.t == nil && !other:
		return src.slot, nil
	case src.slot.t == nil && x.idle(src.slot) == nil:
		x.park(src.slot, src.slot)
		return src.slot, nil
	}
	s := x.vacate(src.slot)
	if err := x.cache.Copy(s.seq, src.slot.seq); err != nil {
		return s, err
	}
	return s, s.adopt(src.content)
}

// idle returns the slot that is best given up: an empty one, or else the one
// that was not used for longest. nil if there is none beside but.
func (x *prefixes) idle(but *slot) *slot {
	var best *slot
	for _, s := range x.slots {
		switch {
		case s.t != nil || s == but:
		case len(s.fed.ids) == 0:
			return s
		case best == nil || s.used < best.used:
			best = s
		}
	}
	return best
}

// vacate empties an idle slot, and parks what it held.
func (x *prefixes) vacate(but *slot) *slot {
	s := x.idle(but)
	x.park(s, but)
	s.reset()
	return s
}

// park copies the state of a slot to host memory, if there is room for it. What
// the slot keep has saved does not make room.
func (x *prefixes) park(s, keep *slot) {
	if len(s.fed.ids) < leastSaved {
		return
	}
	// What went on to become this state has nothing of its own.
	x.parked = slices.DeleteFunc(x.parked, func(p *parked) bool { return s.fed.common(p.fed) == len(p.fed.ids) })
	if !x.makeRoom(x.cache.SaveBytes(s.seq), keep) {
		return
	}
	x.parked = append(x.parked, &parked{
		content: content{fed: s.fed, prompt: s.prompt, points: slices.Clone(s.points), used: s.used},
		state:   x.cache.Save(s.seq), reach: x.cache.Reach(s.seq),
	})
}

// makeRoom drops what was not used for longest until n bytes more fit. Points of
// the slot keep stay.
func (x *prefixes) makeRoom(n int64, keep *slot) bool {
	for x.bytes()+n > x.limit {
		if !x.dropOldest(keep) {
			return false
		}
	}
	return true
}

func (x *prefixes) dropOldest(keep *slot) bool {
	oldest := x.clock + 1
	var drop func()
	for i, p := range x.parked {
		if p.used < oldest {
			oldest, drop = p.used, func() { x.parked = slices.Delete(x.parked, i, i+1) }
		}
	}
	for _, s := range x.slots {
		if s == keep {
			continue
		}
		for i, p := range s.points {
			if p.used < oldest {
				oldest, drop = p.used, func() { s.points = slices.Delete(s.points, i, i+1) }
			}
		}
	}
	if drop == nil {
		return false
	}
	drop()
	return true
}

// mark saves the point that a slot has come to. logits may be nil.
func (x *prefixes) mark(s *slot, logits []float32) {
	n := len(s.fed.ids)
	if n < leastSaved {
		return
	}
	for i := range s.points {
		if p := &s.points[i]; p.Pos() == n {
			if p.used = x.clock; p.logits == nil {
				p.logits = slices.Clone(logits)
			}
			return
		}
	}
	if len(s.points) == maxPoints {
		oldest := 0
		for i, p := range s.points {
			if p.used < s.points[oldest].used {
				oldest = i
			}
		}
		s.points = slices.Delete(s.points, oldest, oldest+1)
	}
	if x.makeRoom(x.cache.CheckpointBytes(s.seq)+4*int64(len(logits)), nil) {
		s.points = append(s.points, point{x.cache.Checkpoint(s.seq), slices.Clone(logits), x.clock})
	}
}
