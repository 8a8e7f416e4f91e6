package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is what a token of an expression is.
type tokenKind int

const (
	tokEnd tokenKind = iota
	tokName
	tokInt
	tokFloat
	tokString
	tokOp
)

// lexeme is a token of an expression.
type lexeme struct {
	kind tokenKind
	text string // of a string: its value
}

// operators, the longer ones first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=",
	"+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|",
}

// lex cuts the inside of a tag into tokens.
func lex(s string, line int) []lexeme {
	var out []lexeme
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return out
		}
		r, _ := utf8.DecodeRuneInString(s)
		n := 0
		switch {
		case r == '_' || unicode.IsLetter(r):
			n = span(s, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
			out = append(out, lexeme{tokName, s[:n]})
		case r >= '0' && r <= '9':
			var t lexeme
			t, n = lexNumber(s)
			out = append(out, t)
		case r == '\'' || r == '"':
			var text string
			text, n = lexString(s, line)
			out = append(out, lexeme{tokString, text})
		default:
			for _, op := range operators {
				if strings.HasPrefix(s, op) {
					n = len(op)
					break
				}
			}
			if n == 0 {
				failf("line %d: unexpected %q", line, r)
			}
			out = append(out, lexeme{tokOp, s[:n]})
		}
		s = s[n:]
	}
}

func span(s string, in func(rune) bool) int {
	n := strings.IndexFunc(s, func(r rune) bool { return !in(r) })
	if n < 0 {
		return len(s)
	}
	return n
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' || r == '_' }

func lexNumber(s string) (lexeme, int) {
	n := span(s, isDigit)
	kind := tokInt
	if n+1 < len(s) && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		kind = tokFloat
		n++
		n += span(s[n:], isDigit)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if d := span(s[m:], isDigit); d > 0 {
			kind = tokFloat
			n = m + d
		}
	}
	return lexeme{kind, strings.ReplaceAll(s[:n], "_", "")}, n
}

// lexString reads a string literal with Python's escapes and returns its value and its length.
func lexString(s string, line int) (string, int) {
	q := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case q:
			return b.String(), i + 1
		case '\\':
			i++
			if i == len(s) {
				break
			}
			i += unescape(&b, s[i:]) - 1
		default:
			b.WriteByte(c)
		}
	}
	failf("line %d: a text in quotes does not end", line)
	return "", 0
}

// unescape writes what stands for the escape s, without its backslash, and returns its length.
func unescape(b *strings.Builder, s string) int {
	const from, to = "abfnrtv\\'\"\n", "\a\b\f\n\r\t\v\\'\""
	if i := strings.IndexByte(from, s[0]); i >= 0 {
		if i < len(to) {
			b.WriteByte(to[i])
		}
		return 1
	}
	if n, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; ok && len(s) > n {
		if c, err := strconv.ParseUint(s[1:1+n], 16, 32); err == nil {
			b.WriteRune(rune(min(c, unicode.MaxRune+1)))
			return 1 + n
		}
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1
}
