package grammar

// profile is what the vocabulary can do from one state whatever the stack: the
// tokens that stay within the rule of the state, and the prefixes of tokens after
// which the rule may end. Only behind the latter does the stack matter.
type profile struct {
	inside []int32 // tokens, by the count they use up
	levels []int32 // inside[:levels[k]] use up at most k
	dense  []uint64
	exits  []exit
}

// exit is a place in the trie where the rule may end, with count used up.
type exit struct{ v, count int32 }

// maskOf returns the tokens that may follow s.
func (m *machine) maskOf(s *set) []uint64 {
	if s.mask != nil {
		return s.mask
	}
	mask := make([]uint64, m.t.words())
	for _, at := range s.places {
		p := m.profile(at.ret)
		p.add(mask, at.node.max)
		if len(p.exits) == 0 {
			continue
		}
		after := m.after(at.node)
		for _, e := range p.exits {
			if e.count < at.node.min || at.node.max >= 0 && e.count > at.node.max {
				continue
			}
			if e.v > 0 && !after.dead() {
				allow(mask, m.t.at(e.v))
			}
			m.walk(e.v, after, func(v int32, _ *set) { allow(mask, m.t.at(v)) })
		}
	}
	m.charge(8 * len(mask))
	s.mask = mask
	return mask
}

func allow(mask []uint64, ids []int32) {
	for _, id := range ids {
		mask[id>>6] |= 1 << (id & 63)
	}
}

// walk visits the nodes below v whose bytes lead from s to a set that is not dead.
func (m *machine) walk(v int32, s *set, visit func(v int32, s *set)) {
	nodes := m.t.nodes
	base := nodes[v].depth
	m.path[0] = s
	for i, end := v+1, nodes[v].end; i < end; {
		d := nodes[i].depth - base
		next := m.step(m.path[d-1], nodes[i].b)
		if next.dead() {
			i = nodes[i].end
			continue
		}
		m.path[d] = next
		visit(i, next)
		i++
	}
}

// add sets the tokens inside that use up no more than limit; limit < 0 is without
// one.
func (p *profile) add(mask []uint64, limit int32) {
	if limit < 0 || int(limit) >= len(p.levels)-1 {
		if p.dense != nil {
			for i, w := range p.dense {
				mask[i] |= w
			}
			return
		}
		allow(mask, p.inside)
		return
	}
	within, beyond := p.inside[:p.levels[limit]], p.inside[p.levels[limit]:]
	if p.dense == nil || len(within) < len(beyond) {
		allow(mask, within)
		return
	}
	excess := make([]uint64, len(mask))
	allow(excess, beyond)
	for i, w := range p.dense {
		mask[i] |= w &^ excess[i]
	}
}

// profile returns the profile of a state with edges.
func (m *machine) profile(s int32) *profile {
	if p := m.profiles[s]; p != nil {
		return p
	}
	var p *profile
	if m.p.states[s].leaf {
		p = m.leafProfile(s)
	} else {
		p = m.openProfile(s)
	}
	m.charge(4*len(p.inside) + 8*len(p.dense) + 8*len(p.exits))
	m.profiles[s] = p
	return p
}

// openProfile walks with a stack whose bottom is open: the rule's caller.
func (m *machine) openProfile(s int32) *profile {
	p := &profile{}
	// The bytes of s alone: what its calls begin are places of their own.
	start := &set{places: []parent{{s, m.hole}}}
	m.walk(0, start, func(v int32, at *set) {
		if len(at.places) > 0 {
			p.inside = append(p.inside, m.t.at(v)...)
		}
		if at.exit {
			p.exits = append(p.exits, exit{v: v})
		}
	})
	p.levels = []int32{int32(len(p.inside))}
	m.condense(p)
	return p
}

// leafProfile walks a rule without calls: its automaton is deterministic and needs
// no stack, and what the bytes use up of the count is known on the way.
func (m *machine) leafProfile(start int32) *profile {
	type place struct{ state, count int32 }
	p := &profile{}
	path := make([]place, m.t.depth+1)
	path[0] = place{state: start}
	var found []exit // nodes with tokens inside
	nodes := m.t.nodes
	for i, end := int32(1), nodes[0].end; i < end; {
		v := &nodes[i]
		at := path[v.depth-1]
		to := m.row(at.state)[v.b]
		if to < 0 {
			i = v.end
			continue
		}
		at.state = to >> 1
		at.count += to & 1
		path[v.depth] = at
		s := &m.p.states[at.state]
		if len(s.edges) > 0 && v.first < nodes[i+1].first {
			found = append(found, exit{i, at.count})
		}
		if s.final {
			p.exits = append(p.exits, exit{i, at.count})
		}
		i++
	}
	m.byCount(p, found)
	m.condense(p)
	return p
}

// row is the edges of a state as a table: twice the target, plus one if the edge
// counts; -1 without an edge.
func (m *machine) row(s int32) *[256]int32 {
	if row := m.rows[s]; row != nil {
		return row
	}
	row := new([256]int32)
	for b := range row {
		row[b] = -1
	}
	for _, e := range m.p.states[s].edges {
		to := 2 * e.to
		if e.count {
			to++
		}
		for b := int(e.lo); b <= int(e.hi); b++ {
			row[b] = to
		}
	}
	m.rows[s] = row
	return row
}

// byCount lists the tokens of the nodes in the order of their count.
func (m *machine) byCount(p *profile, found []exit) {
	size := []int32{0}
	for _, e := range found {
		for int(e.count) >= len(size) {
			size = append(size, 0)
		}
		size[e.count] += int32(len(m.t.at(e.v)))
	}
	at := make([]int32, len(size)) // where the tokens of each count go next
	p.levels = make([]int32, len(size))
	total := int32(0)
	for k, n := range size {
		at[k] = total
		total += n
		p.levels[k] = total
	}
	p.inside = make([]int32, total)
	for _, e := range found {
		at[e.count] += int32(copy(p.inside[at[e.count]:], m.t.at(e.v)))
	}
}

// condense makes a long list of tokens a mask.
func (m *machine) condense(p *profile) {
	if len(p.inside) < m.t.words() {
		return
	}
	p.dense = make([]uint64, m.t.words())
	allow(p.dense, p.inside)
	if len(p.levels) == 1 {
		p.inside = nil
	}
}
