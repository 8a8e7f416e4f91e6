package grammar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// dfa is the automaton of one rule: deterministic in its bytes; its calls are
// alternatives to the bytes and to each other. State 0 is the start; no states at
// all is the empty language.
type dfa struct{ states []dfaState }

type dfaState struct {
	edges []edge // by byte, disjoint
	calls []callEdge
	final bool
}

// next returns the edge of byte b, nil without one.
func (s *dfaState) next(b byte) *edge {
	for i := range s.edges {
		if e := &s.edges[i]; b <= e.hi {
			if b >= e.lo {
				return e
			}
			return nil
		}
	}
	return nil
}

// regular compiles an expr without calls, and trims it.
func regular(e expr, limit int) (*dfa, error) {
	n := &nfa{limit: maxNFA}
	start := n.add()
	end, err := n.build(e, start)
	if err != nil {
		return nil, err
	}
	d, err := n.determinise(start, end, limit)
	if err != nil {
		return nil, err
	}
	return d.trim(), nil
}

// subsets is the subset construction (Rabin and Scott 1959) in progress.
type subsets struct {
	n     *nfa
	final int32
	limit int
	size  int // members of all sets
	steps int // states visited to find them
	ids   map[string]int32
	sets  [][]int32 // the NFA states of each DFA state that matter for what follows
	d     *dfa
	mark  []int32 // closure: the round in which a state was last seen
	round int32
}

// determinise returns the automaton from start to final.
func (n *nfa) determinise(start, final int32, limit int) (*dfa, error) {
	b := &subsets{n: n, final: final, limit: limit, ids: map[string]int32{}, d: &dfa{}, mark: make([]int32, len(n.states))}
	if _, err := b.state([]int32{start}, true); err != nil {
		return nil, err
	}
	edges := 0
	for i := 0; i < len(b.sets); i++ {
		if err := b.expand(int32(i)); err != nil {
			return nil, err
		}
		edges += len(b.d.states[i].edges) + len(b.d.states[i].calls)
		if edges > maxEdges {
			return nil, fmt.Errorf("grammar: more than %d edges: %w", maxEdges, ErrTooLarge)
		}
	}
	return b.d, nil
}

// closure returns the states reachable from from without a byte, sorted, only those
// with an edge or a call, and whether the text may end there.
func (b *subsets) closure(from []int32, begin bool) (set []int32, final bool) {
	b.round++
	work := append([]int32(nil), from...)
	for _, s := range work {
		b.mark[s] = b.round
	}
	var ends []int32
	visit := func(to []int32) {
		for _, t := range to {
			if b.mark[t] != b.round {
				b.mark[t] = b.round
				work = append(work, t)
			}
		}
	}
	drain := func(keep bool) {
		for len(work) > 0 {
			i := work[len(work)-1]
			work = work[:len(work)-1]
			b.steps++
			s := &b.n.states[i]
			final = final || i == b.final
			if keep && len(s.edges)+len(s.calls) > 0 {
				set = append(set, i)
			}
			visit(s.empty)
			if begin {
				visit(s.begin)
			}
			ends = append(ends, s.end...)
			if !keep {
				visit(s.end)
			}
		}
	}
	drain(true)
	// What lies behind an end assertion counts for this end only.
	visit(ends)
	drain(false)
	slices.Sort(set)
	return set, final
}

// state returns the DFA state of the closure of from.
func (b *subsets) state(from []int32, begin bool) (int32, error) {
	set, final := b.closure(from, begin)
	key := make([]byte, 0, 4*len(set)+1)
	for _, s := range set {
		key = binary.LittleEndian.AppendUint32(key, uint32(s))
	}
	if final {
		key = append(key, 1)
	}
	if id, ok := b.ids[string(key)]; ok {
		return id, nil
	}
	if b.size += len(set); len(b.sets) >= b.limit || b.size > maxMember || b.steps > maxSteps {
		return 0, fmt.Errorf("grammar: an automaton of %d states and more: %w; use smaller repetition counts, fewer properties or shorter lists", len(b.sets), ErrTooLarge)
	}
	id := int32(len(b.sets))
	b.ids[string(key)] = id
	b.sets = append(b.sets, set)
	b.d.states = append(b.d.states, dfaState{final: final})
	return id, nil
}

// expand fills in what leaves DFA state i.
func (b *subsets) expand(i int32) error {
	var all []edge
	byCall := map[int32][]int32{} // rule -> NFA states after the call
	var rules []int32
	for _, s := range b.sets[i] {
		all = append(all, b.n.states[s].edges...)
		for _, c := range b.n.states[s].calls {
			if byCall[c.rule] == nil {
				rules = append(rules, c.rule)
			}
			byCall[c.rule] = append(byCall[c.rule], c.ret)
		}
	}
	edges, err := b.split(all)
	if err != nil {
		return err
	}
	slices.Sort(rules)
	calls := make([]callEdge, 0, len(rules))
	for _, r := range rules {
		ret, err := b.state(byCall[r], false)
		if err != nil {
			return err
		}
		calls = append(calls, callEdge{rule: r, ret: ret})
	}
	b.d.states[i].edges, b.d.states[i].calls = edges, calls
	return nil
}

// split makes overlapping edges disjoint, with the union of their targets.
func (b *subsets) split(all []edge) ([]edge, error) {
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(x, y edge) int { return cmp.Compare(x.lo, y.lo) })
	var cut [257]bool
	for _, e := range all {
		cut[e.lo], cut[int(e.hi)+1] = true, true
	}
	var out []edge
	var live []edge
	next, lo := 0, 0
	for hi := 1; hi <= 256; hi++ {
		if !cut[hi] {
			continue
		}
		for next < len(all) && int(all[next].lo) <= lo {
			live = append(live, all[next])
			next++
		}
		live = slices.DeleteFunc(live, func(e edge) bool { return int(e.hi) < lo })
		if len(live) > 0 {
			var to []int32
			e := edge{lo: byte(lo), hi: byte(hi - 1)}
			for _, l := range live {
				to = append(to, l.to)
				e.count = e.count || l.count
			}
			var err error
			if e.to, err = b.state(to, false); err != nil {
				return nil, err
			}
			if k := len(out) - 1; k >= 0 && int(out[k].hi)+1 == lo && out[k].to == e.to && out[k].count == e.count {
				out[k].hi = e.hi
			} else {
				out = append(out, e)
			}
		}
		lo = hi
	}
	return out, nil
}
