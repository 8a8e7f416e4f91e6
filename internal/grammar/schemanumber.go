package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// maxMultiple bounds multipleOf of integers: the automaton has a state for each
// remainder.
const maxMultiple = 1 << 12

// numberOf is the numbers that the keywords allow. With bounds or multipleOf they
// are written without an exponent, and the bounds are compared digit by digit.
func (c *schemaCompiler) numberOf(k *keywords, integer bool) (expr, error) {
	if len(k.bounds) == 0 && len(k.multiples) == 0 {
		if integer {
			return c.json.integer(), nil
		}
		return c.json.number(), nil
	}
	digits := maxFraction
	if integer {
		digits = 0
	}
	var remainders []*dfa
	for _, m := range k.multiples {
		step, places, err := multiple(m, integer)
		if err != nil {
			return nil, err
		}
		digits = min(digits, places)
		if step > 1 {
			remainders = append(remainders, remainderDFA(step))
		}
	}
	for _, b := range k.bounds {
		if b.beyond() {
			return nil, &UnsupportedError{Keyword: b.keyword(), Path: k.at.path(), Reason: fmt.Sprintf("numbers have at most %d digits before the point here", maxIntegral)}
		}
	}
	base := seq{minus(), integral()}
	if digits > 0 {
		base = append(base, fraction(digits))
	}
	d, err := regular(base, maxStates)
	for _, b := range k.bounds {
		var limit *dfa
		if err == nil {
			limit, err = regular(b.expr(), maxStates)
		}
		if err == nil {
			d, err = intersect(d, limit, maxStates)
		}
	}
	for _, r := range remainders {
		if err == nil {
			d, err = intersect(d, r, maxStates)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w, in the bounds at %s", err, k.at.path())
	}
	return c.b.add(k.at.path(), d), nil
}

// multiple reads a multipleOf: numbers are multiples of an integer, step, or of a
// power of ten, which says how many digits may follow the point.
func multiple(m *jsonNode, integer bool) (step int64, places int, err error) {
	v, err := m.number()
	if err != nil {
		return 0, 0, err
	}
	unsupported := func(reason string) error {
		return &UnsupportedError{Keyword: "multipleOf", Path: m.path(), Reason: reason}
	}
	if integer || v.IsInt() {
		// n is a multiple of p/q in lowest terms if it is one of p.
		if !v.Num().IsInt64() || v.Num().Int64() > maxMultiple {
			return 0, 0, unsupported(fmt.Sprintf("more than %d", maxMultiple))
		}
		return v.Num().Int64(), 0, nil
	}
	power := big.NewInt(1)
	for places = 0; places <= maxFraction; places++ {
		if v.Num().IsInt64() && v.Num().Int64() == 1 && v.Denom().Cmp(power) == 0 {
			return 1, places, nil
		}
		power.Mul(power, big.NewInt(10))
	}
	return 0, 0, unsupported("for numbers, only integers and 0.1, 0.01, ... are")
}

// remainderDFA is the decimal integers divisible by m, with any leading zeros.
func remainderDFA(m int64) *dfa {
	d := &dfa{states: make([]dfaState, m+2)}
	d.states[0].edges = []edge{{lo: '-', hi: '-', to: 1}}
	for i := range d.states {
		rest := max(int64(i)-2, 0) // states 0 and 1: no digit yet
		for x := range int64(10) {
			b := byte('0' + x)
			d.states[i].edges = append(d.states[i].edges, edge{lo: b, hi: b, to: int32(2 + (10*rest+x)%m)})
		}
	}
	d.states[2].final = true
	return d
}

// expr is the decimal numbers within the bound, with any number of digits after
// the point.
func (b bound) expr() expr {
	whole, frac := decimal(b.value)
	positive := seq{integral(), fraction(-1)}
	negative := func(e expr) expr { return seq{literal("-"), e} }
	switch sign := b.value.Sign(); {
	case b.below && (sign > 0 || sign == 0 && b.exclusive):
		return atLeast(whole, frac, b.exclusive)
	case b.below:
		return alt{positive, negative(atMost(whole, frac, b.exclusive))}
	case sign < 0 || sign == 0 && b.exclusive:
		return negative(atLeast(whole, frac, b.exclusive))
	default:
		return alt{negative(positive), atMost(whole, frac, b.exclusive)}
	}
}

// beyond reports whether every number that the bound allows has more digits before
// the point than a grammar writes.
func (b bound) beyond() bool {
	first := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(maxIntegral), nil))
	if b.below {
		return b.value.Cmp(first) >= 0
	}
	return b.value.Cmp(first.Neg(first)) <= 0
}

// keyword is the bound as a schema spells it.
func (b bound) keyword() string {
	switch {
	case b.below && b.exclusive:
		return "exclusiveMinimum"
	case b.below:
		return "minimum"
	case b.exclusive:
		return "exclusiveMaximum"
	}
	return "maximum"
}

// decimal is the digits of |v| before and after the point, the latter without
// trailing zeros.
func decimal(v *big.Rat) (whole, frac string) {
	text := new(big.Rat).Abs(v).FloatString(2 * maxNumberDigits) // exact: v was spelled with fewer
	whole, frac, _ = strings.Cut(text, ".")
	return whole, strings.TrimRight(frac, "0")
}

var digits = repeat{digit, 0, -1}

// atLeast is the numbers from whole.frac up, or only those above it.
func atLeast(whole, frac string, exclusive bool) expr {
	tail := fraction(-1)
	out := alt{seq{class{'1', '9'}, repeat{digit, len(whole), -1}, tail}}
	for i := range len(whole) {
		if whole[i] < '9' {
			out = append(out, seq{literal(whole[:i]), class{whole[i] + 1, '9'}, repeat{digit, len(whole) - i - 1, len(whole) - i - 1}, tail})
		}
	}
	nonzero := seq{repeat{literal("0"), 0, -1}, class{'1', '9'}, digits}
	var rest alt // of the fraction
	for i := range len(frac) {
		if frac[i] < '9' {
			rest = append(rest, seq{literal("." + frac[:i]), class{frac[i] + 1, '9'}, digits})
		}
	}
	switch {
	case exclusive:
		rest = append(rest, seq{literal("." + frac), nonzero})
	case frac == "":
		rest = append(rest, tail)
	default:
		rest = append(rest, seq{literal("." + frac), digits})
	}
	return append(out, seq{literal(whole), rest})
}

// atMost is the numbers from 0 up to whole.frac, or only those below it.
func atMost(whole, frac string, exclusive bool) expr {
	tail := fraction(-1)
	var out alt
	if len(whole) > 1 {
		out = append(out, seq{literal("0"), tail}, seq{class{'1', '9'}, repeat{digit, 0, len(whole) - 2}, tail})
	}
	for i := range len(whole) {
		low := byte('0')
		if i == 0 && len(whole) > 1 {
			low = '1'
		}
		if whole[i] > low {
			out = append(out, seq{literal(whole[:i]), class{low, whole[i] - 1}, repeat{digit, len(whole) - i - 1, len(whole) - i - 1}, tail})
		}
	}
	zeros := repeat{literal("0"), 0, -1}
	var rest alt
	if frac == "" && !exclusive {
		rest = alt{seq{}, seq{literal("."), zeros}}
	}
	if frac != "" {
		rest = append(rest, seq{})
	}
	for i := range len(frac) {
		if i > 0 {
			rest = append(rest, literal("."+frac[:i]))
		}
		if frac[i] > '0' {
			rest = append(rest, seq{literal("." + frac[:i]), class{'0', frac[i] - 1}, digits})
		}
		if i == len(frac)-1 && !exclusive {
			rest = append(rest, seq{literal("." + frac), zeros})
		}
	}
	return append(out, seq{literal(whole), rest})
}

// holdsNumber reports whether the keywords about numbers hold for v.
func (k *keywords) holdsNumber(n *jsonNode) (bool, error) {
	v, err := n.number()
	if err != nil {
		return false, err
	}
	if t := k.types & numberType; t == 0 || t == integerType && !v.IsInt() {
		return false, nil
	}
	for _, b := range k.bounds {
		c := v.Cmp(b.value)
		if !b.below {
			c = -c
		}
		if c < 0 || c == 0 && b.exclusive {
			return false, nil
		}
	}
	for _, m := range k.multiples {
		step, err := m.number()
		if err != nil {
			return false, err
		}
		if !new(big.Rat).Quo(v, step).IsInt() {
			return false, nil
		}
	}
	return true, nil
}
