package grammar

import (
	"fmt"
	"slices"
)

// program is a compiled grammar: the automata of all rules in one array. Rules are
// numbered so that a rule which begins with a call of another comes before it.
type program struct {
	states []state
	rules  []startRule
	root   int32
	class  [256]byte // bytes that no state tells apart have one class
	nClass int
}

type state struct {
	edges []edge
	calls []callEdge
	final bool
	leaf  bool // its rule calls no other
}

// live reports whether anything can follow within the rule.
func (s *state) live() bool { return len(s.edges)+len(s.calls) > 0 }

func (s *state) next(b byte) *edge {
	return (&dfaState{edges: s.edges}).next(b)
}

// startRule is how a call begins: the first state, and the bounds on its count.
type startRule struct {
	name     string
	start    int32
	min, max int32
}

// compile makes the program whose texts are those of rule root.
func (b *builder) compile(root call) (*program, error) {
	if len(b.rules) > maxRules {
		return nil, fmt.Errorf("grammar: %d rules, at most %d are allowed: %w", len(b.rules), maxRules, ErrTooLarge)
	}
	p := &program{root: int32(root)}
	if err := b.automata(p); err != nil {
		return nil, err
	}
	if !p.dropDeadEnds() {
		return nil, fmt.Errorf("grammar: %w", ErrUnsatisfiable)
	}
	if err := p.sortRules(); err != nil {
		return nil, err
	}
	p.markTails()
	p.classes()
	return p, nil
}

// automata compiles the rules one by one into p.
func (b *builder) automata(p *program) error {
	null := b.nullable()
	p.rules = make([]startRule, len(b.rules))
	budget, edges := maxNFA, 0
	for i, r := range b.rules {
		p.rules[i] = startRule{name: r.name, start: int32(len(p.states)), min: int32(r.min), max: int32(r.max)}
		if r.like != i {
			p.rules[i].start = p.rules[r.like].start
			continue
		}
		n := &nfa{limit: budget, nullable: null}
		start := n.add()
		end, err := n.build(r.body, start)
		if err != nil {
			return err
		}
		budget -= len(n.states)
		d, err := n.determinise(start, end, maxStates-len(p.states))
		if err != nil {
			return err
		}
		if r.mark != nil {
			r.mark(d)
		}
		leaf := true
		base := int32(len(p.states))
		for _, s := range d.states {
			for k := range s.edges {
				s.edges[k].to += base
			}
			for k := range s.calls {
				s.calls[k].ret += base
			}
			edges += len(s.edges) + len(s.calls)
			leaf = leaf && len(s.calls) == 0
			p.states = append(p.states, state{edges: s.edges, calls: s.calls, final: s.final})
		}
		if edges > maxEdges {
			return fmt.Errorf("grammar: more than %d edges: %w", maxEdges, ErrTooLarge)
		}
		for k := range p.states[base:] {
			p.states[int(base)+k].leaf = leaf
		}
	}
	return nil
}

// dropDeadEnds removes the edges and calls after which a rule cannot be finished,
// so that whatever a matcher accepts can be completed. It returns false when the
// root itself cannot.
func (p *program) dropDeadEnds() bool {
	type from struct{ state, rule, ret int32 }
	byEdge := make([][]int32, len(p.states)) // state -> states with an edge to it
	byCall := make([][]from, len(p.states))  // state -> calls that begin at or return to it
	for i, s := range p.states {
		for _, e := range s.edges {
			byEdge[e.to] = append(byEdge[e.to], int32(i))
		}
		for _, c := range s.calls {
			f := from{int32(i), c.rule, c.ret}
			byCall[c.ret] = append(byCall[c.ret], f)
			byCall[p.rules[c.rule].start] = append(byCall[p.rules[c.rule].start], f)
		}
	}
	ends := make([]bool, len(p.states))
	var work []int32
	reach := func(i int32) {
		if !ends[i] {
			ends[i] = true
			work = append(work, i)
		}
	}
	for i, s := range p.states {
		if s.final {
			reach(int32(i))
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, f := range byEdge[i] {
			reach(f)
		}
		for _, f := range byCall[i] {
			if ends[f.ret] && ends[p.rules[f.rule].start] {
				reach(f.state)
			}
		}
	}
	for i := range p.states {
		s := &p.states[i]
		s.edges = slices.DeleteFunc(s.edges, func(e edge) bool { return !ends[e.to] })
		s.calls = slices.DeleteFunc(s.calls, func(c callEdge) bool {
			return !ends[c.ret] || !ends[p.rules[c.rule].start]
		})
	}
	return ends[p.rules[p.root].start]
}

// sortRules numbers the rules in the order in which they can begin within each
// other. A rule that can begin with itself has no such order: left recursion.
func (p *program) sortRules() error {
	const unseen, open, done = 0, 1, 2
	mark := make([]byte, len(p.rules))
	var post []int32
	type frame struct {
		rule int32
		next int
	}
	for root := range p.rules {
		if mark[root] != unseen {
			continue
		}
		stack := []frame{{rule: int32(root)}}
		mark[root] = open
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			calls := p.states[p.rules[f.rule].start].calls
			if f.next == len(calls) {
				mark[f.rule] = done
				post = append(post, f.rule)
				stack = stack[:len(stack)-1]
				continue
			}
			r := calls[f.next].rule
			f.next++
			switch mark[r] {
			case open:
				return &UnsupportedError{
					Keyword: "left recursion", Path: p.rules[r].name,
					Reason: "the rule can begin with itself; write the repetition with * or let the recursion come last",
				}
			case unseen:
				mark[r] = open
				stack = append(stack, frame{rule: r})
			}
		}
	}
	slices.Reverse(post)
	id := make([]int32, len(p.rules))
	rules := make([]startRule, len(p.rules))
	for i, r := range post {
		id[r], rules[i] = int32(i), p.rules[r]
	}
	p.rules, p.root = rules, id[p.root]
	for i := range p.states {
		for k := range p.states[i].calls {
			p.states[i].calls[k].rule = id[p.states[i].calls[k].rule]
		}
	}
	return nil
}

// markTails finds the calls with which their rule ends. The callee returns to the
// caller's caller at once, so that right recursion does not grow the stack.
func (p *program) markTails() {
	for i := range p.states {
		for k := range p.states[i].calls {
			c := &p.states[i].calls[k]
			c.tail = !p.states[c.ret].live()
		}
	}
}

// classes numbers the classes of bytes.
func (p *program) classes() {
	var cut [257]bool
	for _, s := range p.states {
		for _, e := range s.edges {
			cut[e.lo], cut[int(e.hi)+1] = true, true
		}
	}
	n := 0
	for b := range 256 {
		if b > 0 && cut[b] {
			n++
		}
		p.class[b] = byte(n)
	}
	p.nClass = n + 1
}
