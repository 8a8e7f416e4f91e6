package grammar

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds on what the grammars of JSON leave open, so that a model cannot go on for
// ever between two tokens of JSON.
const (
	maxIndent   = 20 // blanks after a line break
	maxIntegral = 18 // digits before the point: an int64
	maxFraction = 17 // digits after it: a float64
	maxExponent = 2  // digits of the exponent: far from a float64's limit
)

var digit = class{'0', '9'}

// jsonRules are the rules that all JSON grammars share, added when first used.
type jsonRules struct {
	b      *builder
	shared map[string]call
}

func newJSONRules(b *builder) *jsonRules { return &jsonRules{b: b, shared: map[string]call{}} }

func (j *jsonRules) rule(name string, body func() expr) call {
	if r, ok := j.shared[name]; ok {
		return r
	}
	r := j.b.add(name, nil)
	j.shared[name] = r
	j.b.rules[r].body = body()
	return r
}

// space is what may stand between two tokens of JSON: nothing, a blank, or a line
// break and an indent.
func (j *jsonRules) space() expr {
	return j.rule("space", func() expr {
		return alt{seq{}, literal(" "), seq{literal("\n"), repeat{alt{literal(" "), literal("\t")}, 0, maxIndent}}}
	})
}

// text is a string of min to max characters; max < 0 is without a limit. The
// automaton is the same for all bounds: it counts its characters at run time.
func (j *jsonRules) text(min, max int) expr {
	base := j.rule("string", func() expr {
		return seq{literal(`"`), repeat{jsonChar(), 0, -1}, literal(`"`)}
	})
	j.b.rules[base].mark = countChars
	if min == 0 && max < 0 {
		return base
	}
	name := fmt.Sprintf("string %d %d", min, max)
	if r, ok := j.shared[name]; ok {
		return r
	}
	r := j.b.addLike(base, min, max)
	j.shared[name] = r
	return r
}

// countChars marks the edges that begin a character: those beside the closing
// quote.
func countChars(d *dfa) {
	for i := 1; i < len(d.states); i++ {
		s := &d.states[i]
		if q := s.next('"'); q == nil || !d.states[q.to].final {
			continue
		}
		for k := range s.edges {
			s.edges[k].count = !d.states[s.edges[k].to].final
		}
	}
}

// jsonChar is one character of a string in every spelling of RFC 8259 that is
// valid Unicode: no lone surrogates.
func jsonChar() expr {
	hex := alt{class{'0', '9'}, class{'a', 'f'}, class{'A', 'F'}}
	letterD := alt{literal("d"), literal("D")}
	return alt{
		utf8Class([]runeRange{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}}),
		seq{literal(`\`), oneOf(`"\/bfnrt`)},
		seq{literal(`\u`), alt{
			seq{alt{class{'0', '9'}, class{'a', 'c'}, class{'A', 'C'}, class{'e', 'f'}, class{'E', 'F'}}, hex, hex, hex},
			seq{letterD, class{'0', '7'}, hex, hex},
			seq{ // a high surrogate, then a low one
				letterD,
				alt{literal("8"), literal("9"), oneOf("abAB")},
				hex, hex,
				literal(`\u`), letterD, oneOf("cdefCDEF"), hex, hex,
			},
		}},
	}
}

func oneOf(bytes string) expr {
	var a alt
	for i := range len(bytes) {
		a = append(a, class{bytes[i], bytes[i]})
	}
	return a
}

// jsonEncoding spells characters inside a string in one way: as they are where
// JSON allows it, else by the short escape, else by \u.
func jsonEncoding(ranges []runeRange) expr {
	var raw []runeRange
	var out alt
	for _, r := range ranges {
		for c := r.lo; c <= min(r.hi, 0x1F); c++ {
			out = append(out, literal(escapeRune(c)))
		}
		for _, c := range []rune{'"', '\\'} {
			if r.lo <= c && c <= r.hi {
				out = append(out, literal(escapeRune(c)))
			}
		}
		for _, allowed := range []runeRange{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, utf8.MaxRune}} {
			if lo, hi := max(r.lo, allowed.lo), min(r.hi, allowed.hi); lo <= hi {
				raw = append(raw, runeRange{lo, hi})
			}
		}
	}
	return append(out, utf8Class(raw))
}

// escapeRune is the escape of a character that must not stand in a string.
func escapeRune(c rune) string {
	const short = "\"\\\b\f\n\r\t"
	if i := strings.IndexRune(short, c); i >= 0 {
		return `\` + `"\bfnrt`[i:i+1]
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// quote is a string as jsonEncoding spells it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if c < 0x20 || c == '"' || c == '\\' {
			b.WriteString(escapeRune(c))
		} else {
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// integral is the digits of a number before the point.
func integral() expr {
	return alt{literal("0"), seq{class{'1', '9'}, repeat{digit, 0, maxIntegral - 1}}}
}

func minus() expr { return optional(literal("-")) }

func fraction(max int) expr { return optional(seq{literal("."), repeat{digit, 1, max}}) }

func (j *jsonRules) integer() expr {
	return j.rule("integer", func() expr {
		return alt{literal("0"), seq{minus(), class{'1', '9'}, repeat{digit, 0, maxIntegral - 1}}}
	})
}

func (j *jsonRules) number() expr {
	return j.rule("number", func() expr {
		return seq{minus(), integral(), fraction(maxFraction), optional(seq{
			alt{literal("e"), literal("E")}, optional(alt{literal("+"), literal("-")}), repeat{digit, 1, maxExponent},
		})}
	})
}

func boolean() expr { return alt{literal("true"), literal("false")} }

// value is any JSON value.
func (j *jsonRules) value() expr {
	return j.rule("value", func() expr {
		return alt{j.object(), j.array(), j.text(0, -1), j.number(), boolean(), literal("null")}
	})
}

// object is any JSON object.
func (j *jsonRules) object() expr {
	return j.rule("object", func() expr {
		member := seq{j.text(0, -1), j.colon(), j.value()}
		return j.braces("{", j.list(member, 0, -1), "}")
	})
}

// array is any JSON array.
func (j *jsonRules) array() expr {
	return j.rule("array", func() expr {
		return j.braces("[", j.list(j.value(), 0, -1), "]")
	})
}

func (j *jsonRules) colon() expr { return seq{j.space(), literal(":"), j.space()} }

func (j *jsonRules) comma() expr { return seq{j.space(), literal(","), j.space()} }

func (j *jsonRules) braces(open string, body expr, end string) expr {
	return seq{literal(open), j.space(), body, j.space(), literal(end)}
}

// list is min to max items with commas between.
func (j *jsonRules) list(item expr, min, max int) expr {
	if max == 0 {
		return seq{}
	}
	rest := repeat{seq{j.comma(), item}, floor0(min - 1), max - 1}
	if max < 0 {
		rest.max = -1
	}
	if min == 0 {
		return optional(seq{item, rest})
	}
	return seq{item, rest}
}

func floor0(n int) int { return max(n, 0) }
