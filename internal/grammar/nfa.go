package grammar

import "fmt"

// Limits on what a grammar may compile to. They are far above what answers need
// (a schema of a hundred properties has some thousand states) and keep a hostile
// grammar within some hundred MiB and a second.
const (
	maxNFA    = 1 << 18 // states before determinisation, over all rules
	maxStates = 1 << 16 // states after it
	maxEdges  = 1 << 21 // edges and calls after it
	maxMember = 1 << 21 // states before it, summed over the sets that are states after it
	maxSteps  = 1 << 24 // visits of states that find them, for one rule
	maxRules  = 1 << 15
)

// nfa is Thompson's construction (Regular expression search algorithm, CACM
// 1968) with edges that call a rule.
type nfa struct {
	states   []nfaState
	limit    int
	nullable []bool // of each rule
}

type nfaState struct {
	edges []edge
	calls []callEdge
	empty []int32 // taken without a byte
	begin []int32 // likewise, at the beginning of the text
	end   []int32 // likewise, at its end
}

// edge consumes one byte lo..hi. count: it uses up one of the rule's count.
type edge struct {
	lo, hi byte
	count  bool
	to     int32
}

// callEdge consumes a text of a rule. tail: nothing can follow at ret but the end
// of the caller.
type callEdge struct {
	rule, ret int32
	tail      bool
}

func (n *nfa) add() int32 {
	n.states = append(n.states, nfaState{})
	return int32(len(n.states) - 1)
}

func (n *nfa) empty(from, to int32) {
	n.states[from].empty = append(n.states[from].empty, to)
}

// build adds e after state from and returns the state at its end.
func (n *nfa) build(e expr, from int32) (int32, error) {
	if len(n.states) > n.limit {
		return 0, fmt.Errorf("grammar: more than %d states: %w; use smaller repetition counts, fewer properties or shorter lists", n.limit, ErrTooLarge)
	}
	switch e := e.(type) {
	case literal:
		for i := range len(e) {
			from = n.byteEdge(from, byteRange{e[i], e[i]})
		}
		return from, nil
	case class:
		return n.byteEdge(from, byteRange(e)), nil
	case seq:
		for _, x := range e {
			var err error
			if from, err = n.build(x, from); err != nil {
				return 0, err
			}
		}
		return from, nil
	case alt:
		to := n.add()
		for _, x := range e {
			end, err := n.build(x, from)
			if err != nil {
				return 0, err
			}
			n.empty(end, to)
		}
		return to, nil
	case repeat:
		return n.repeat(e, from)
	case call:
		to := n.add()
		n.states[from].calls = append(n.states[from].calls, callEdge{rule: int32(e), ret: to})
		if n.nullable[e] {
			n.empty(from, to)
		}
		return to, nil
	case textBegin:
		to := n.add()
		n.states[from].begin = append(n.states[from].begin, to)
		return to, nil
	case textEnd:
		to := n.add()
		n.states[from].end = append(n.states[from].end, to)
		return to, nil
	case *dfa:
		return n.embed(e, from), nil
	case net:
		return n.net(e, from)
	}
	return 0, fmt.Errorf("grammar: internal error: expression %T", e)
}

func (n *nfa) byteEdge(from int32, r byteRange) int32 {
	to := n.add()
	n.states[from].edges = append(n.states[from].edges, edge{lo: r.lo, hi: r.hi, to: to})
	return to
}

func (n *nfa) repeat(e repeat, from int32) (int32, error) {
	var err error
	for range e.min {
		if from, err = n.build(e.e, from); err != nil {
			return 0, err
		}
	}
	if e.max < 0 {
		loop := n.add() // apart from from, which may have other ways out
		n.empty(from, loop)
		end, err := n.build(e.e, loop)
		if err != nil {
			return 0, err
		}
		n.empty(end, loop)
		out := n.add()
		n.empty(loop, out)
		return out, nil
	}
	to := n.add()
	n.empty(from, to)
	for range e.max - e.min {
		if from, err = n.build(e.e, from); err != nil {
			return 0, err
		}
		n.empty(from, to)
	}
	return to, nil
}

func (n *nfa) embed(d *dfa, from int32) int32 {
	base := int32(len(n.states))
	n.states = append(n.states, make([]nfaState, len(d.states)+1)...)
	to := base + int32(len(d.states))
	if len(d.states) > 0 {
		n.empty(from, base)
	}
	for i, s := range d.states {
		t := &n.states[base+int32(i)]
		for _, x := range s.edges {
			x.to += base
			t.edges = append(t.edges, x)
		}
		if s.final {
			t.empty = append(t.empty, to)
		}
	}
	return to
}

func (n *nfa) net(e net, from int32) (int32, error) {
	at := make([]int32, e.n)
	for i := range at {
		at[i] = n.add()
	}
	n.empty(from, at[0])
	for _, x := range e.edges {
		// its own state: a repetition must not loop through the other edges of the node
		start := n.add()
		n.empty(at[x.from], start)
		end, err := n.build(x.e, start)
		if err != nil {
			return 0, err
		}
		n.empty(end, at[x.to])
	}
	return at[e.n-1], nil
}
