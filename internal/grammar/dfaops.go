package grammar

import "fmt"

// trim removes states that cannot be reached or cannot reach an end. It is for
// automata without calls.
func (d *dfa) trim() *dfa {
	if len(d.states) == 0 {
		return d
	}
	back := make([][]int32, len(d.states))
	var work []int32
	useful := make([]bool, len(d.states))
	for i, s := range d.states {
		for _, e := range s.edges {
			back[e.to] = append(back[e.to], int32(i))
		}
		if s.final {
			useful[i] = true
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range back[i] {
			if !useful[p] {
				useful[p] = true
				work = append(work, p)
			}
		}
	}
	if !useful[0] {
		return &dfa{}
	}
	ids := make([]int32, len(d.states))
	order := []int32{0}
	seen := make([]bool, len(d.states))
	seen[0] = true
	for i := 0; i < len(order); i++ {
		ids[order[i]] = int32(i)
		for _, e := range d.states[order[i]].edges {
			if useful[e.to] && !seen[e.to] {
				seen[e.to] = true
				order = append(order, e.to)
			}
		}
	}
	out := &dfa{states: make([]dfaState, len(order))}
	for i, o := range order {
		out.states[i].final = d.states[o].final
		for _, e := range d.states[o].edges {
			if useful[e.to] {
				e.to = ids[e.to]
				out.states[i].edges = append(out.states[i].edges, e)
			}
		}
	}
	return out
}

// intersect returns the texts of both, for automata without calls.
func intersect(a, b *dfa, limit int) (*dfa, error) { return product(a, b, false, limit) }

// subtract returns the texts of a that b does not have.
func subtract(a, b *dfa, limit int) (*dfa, error) { return product(a, b, true, limit) }

// product runs a and b side by side. minus: a text belongs to the result if b does
// not have it, and b may be stuck, as state -1.
func product(a, b *dfa, minus bool, limit int) (*dfa, error) {
	type pair struct{ a, b int32 }
	out := &dfa{}
	if len(a.states) == 0 || len(b.states) == 0 && !minus {
		return out, nil
	}
	ids := map[pair]int32{}
	var pairs []pair
	id := func(p pair) int32 {
		if i, ok := ids[p]; ok {
			return i
		}
		i := int32(len(pairs))
		ids[p] = i
		pairs = append(pairs, p)
		return i
	}
	start := pair{0, 0}
	if len(b.states) == 0 {
		start.b = -1
	}
	id(start)
	for i := 0; i < len(pairs); i++ {
		if i >= limit {
			return nil, fmt.Errorf("grammar: constraints on one value need more than %d states together: %w", limit, ErrTooLarge)
		}
		p := pairs[i]
		sb := &dfaState{}
		if p.b >= 0 {
			sb = &b.states[p.b]
		}
		s := dfaState{final: a.states[p.a].final && sb.final != minus}
		for _, e := range a.states[p.a].edges {
			for lo := int(e.lo); lo <= int(e.hi); {
				hi, to := sb.run(lo, int(e.hi))
				if to >= 0 || minus {
					s.edges = append(s.edges, edge{lo: byte(lo), hi: byte(hi), to: id(pair{e.to, to})})
				}
				lo = hi + 1
			}
		}
		out.states = append(out.states, s)
	}
	return out.trim(), nil
}

// run returns the target of bytes lo..end, where end <= hi is as large as the
// target is the same; -1 without an edge.
func (s *dfaState) run(lo, hi int) (end int, to int32) {
	for _, e := range s.edges {
		if int(e.hi) < lo {
			continue
		}
		if int(e.lo) > lo {
			return min(hi, int(e.lo)-1), -1
		}
		return min(hi, int(e.hi)), e.to
	}
	return hi, -1
}

// accepts reports whether text belongs to the automaton.
func (d *dfa) accepts(text string) bool {
	if len(d.states) == 0 {
		return false
	}
	s := int32(0)
	for i := range len(text) {
		e := d.states[s].next(text[i])
		if e == nil {
			return false
		}
		s = e.to
	}
	return d.states[s].final
}
