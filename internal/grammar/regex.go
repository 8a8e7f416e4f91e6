package grammar

import (
	"errors"
	"regexp/syntax"
	"strings"
	"unicode"
)

// maxRegexStates bounds the automaton of one regular expression.
const maxRegexStates = 1 << 14

// encoding is how characters are spelled: as UTF-8, or as JSON writes them inside
// a string.
type encoding func([]runeRange) expr

// notNewline is what a dot matches in ECMA-262: no line terminator.
var notNewline = []runeRange{{0, '\n' - 1}, {'\n' + 1, '\r' - 1}, {'\r' + 1, 0x2027}, {0x202A, 0x10FFFF}}

var anyRune = []runeRange{{0, 0x10FFFF}}

// parseRegex reads a regular expression. RE2's syntax is that of ECMA-262, which
// JSON Schema names, but for what refuseRegex names and \u, which is rewritten.
func parseRegex(re, path string) (*syntax.Regexp, error) {
	if kind := refuseRegex(re); kind != "" {
		return nil, &UnsupportedError{Keyword: kind, Path: path, Reason: "regular expressions here are RE2's"}
	}
	x, err := syntax.Parse(ecmaEscapes(re), syntax.Perl)
	var bad *syntax.Error
	switch {
	case err == nil:
		return x, nil
	case errors.As(err, &bad) && (bad.Code == syntax.ErrInvalidRepeatSize || bad.Code == syntax.ErrLarge || bad.Code == syntax.ErrNestingDepth):
		return nil, &UnsupportedError{Keyword: "repetition", Path: path, Reason: err.Error()}
	default:
		return nil, &SyntaxError{Input: "regex", Where: path, Reason: err.Error()}
	}
}

// refuseRegex names the constructs of ECMA-262 that no finite automaton of this
// package has.
func refuseRegex(re string) string {
	inClass := false
	for i := 0; i < len(re); i++ {
		rest := re[i:]
		switch {
		case re[i] == '\\' && i+1 < len(re):
			i++
			switch c := re[i]; {
			case inClass:
			case c >= '1' && c <= '9', c == 'k' && strings.HasPrefix(re[i+1:], "<"):
				return "backreference"
			case c == 'b' || c == 'B':
				return `\b`
			}
		case inClass:
			inClass = re[i] != ']'
		case re[i] == '[':
			inClass = true
			// a bracket in the first place is a member in RE2
			if strings.HasPrefix(rest, "[]") {
				i++
			} else if strings.HasPrefix(rest, "[^]") {
				i += 2
			}
		case strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!"):
			return "lookahead"
		case strings.HasPrefix(rest, "(?<=") || strings.HasPrefix(rest, "(?<!"):
			return "lookbehind"
		}
	}
	return ""
}

// ecmaEscapes rewrites \uXXXX and \u{X} to \x{X}.
func ecmaEscapes(re string) string {
	var b strings.Builder
	for i := 0; i < len(re); i++ {
		if re[i] != '\\' || i+1 == len(re) {
			b.WriteByte(re[i])
			continue
		}
		i++
		switch {
		case re[i] == 'u' && i+4 < len(re) && isHex(re[i+1:i+5]):
			b.WriteString(`\x{` + re[i+1:i+5] + `}`)
			i += 4
		case re[i] == 'u' && strings.HasPrefix(re[i:], "u{"):
			b.WriteString(`\x`)
		default:
			b.WriteByte('\\')
			b.WriteByte(re[i])
		}
	}
	return b.String()
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return s != ""
}

// regexExpr turns a parsed expression into an expr of spelled characters.
func regexExpr(x *syntax.Regexp, enc encoding, path string) (expr, error) {
	subs := make([]expr, len(x.Sub))
	for i, sub := range x.Sub {
		var err error
		if subs[i], err = regexExpr(sub, enc, path); err != nil {
			return nil, err
		}
	}
	switch x.Op {
	case syntax.OpNoMatch:
		return alt{}, nil
	case syntax.OpEmptyMatch:
		return seq{}, nil
	case syntax.OpLiteral:
		var s seq
		for _, r := range x.Rune {
			s = append(s, enc(foldedRune(r, x.Flags&syntax.FoldCase != 0)))
		}
		return s, nil
	case syntax.OpCharClass:
		var ranges []runeRange
		for i := 0; i+1 < len(x.Rune); i += 2 {
			ranges = append(ranges, runeRange{x.Rune[i], x.Rune[i+1]})
		}
		return enc(ranges), nil
	case syntax.OpAnyCharNotNL:
		return enc(notNewline), nil
	case syntax.OpAnyChar:
		return enc(anyRune), nil
	case syntax.OpBeginText:
		return textBegin{}, nil
	case syntax.OpEndText:
		return textEnd{}, nil
	case syntax.OpBeginLine, syntax.OpEndLine:
		return nil, &UnsupportedError{Keyword: "(?m)", Path: path}
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil, &UnsupportedError{Keyword: `\b`, Path: path}
	case syntax.OpCapture:
		return subs[0], nil
	case syntax.OpStar:
		return repeat{subs[0], 0, -1}, nil
	case syntax.OpPlus:
		return repeat{subs[0], 1, -1}, nil
	case syntax.OpQuest:
		return optional(subs[0]), nil
	case syntax.OpRepeat:
		return repeat{subs[0], x.Min, x.Max}, nil
	case syntax.OpConcat:
		return seq(subs), nil
	case syntax.OpAlternate:
		return alt(subs), nil
	}
	return nil, &UnsupportedError{Keyword: x.Op.String(), Path: path}
}

// foldedRune is r, and its other cases when fold is set.
func foldedRune(r rune, fold bool) []runeRange {
	out := []runeRange{{r, r}}
	if !fold {
		return out
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		out = append(out, runeRange{f, f})
	}
	return out
}

// matchDFA is the automaton of the texts that re matches as a whole, or, with
// search, in which it matches somewhere.
func matchDFA(re *syntax.Regexp, enc encoding, search bool, path string) (*dfa, error) {
	e, err := regexExpr(re, enc, path)
	if err != nil {
		return nil, err
	}
	if search {
		some := repeat{enc(anyRune), 0, -1}
		e = seq{some, e, some}
	}
	return regular(e, maxRegexStates)
}
