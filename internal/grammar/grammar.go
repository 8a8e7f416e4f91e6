package grammar

import "sync"

// Grammar is a compiled grammar: the set of texts that an answer may be. It is
// immutable and may be shared by any number of goroutines; what matchers find
// out about it is cached in it, so a grammar that is used again should be kept.
type Grammar struct {
	prog *program

	mu       sync.Mutex
	machines map[*Tokens]*machine // one per vocabulary
}

// States is how many states the automata of the grammar have, which its memory
// goes by.
func (g *Grammar) States() int { return len(g.prog.states) }

// JSON returns the grammar of any JSON object, response format "json_object" of
// the OpenAI API. Keys may repeat, as in RFC 8259.
func JSON() *Grammar {
	b := &builder{}
	root := newJSONRules(b).object()
	g, err := b.grammar(root.(call))
	if err != nil {
		panic(err) // the rules are constants; the tests compile them
	}
	return g
}

// FromRegex compiles a regular expression in RE2 syntax to the grammar of the
// texts that match it as a whole. Lookaround, backreferences and word boundaries
// are an *UnsupportedError.
func FromRegex(re string) (*Grammar, error) {
	x, err := parseRegex(re, "")
	if err != nil {
		return nil, err
	}
	d, err := matchDFA(x, utf8Class, false, "")
	if err != nil {
		return nil, err
	}
	b := &builder{}
	return b.grammar(b.add("regex", d))
}

// Matcher returns the state of one answer, before its first token, in the
// vocabulary t.
func (g *Grammar) Matcher(t *Tokens) *Matcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.machines[t]
	if m == nil {
		m = newMachine(g.prog, t)
		g.machines[t] = m
	}
	return &Matcher{m: m, set: m.first}
}

// grammar compiles the rules.
func (b *builder) grammar(root call) (*Grammar, error) {
	p, err := b.compile(root)
	if err != nil {
		return nil, err
	}
	return &Grammar{prog: p, machines: map[*Tokens]*machine{}}, nil
}
