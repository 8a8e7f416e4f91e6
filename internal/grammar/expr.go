package grammar

// An expr is what a front end (schema, regex, GBNF) makes of its input: regular
// operators over bytes, and calls of other rules.
type expr any

type (
	literal   string    // these bytes
	class     byteRange // one byte of a range
	seq       []expr    // one after the other; an empty one is the empty text
	alt       []expr    // one of them; an empty one matches nothing
	call      int       // a text of that rule
	textBegin struct{}  // the empty text, where the rule begins
	textEnd   struct{}  // the empty text, where the rule ends
)

type byteRange struct{ lo, hi byte }

// repeat is e, min to max times; max < 0 is without a limit.
type repeat struct {
	e        expr
	min, max int
}

// net is a graph of exprs from node 0 to node n-1: members of an object, of which
// each may be the last, share their continuation here, where a tree would copy it.
type net struct {
	n     int
	edges []netEdge
}

type netEdge struct {
	from, to int
	e        expr
}

func optional(e expr) expr { return repeat{e, 0, 1} }

// rule is a named expr. Strings of one kind with different bounds on their length
// share one automaton: such a rule names the first in like.
type rule struct {
	name string
	body expr
	like int    // the rule whose automaton this one uses; itself otherwise
	min  int    // counted edges that must be passed before the end
	max  int    // counted edges that may be passed; -1: any number
	mark marker // which edges count; nil: none
}

// marker sets count on the edges of a finished automaton.
type marker func(*dfa)

// builder collects the rules of a grammar.
type builder struct{ rules []rule }

// add appends a rule; its body may be set later, so that rules can be recursive.
func (b *builder) add(name string, body expr) call {
	b.rules = append(b.rules, rule{name: name, body: body, like: len(b.rules), max: -1})
	return call(len(b.rules) - 1)
}

// addLike appends a rule with the automaton of r and other bounds on its count.
func (b *builder) addLike(r call, min, max int) call {
	c := b.add(b.rules[r].name, nil)
	b.rules[c].like, b.rules[c].min, b.rules[c].max = int(r), min, max
	return c
}

// nullable says of each rule whether it has the empty text.
func (b *builder) nullable() []bool {
	known := make([]bool, len(b.rules))
	callers := make([][]int, len(b.rules))
	work := make([]int, 0, len(b.rules))
	for i, r := range b.rules {
		if r.like == i {
			eachCall(r.body, func(c call) { callers[c] = append(callers[c], i) })
			work = append(work, i)
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if !known[i] && nullable(b.rules[i].body, known) {
			known[i] = true
			work = append(work, callers[i]...)
		}
	}
	for i, r := range b.rules {
		known[i] = known[r.like]
	}
	return known
}

// eachCall visits the calls in e.
func eachCall(e expr, visit func(call)) {
	switch e := e.(type) {
	case call:
		visit(e)
	case seq:
		for _, x := range e {
			eachCall(x, visit)
		}
	case alt:
		for _, x := range e {
			eachCall(x, visit)
		}
	case repeat:
		eachCall(e.e, visit)
	case net:
		for _, x := range e.edges {
			eachCall(x.e, visit)
		}
	}
}

func nullable(e expr, rules []bool) bool {
	switch e := e.(type) {
	case literal:
		return e == ""
	case seq:
		for _, x := range e {
			if !nullable(x, rules) {
				return false
			}
		}
		return true
	case alt:
		for _, x := range e {
			if nullable(x, rules) {
				return true
			}
		}
	case repeat:
		return e.min == 0 || nullable(e.e, rules)
	case call:
		return rules[e]
	case textBegin, textEnd:
		return true
	case *dfa:
		return len(e.states) > 0 && e.states[0].final
	case net:
		reached := make([]bool, e.n)
		reached[0] = true
		for _, x := range e.edges { // in the order of their nodes
			if reached[x.from] && !reached[x.to] && nullable(x.e, rules) {
				reached[x.to] = true
			}
		}
		return reached[e.n-1]
	}
	return false
}
