package jinja

import (
	"slices"
	"strings"
)

// parser builds the statements of a template from its segments.
type parser struct {
	segs  []segment
	depth int
}

// keyword returns the first word of a statement and what follows it.
func keyword(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	n := span(s, func(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' })
	return s[:n], s[n:]
}

// until parses statements up to one of the keywords, which it takes too, or to the end of the template if there are none. It returns
// the keyword that it found and the segment of it.
func (p *parser) until(line int, ends ...string) ([]stmt, string, segment) {
	if p.depth++; p.depth > maxNesting {
		fail(&LimitError{"levels of statements", maxNesting})
	}
	defer func() { p.depth-- }()
	var body []stmt
	for len(p.segs) > 0 {
		s := p.segs[0]
		p.segs = p.segs[1:]
		switch s.kind {
		case segText:
			body = append(body, textStmt{s.text})
		case segOutput:
			e := newExprParser(s.text, s.line)
			x := e.tuple(false)
			e.end()
			body = append(body, outputStmt{x})
		case segStatement:
			word, rest := keyword(s.text)
			if slices.Contains(ends, word) {
				return body, word, segment{s.kind, rest, s.line}
			}
			body = append(body, p.statement(word, newExprParser(rest, s.line))...)
		}
	}
	if len(ends) > 0 {
		failf("line %d: %s is missing", line, ends[len(ends)-1])
	}
	return body, "", segment{}
}

func (p *parser) statement(word string, e *exprParser) []stmt {
	switch word {
	case "if":
		return []stmt{p.ifStmt(e)}
	case "for":
		return []stmt{p.forStmt(e)}
	case "set":
		return []stmt{p.set(e)}
	case "macro":
		return []stmt{p.macro(e)}
	case "call":
		return []stmt{p.call(e)}
	case "filter":
		chain := p.chain(e)
		body, _, _ := p.until(e.line, "endfilter")
		return []stmt{filterStmt{chain, body}}
	case "break", "continue":
		e.end()
		if word == "break" {
			return []stmt{jump{breakLoop}}
		}
		return []stmt{jump{continueLoop}}
	case "generation": // marks what a trainer learns from
		body, _, _ := p.until(e.line, "endgeneration")
		return body
	}
	e.failf("statement %q is not known or stands in the wrong place", word)
	return nil
}

func (p *parser) ifStmt(e *exprParser) stmt {
	var s ifStmt
	for {
		s.conds = append(s.conds, e.tuple(false))
		e.end()
		body, word, seg := p.until(e.line, "elif", "else", "endif")
		s.bodies = append(s.bodies, body)
		switch word {
		case "elif":
			e = newExprParser(seg.text, seg.line)
			continue
		case "else":
			body, _, _ = p.until(seg.line, "endif")
			s.bodies = append(s.bodies, body)
		}
		return s
	}
}

func (p *parser) forStmt(e *exprParser) stmt {
	var s forStmt
	s.targets = e.targets(false)
	if !e.word("in") {
		e.failf("for without in")
	}
	s.over = e.tuple(true)
	if e.word("if") {
		s.cond = e.expression()
	}
	e.end()
	body, word, seg := p.until(e.line, "else", "endfor")
	s.body = body
	if word == "else" {
		s.none, _, _ = p.until(seg.line, "endfor")
	}
	return s
}

// targets parses the variables that a for or set gives values to.
func (p *exprParser) targets(members bool) []string {
	paren := p.op("(")
	var out []string
	for {
		t := p.identifier()
		if members && p.op(".") {
			t += "." + p.identifier()
		}
		out = append(out, t)
		if !p.op(",") {
			break
		}
	}
	if paren {
		p.want(")")
	}
	return out
}

func (p *parser) set(e *exprParser) stmt {
	targets := e.targets(true)
	if e.op("=") {
		x := e.tuple(false)
		e.end()
		return setStmt{targets, x}
	}
	s := setBlock{target: targets[0]}
	if len(targets) > 1 {
		e.failf("set of a block wants one variable")
	}
	if e.op("|") {
		s.chain = p.chain(e)
	}
	e.end()
	s.body, _, _ = p.until(e.line, "endset")
	return s
}

// chain parses filters that are applied to a block.
func (p *parser) chain(e *exprParser) []filterOf {
	chain := []filterOf{e.filterName()}
	for e.op("|") {
		e.chain(len(chain))
		chain = append(chain, e.filterName())
	}
	e.end()
	return chain
}

// params parses the parameters of a macro or call block, after the "(".
func (p *exprParser) params() (names []string, defaults []expr) {
	for !p.op(")") {
		names = append(names, p.identifier())
		var x expr
		if p.op("=") {
			x = p.expression()
		}
		defaults = append(defaults, x)
		if !p.op(",") {
			p.want(")")
			break
		}
	}
	return names, defaults
}

func (p *parser) macro(e *exprParser) stmt {
	s := macroStmt{name: e.identifier()}
	e.want("(")
	s.params, s.defaults = e.params()
	e.end()
	s.body, _, _ = p.until(e.line, "endmacro")
	return s
}

func (p *parser) call(e *exprParser) stmt {
	var s callStmt
	if e.op("(") {
		s.params, _ = e.params()
	}
	c, ok := e.unary(false).(callOf)
	if !ok {
		e.failf("call wants the call of a macro")
	}
	e.end()
	s.call = c
	s.body, _, _ = p.until(e.line, "endcall")
	return s
}
