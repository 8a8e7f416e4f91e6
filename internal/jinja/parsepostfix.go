package jinja

import (
	"slices"
	"strconv"
)

// postfix parses attributes, subscripts and calls.
func (p *exprParser) postfix(x expr) expr {
	for n := 0; ; n++ {
		p.chain(n)
		switch {
		case p.op("."):
			t := p.next()
			switch t.kind {
			case tokName:
				x = attr{x, t.text}
			case tokInt:
				i, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					p.failf("index %s: %w", t.text, err)
				}
				x = item{x, literal{i}}
			default:
				p.failf("%q where a name should be", t.text)
			}
		case p.op("["):
			x = p.subscript(x)
		case p.op("("):
			x = callOf{x, p.args()}
		default:
			return x
		}
	}
}

func (p *exprParser) subscript(x expr) expr {
	var parts [3]expr
	n := 0
	for ; ; n++ {
		if t := p.peek(); t != (lexeme{tokOp, ":"}) && t != (lexeme{tokOp, "]"}) {
			parts[n] = p.expression()
		}
		if n == 2 || !p.op(":") {
			break
		}
	}
	p.want("]")
	if n > 0 {
		return slice{x, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		p.failf("[] without an index")
	}
	return item{x, parts[0]}
}

// args parses the arguments of a call after its "(".
func (p *exprParser) args() args {
	var a args
	for !p.op(")") {
		if p.peek().kind == tokName && len(p.toks) > 1 && p.toks[1] == (lexeme{tokOp, "="}) {
			a.names = append(a.names, p.next().text)
			p.next()
			a.named = append(a.named, p.expression())
		} else {
			a.list = append(a.list, p.expression())
		}
		if !p.op(",") {
			p.want(")")
			break
		}
	}
	return a
}

// filters parses filters, tests and calls of their results.
func (p *exprParser) filters(x expr) expr {
	for n := 0; ; n++ {
		p.chain(n)
		switch {
		case p.op("|"):
			f := p.filterName()
			f.x = x
			x = f
		case p.word("is"):
			x = p.test(x)
		case p.op("("):
			x = callOf{x, p.args()}
		case p.peek() == (lexeme{tokOp, "."}), p.peek() == (lexeme{tokOp, "["}):
			x = p.postfix(x) // more than Jinja2 allows: x|list[0]
		default:
			return x
		}
	}
}

func (p *exprParser) filterName() filterOf {
	f := filterOf{name: p.identifier()}
	if f.fn = filterNamed(f.name); f.fn == nil {
		p.failf("there is no filter %q", f.name)
	}
	if p.op("(") {
		f.args = p.args()
	}
	return f
}

func (p *exprParser) test(x expr) expr {
	t := testOf{x: x, negate: p.word("not")}
	t.name = p.identifier()
	if t.fn = testNamed(t.name); t.fn == nil {
		p.failf("there is no test %q", t.name)
	}
	next := p.peek()
	switch {
	case p.op("("):
		t.args = p.args()
	case next.kind == tokInt, next.kind == tokFloat, next.kind == tokString,
		next.kind == tokName && !slices.Contains([]string{"else", "or", "and", "if", "is", "in", "not", "recursive"}, next.text),
		next.kind == tokOp && (next.text == "[" || next.text == "{"):
		t.args.list = []expr{p.postfix(p.primary())}
	}
	return t
}
