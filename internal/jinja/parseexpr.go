package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// maxNesting bounds how deep expressions and statements of a template nest, and maxChain the operators in a row: both are the depth
// of the tree.
const (
	maxNesting = 100
	maxChain   = 1000
)

// exprParser parses the inside of a tag, by Jinja2's precedence: if, or, and, not, comparisons, + -, ~, * / // %, **, signs, then
// attributes, calls, filters and tests.
type exprParser struct {
	toks  []lexeme
	line  int
	depth int
}

func newExprParser(s string, line int) *exprParser {
	return &exprParser{toks: lex(s, line), line: line}
}

func (p *exprParser) failf(format string, a ...any) {
	failf("line %d: "+format, append([]any{p.line}, a...)...)
}

func (p *exprParser) peek() lexeme {
	if len(p.toks) == 0 {
		return lexeme{}
	}
	return p.toks[0]
}

func (p *exprParser) next() lexeme {
	t := p.peek()
	if len(p.toks) > 0 {
		p.toks = p.toks[1:]
	}
	return t
}

// op takes the operator s if it is next.
func (p *exprParser) op(s string) bool { return p.take(tokOp, s) }

// word takes the word s if it is next.
func (p *exprParser) word(s string) bool { return p.take(tokName, s) }

func (p *exprParser) take(kind tokenKind, s string) bool {
	if p.peek() == (lexeme{kind, s}) {
		p.next()
		return true
	}
	return false
}

func (p *exprParser) want(s string) {
	if !p.op(s) {
		p.failf("%q where %q should be", p.peek().text, s)
	}
}

func (p *exprParser) identifier() string {
	t := p.next()
	if t.kind != tokName {
		p.failf("%q where a name should be", t.text)
	}
	return t.text
}

// end makes sure that nothing follows.
func (p *exprParser) end() {
	if len(p.toks) > 0 {
		p.failf("%q is not expected here", p.peek().text)
	}
}

// tuple parses an expression, or several with commas, which are a list. noIf leaves a word if to the caller.
func (p *exprParser) tuple(noIf bool) expr {
	one := p.expression
	if noIf {
		one = p.or
	}
	x := one()
	if p.peek() != (lexeme{tokOp, ","}) {
		return x
	}
	items := []expr{x}
	for p.op(",") && len(p.toks) > 0 {
		items = append(items, one())
	}
	return listOf{items, true}
}

func (p *exprParser) expression() expr {
	if p.depth++; p.depth > maxNesting {
		fail(&LimitError{"levels of expressions", maxNesting})
	}
	defer func() { p.depth-- }()
	x := p.or()
	for n := 0; p.word("if"); n++ {
		p.chain(n)
		c := choice{yes: x, cond: p.or()}
		if p.word("else") {
			c.no = p.expression()
		}
		x = c
	}
	return x
}

// chain fails if an operator is the nth in a row and that is too many.
func (p *exprParser) chain(n int) {
	if n >= maxChain {
		fail(&LimitError{"operators in a row", maxChain})
	}
}

func (p *exprParser) or() expr {
	x := p.and()
	for n := 0; p.word("or"); n++ {
		p.chain(n)
		x = any1{x, p.and()}
	}
	return x
}

func (p *exprParser) and() expr {
	x := p.not()
	for n := 0; p.word("and"); n++ {
		p.chain(n)
		x = both{x, p.not()}
	}
	return x
}

func (p *exprParser) not() expr {
	nots := 0
	for ; p.word("not"); nots++ {
		p.chain(nots)
	}
	x := p.comparison()
	for range nots {
		x = not{x}
	}
	return x
}

func (p *exprParser) comparison() expr {
	c := comparison{x: p.arithmetic(0)}
	for {
		t := p.peek()
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), t == lexeme{tokName, "in"}:
			p.next()
		case t == lexeme{tokName, "not"} && len(p.toks) > 1 && p.toks[1] == lexeme{tokName, "in"}:
			p.next()
			p.next()
			t.text = "not in"
		case len(c.ops) == 0:
			return c.x
		default:
			return c
		}
		p.chain(len(c.ops))
		c.ops = append(c.ops, t.text)
		c.ys = append(c.ys, p.arithmetic(0))
	}
}

// levels of the operators between numbers, the loosest first.
var levels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *exprParser) arithmetic(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	x := p.arithmetic(level + 1)
	for n := 0; ; n++ {
		t := p.peek()
		if t.kind != tokOp || !slices.Contains(levels[level], t.text) {
			return x
		}
		p.chain(n)
		p.next()
		x = arithmetic{t.text, x, p.arithmetic(level + 1)}
	}
}

func (p *exprParser) unary(filters bool) expr {
	var signs []string
	for p.peek() == (lexeme{tokOp, "-"}) || p.peek() == (lexeme{tokOp, "+"}) {
		p.chain(len(signs))
		signs = append(signs, p.next().text)
	}
	x := p.postfix(p.primary())
	for _, s := range slices.Backward(signs) {
		if s == "-" {
			x = minus{x}
		} else {
			x = plus{x}
		}
	}
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *exprParser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return name{t.text}
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			p.failf("number %s: %w", t.text, err)
		}
		return literal{n}
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.failf("number %s: %w", t.text, err)
		}
		return literal{f}
	case tokString:
		var b strings.Builder
		b.WriteString(t.text)
		for p.peek().kind == tokString {
			b.WriteString(p.next().text)
		}
		return literal{b.String()}
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return listOf{p.items("]"), false}
		case "{":
			return p.dict()
		}
	}
	p.failf("%q where a value should be", t.text)
	return nil
}

// parenthesis parses what follows "(": a value, or a tuple.
func (p *exprParser) parenthesis() expr {
	if p.op(")") {
		return listOf{tuple: true}
	}
	x := p.expression()
	if p.op(")") {
		return x
	}
	p.want(",")
	return listOf{append([]expr{x}, p.items(")")...), true}
}

// items parses values with commas up to the closer.
func (p *exprParser) items(closer string) []expr {
	var out []expr
	for !p.op(closer) {
		out = append(out, p.expression())
		if !p.op(",") {
			p.want(closer)
			break
		}
	}
	return out
}

func (p *exprParser) dict() expr {
	var d dictOf
	for !p.op("}") {
		d.keys = append(d.keys, p.expression())
		p.want(":")
		d.values = append(d.values, p.expression())
		if !p.op(",") {
			p.want("}")
			break
		}
	}
	return d
}
