package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// Limits on the state of one answer. A grammar so ambiguous that it passes one
// loses some of its readings, never its soundness: each configuration that is left
// can be completed to a text of the grammar.
const (
	maxConfigs = 2048 // places in the grammar at once
	maxParents = 2048 // places to which one rule may return
	// maxCache bounds the bytes that one grammar keeps for one vocabulary. What is
	// beyond is forgotten as a whole, and found again as needed.
	maxCache = 64 << 20
)

// done is the place to which the outermost rule returns.
const done = -1

// node is a frame of the stack: a rule that was called at one position of the
// text, from all the places that call it there. Frames share their callers, as in
// a graph-structured stack, and equal ones are one node.
type node struct {
	id       uint64
	min, max int32 // what is left of the rule's count; max -1: no limit
	parents  []parent

	pop *set // where the text goes on after the rule; nil until needed
	gen uint32
}

// parent is a place to which a rule returns: a state, and the frame of its rule,
// nil with done.
type parent struct {
	ret  int32
	node *node
}

func (p parent) id() uint64 {
	if p.node == nil {
		return 0
	}
	return p.node.id
}

func compareParents(a, b parent) int {
	if c := cmp.Compare(a.ret, b.ret); c != 0 {
		return c
	}
	return cmp.Compare(a.id(), b.id())
}

// set is everywhere in the grammar where a text may be: places with a byte to
// come, and whether the text is complete. Equal sets are one.
type set struct {
	places []parent // sorted; every state has edges
	exit   bool     // the outermost rule may end here

	gen  uint32
	next []*set   // by class of byte; nil until needed
	mask []uint64 // the tokens that may follow; nil until needed
}

func (s *set) dead() bool { return len(s.places) == 0 && !s.exit }

// machine runs a grammar over a vocabulary and remembers what it found: a lazily
// built deterministic automaton, whose states are sets, with the mask of each.
type machine struct {
	p     *program
	t     *Tokens
	first *set

	mu       sync.Mutex // guards what follows, and next, mask, pop in sets and nodes
	gen      uint32     // counts how often the caches were emptied
	used     int        // bytes, roughly
	lastID   uint64
	nodes    map[string]*node
	sets     map[string]*set
	profiles map[int32]*profile
	rows     []*[256]int32 // by state, nil until needed
	hole     *node         // the frame of a rule whose caller is left open

	key   []byte // scratch
	path  []*set
	pend  map[int32][]parent // close: the rules that begin here, and where each returns to
	order []int32            // their numbers, sorted
}

func newMachine(p *program, t *Tokens) *machine {
	m := &machine{p: p, t: t, pend: map[int32][]parent{}, path: make([]*set, t.depth+1), rows: make([]*[256]int32, len(p.states))}
	m.forget()
	m.hole = m.node(0, -1, []parent{{ret: done}})
	m.enter(p.root, parent{ret: done})
	m.first = m.close(nil, p.states[p.rules[p.root].start].final)
	return m
}

// forget empties the caches. Matchers and walks in progress keep their sets.
func (m *machine) forget() {
	m.gen++
	m.used = 0
	m.nodes, m.sets, m.profiles = map[string]*node{}, map[string]*set{}, map[int32]*profile{}
}

func (m *machine) charge(bytes int) {
	if m.used += bytes; m.used > maxCache {
		m.forget()
	}
}

// node returns the frame with the given count and parents, which it keeps.
func (m *machine) node(min, max int32, parents []parent) *node {
	slices.SortFunc(parents, compareParents)
	parents = slices.Compact(parents)
	if len(parents) > maxParents {
		parents = parents[:maxParents]
	}
	key := m.key[:0]
	key = binary.LittleEndian.AppendUint32(key, uint32(min))
	key = binary.LittleEndian.AppendUint32(key, uint32(max))
	key = appendPlaces(key, parents)
	m.key = key
	if n, ok := m.nodes[string(key)]; ok {
		return n
	}
	m.charge(160 + 2*len(key))
	m.lastID++
	n := &node{id: m.lastID, min: min, max: max, parents: slices.Clone(parents), gen: m.gen}
	m.nodes[string(key)] = n
	return n
}

func appendPlaces(key []byte, places []parent) []byte {
	for _, p := range places {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.ret))
		key = binary.LittleEndian.AppendUint64(key, p.id())
	}
	return key
}

// set returns the set of the given places, which it keeps.
func (m *machine) set(places []parent, exit bool) *set {
	slices.SortFunc(places, compareParents)
	places = slices.Compact(places)
	if len(places) > maxConfigs {
		places = places[:maxConfigs]
	}
	key := append(m.key[:0], 0)
	if exit {
		key[0] = 1
	}
	key = appendPlaces(key, places)
	m.key = key
	if s, ok := m.sets[string(key)]; ok {
		return s
	}
	m.charge(160 + 2*len(key) + 8*m.p.nClass)
	s := &set{places: slices.Clone(places), exit: exit, gen: m.gen}
	m.sets[string(key)] = s
	return s
}

// close returns the set reachable without a byte from the given places and from
// the calls in m.pend, which it empties. exit: the text may end already.
func (m *machine) close(places []parent, exit bool) *set {
	var out []parent
	seen := map[parent]bool{}
	for _, p := range places {
		seen[p] = true
	}
	for i := 0; i < len(places); i++ { // grows by returns
		at := places[i]
		if at.node == nil {
			exit = true
			continue
		}
		s := &m.p.states[at.ret]
		if s.final && at.node.min == 0 {
			for _, p := range at.node.parents {
				if !seen[p] && len(places) < 4*maxConfigs {
					seen[p] = true
					places = append(places, p)
				}
			}
		}
		if len(s.edges) > 0 {
			out = append(out, at)
		}
		m.call(s, at.node)
	}
	// A rule begins only rules with higher numbers, so that all callers of a rule
	// are known when its turn comes and one frame can hold them.
	for len(m.order) > 0 {
		r := m.order[0]
		m.order = m.order[1:]
		rule := &m.p.rules[r]
		n := m.node(rule.min, rule.max, m.pend[r])
		delete(m.pend, r)
		s := &m.p.states[rule.start]
		if len(s.edges) > 0 {
			out = append(out, parent{rule.start, n})
		}
		m.call(s, n)
	}
	m.order = nil
	return m.set(out, exit)
}

// call notes the calls of state s in frame n.
func (m *machine) call(s *state, n *node) {
	for _, c := range s.calls {
		if c.tail {
			m.enter(c.rule, n.parents...)
		} else {
			m.enter(c.rule, parent{c.ret, n})
		}
	}
}

// enter notes a call of rule that returns to the given places.
func (m *machine) enter(rule int32, to ...parent) {
	if i, ok := slices.BinarySearch(m.order, rule); !ok {
		m.order = slices.Insert(m.order, i, rule)
	}
	m.pend[rule] = append(m.pend[rule], to...)
}

// step returns the set after byte b.
func (m *machine) step(s *set, b byte) *set {
	c := m.p.class[b]
	if s.next == nil || s.gen != m.gen {
		s.next, s.gen = make([]*set, m.p.nClass), m.gen
	}
	if next := s.next[c]; next != nil {
		return next
	}
	var to []parent
	for _, at := range s.places {
		e := m.p.states[at.ret].next(b)
		if e == nil {
			continue
		}
		n := at.node
		if e.count && (n.min > 0 || n.max >= 0) {
			if n.max == 0 {
				continue
			}
			n = m.node(max(n.min-1, 0), max(n.max-1, -1), slices.Clone(n.parents))
		}
		to = append(to, parent{e.to, n})
	}
	next := m.close(to, false)
	if s.gen == m.gen { // not forgotten on the way
		s.next[c] = next
	}
	return next
}

// after returns the set that follows the rule of frame n.
func (m *machine) after(n *node) *set {
	if n.pop == nil || n.gen != m.gen {
		n.pop = m.close(slices.Clone(n.parents), false)
		n.gen = m.gen
	}
	return n.pop
}
