package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on the text of a GBNF grammar.
const (
	maxGBNFBytes = 1 << 20
	maxGBNFDepth = 128
)

// FromGBNF compiles a grammar in llama.cpp's GBNF notation; its texts are those
// of the rule root. Left recursion is an *UnsupportedError.
func FromGBNF(text string) (*Grammar, error) {
	if len(text) > maxGBNFBytes {
		return nil, fmt.Errorf("grammar: a grammar of %d bytes, at most %d are allowed: %w", len(text), maxGBNFBytes, ErrTooLarge)
	}
	p := &gbnfParser{text: text, b: &builder{}, rules: map[string]call{}, used: map[string]int{}}
	if !utf8.ValidString(text) {
		return nil, p.bad("not valid UTF-8")
	}
	if err := p.grammar(); err != nil {
		return nil, err
	}
	for i, r := range p.b.rules {
		if r.body == nil {
			p.pos = p.used[r.name]
			return nil, p.bad(fmt.Sprintf("rule %q is not defined", p.b.rules[i].name))
		}
	}
	root, ok := p.rules["root"]
	if !ok {
		return nil, &SyntaxError{Input: "gbnf", Reason: `there is no rule "root"`}
	}
	return p.b.grammar(root)
}

// gbnfParser reads a grammar by recursive descent.
type gbnfParser struct {
	text  string
	pos   int
	depth int
	b     *builder
	rules map[string]call
	used  map[string]int // where a rule was first named
}

func (p *gbnfParser) bad(reason string) error {
	before := p.text[:p.pos]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &SyntaxError{Input: "gbnf", Where: fmt.Sprintf("line %d, column %d", line, column), Reason: reason}
}

// peek returns the next byte, 0 at the end.
func (p *gbnfParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *gbnfParser) take(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// space skips blanks and comments, and line breaks when lines is set.
func (p *gbnfParser) space(lines bool) {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' {
				p.pos++
			}
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.pos++
		default:
			return
		}
	}
}

func (p *gbnfParser) grammar() error {
	for p.space(true); p.pos < len(p.text); p.space(true) {
		name, err := p.name()
		if err != nil {
			return err
		}
		p.space(false)
		if !p.take("::=") {
			return p.bad(`expected "::=" after the name of a rule`)
		}
		p.space(true)
		body, err := p.alternatives(false)
		if err != nil {
			return err
		}
		if p.b.rules[p.rule(name)].body != nil {
			return p.bad(fmt.Sprintf("rule %q is defined twice", name))
		}
		p.b.rules[p.rule(name)].body = body
		p.take("\r")
		if p.pos < len(p.text) && !p.take("\n") {
			return p.bad("expected the end of the line")
		}
	}
	return nil
}

func (p *gbnfParser) name() (string, error) {
	start := p.pos
	for c := p.peek(); c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'; c = p.peek() {
		p.pos++
	}
	if p.pos == start {
		return "", p.bad("expected the name of a rule: letters, digits and -")
	}
	return p.text[start:p.pos], nil
}

func (p *gbnfParser) rule(name string) call {
	if r, ok := p.rules[name]; ok {
		return r
	}
	r := p.b.add(name, nil)
	p.rules[name] = r
	p.used[name] = p.pos - len(name)
	return r
}

func (p *gbnfParser) alternatives(nested bool) (expr, error) {
	if p.depth++; p.depth > maxGBNFDepth {
		return nil, p.bad(fmt.Sprintf("parentheses nested more than %d deep", maxGBNFDepth))
	}
	defer func() { p.depth-- }()
	var out alt
	for {
		s, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
		p.space(nested)
		if !p.take("|") {
			return out, nil
		}
		p.space(true)
	}
}

func (p *gbnfParser) sequence(nested bool) (expr, error) {
	out := seq{}
	for {
		e, err := p.item()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return out, nil
		}
		p.space(nested)
		if e, err = p.repetition(e, nested); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
}

// item reads what a repetition may follow; nil at the end of a sequence.
func (p *gbnfParser) item() (expr, error) {
	switch c := p.peek(); {
	case p.take(`"`):
		return p.literal()
	case p.take("["):
		return p.class()
	case p.take("."):
		return utf8Class(anyRune), nil
	case p.take("("):
		p.space(true)
		e, err := p.alternatives(true)
		if err != nil {
			return nil, err
		}
		p.space(true)
		if !p.take(")") {
			return nil, p.bad(`expected ")"`)
		}
		return e, nil
	case c == '<' || c == '!':
		return nil, &UnsupportedError{Keyword: "token reference", Path: p.bad("").(*SyntaxError).Where, Reason: "spell the text of the token"}
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		return p.rule(name), nil
	}
	return nil, nil
}

// repetition reads the operators after e.
func (p *gbnfParser) repetition(e expr, nested bool) (expr, error) {
	for {
		low, high := 0, -1
		switch {
		case p.take("*"):
		case p.take("+"):
			low = 1
		case p.take("?"):
			high = 1
		case p.take("{"):
			var err error
			if low, high, err = p.counts(); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
		if p.depth++; p.depth > maxGBNFDepth {
			return nil, p.bad(fmt.Sprintf("more than %d operators on one item", maxGBNFDepth))
		}
		defer func() { p.depth-- }()
		e = repeat{e, low, high}
		p.space(nested)
	}
}

// counts reads the rest of {m}, {m,} or {m,n}, {,n} too.
func (p *gbnfParser) counts() (low, high int, err error) {
	number := func() (int, bool) {
		p.space(true)
		start := p.pos
		for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
			p.pos++
		}
		n, err := strconv.Atoi(p.text[start:p.pos])
		p.space(true)
		return n, err == nil
	}
	low, ok := number()
	high = low
	comma := p.take(",")
	if comma {
		var bounded bool
		if high, bounded = number(); !bounded {
			high = -1
		} else if !ok {
			low, ok = 0, true
		}
	}
	switch {
	case !ok || !p.take("}"):
		return 0, 0, p.bad("expected {m}, {m,} or {m,n}")
	case max(low, high) > maxItemCount:
		return 0, 0, fmt.Errorf("grammar: a repetition of more than %d: %w", maxItemCount, ErrTooLarge)
	case high >= 0 && high < low:
		return 0, 0, p.bad("the second count is less than the first")
	}
	return low, high, nil
}

func (p *gbnfParser) literal() (expr, error) {
	var b strings.Builder
	for {
		switch {
		case p.take(`"`):
			return literal(b.String()), nil
		case p.pos == len(p.text) || p.peek() == '\n':
			return nil, p.bad("a literal without its end")
		}
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		b.WriteRune(r)
	}
}

func (p *gbnfParser) class() (expr, error) {
	negated := p.take("^")
	var ranges []runeRange
	for !p.take("]") {
		if p.pos == len(p.text) || p.peek() == '\n' {
			return nil, p.bad("a character class without its end")
		}
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && !strings.HasPrefix(p.text[p.pos:], "-]") {
			p.pos++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if hi < lo {
			return nil, p.bad("a range that ends before it begins")
		}
		ranges = append(ranges, runeRange{lo, hi})
	}
	if negated {
		ranges = complement(ranges)
	}
	return utf8Class(ranges), nil
}

// char reads one character or escape.
func (p *gbnfParser) char() (rune, error) {
	if !p.take(`\`) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if n == 0 {
			return 0, p.bad("unexpected end")
		}
		p.pos += n
		return r, nil
	}
	digits := 0
	switch c := p.peek(); c {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case 't', 'n', 'r', '"', '[', ']', '\\', '-', '^':
		p.pos++
		if i := strings.IndexByte("tnr", c); i >= 0 {
			return rune("\t\n\r"[i]), nil
		}
		return rune(c), nil
	default:
		return 0, p.bad("an escape that is not known")
	}
	p.pos++
	if p.pos+digits > len(p.text) || !isHex(p.text[p.pos:p.pos+digits]) {
		return 0, p.bad(fmt.Sprintf("expected %d hexadecimal digits", digits))
	}
	n, err := strconv.ParseUint(p.text[p.pos:p.pos+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) || n > utf8.MaxRune {
		return 0, p.bad("not a Unicode character")
	}
	p.pos += digits
	return rune(n), nil
}
