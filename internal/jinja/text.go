package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func runeCount(s string) int { return utf8.RuneCountInString(s) }

// runeAt returns the ith of the n code points of s.
func runeAt(s string, i, n int) string {
	if len(s) == n {
		return s[i : i+1]
	}
	for p, c := range s {
		if i == 0 {
			return s[p : p+utf8.RuneLen(c)]
		}
		i--
	}
	return ""
}

// str returns v, which must be a text.
func (r *run) str(v Value, what string) string {
	s, ok := v.(string)
	if !ok {
		failf("%s wants a text, not %s", what, kindOf(v))
	}
	r.scan(s)
	return s
}

func (x slice) eval(r *run) Value {
	v := r.eval(x.of)
	var bounds [3]*int
	for i, b := range []expr{x.from, x.to, x.step} {
		if b == nil {
			continue
		}
		if k := r.eval(b); k != nil {
			n := index(k, "slice")
			bounds[i] = &n
		}
	}
	switch v := v.(type) {
	case string:
		r.scan(v)
		if runeCount(v) == len(v) && (bounds[2] == nil || *bounds[2] == 1) {
			from, to, _ := sliceBounds(bounds, len(v))
			return v[from:max(from, to)]
		}
		runes := r.runes(v)
		r.grow(len(v))
		return string(sliced(runes, bounds))
	case *List:
		r.items(len(v.Items))
		return &List{Items: sliced(v.Items, bounds)}
	case Undefined:
		return v
	}
	failf("%s has no slices", kindOf(v))
	return nil
}

// sliceBounds resolves the bounds of a slice of n items, as Python does.
func sliceBounds(b [3]*int, n int) (from, to, step int) {
	step = 1
	if b[2] != nil {
		step = *b[2]
	}
	low, high := 0, n
	from, to = 0, n
	if step < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	clamp := func(i int) int {
		if i < 0 {
			i += n
		}
		return max(low, min(i, high))
	}
	if b[0] != nil {
		from = clamp(*b[0])
	}
	if b[1] != nil {
		to = clamp(*b[1])
	}
	return from, to, step
}

func sliced[T any](s []T, b [3]*int) []T {
	from, to, step := sliceBounds(b, len(s))
	if step == 0 {
		failf("slice: the step is 0")
	}
	var out []T
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		out = append(out, s[i])
	}
	return out
}

// words is str.split: at sep, at most limit times from the left or from the right; at white space without sep.
func (r *run) words(s string, a arguments, right bool) *List {
	sep, limit := a.or(0, "sep", nil), index(a.or(1, "maxsplit", int64(-1)), "split")
	r.scan(s)
	var parts []string
	switch {
	case sep == nil && limit < 0:
		r.items(len(s)/2 + 1)
		parts = strings.Fields(s)
	case sep == nil:
		failf("split at white space takes no limit")
	default:
		at := r.str(sep, "split")
		if at == "" {
			failf("split at an empty text")
		}
		n := strings.Count(s, at)
		if limit >= 0 {
			n = min(n, limit)
		}
		r.items(n + 1)
		if right && limit >= 0 {
			parts = splitRight(s, at, n)
		} else {
			parts = strings.SplitN(s, at, n+1)
		}
	}
	return texts(parts)
}

func splitRight(s, sep string, n int) []string {
	parts := make([]string, n+1)
	for i := n; i > 0; i-- {
		at := strings.LastIndex(s, sep)
		parts[i], s = s[at+len(sep):], s[:at]
	}
	parts[0] = s
	return parts
}

func texts(parts []string) *List {
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

// replace replaces old by text, n times at most if n is not negative.
func (r *run) replace(s, old, text string, n int) string {
	r.scan(s)
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	r.step(found)
	if grown := len(text) - len(old); grown > 0 && found > (1<<40)/grown {
		found = (1 << 40) / grown // over every limit
	}
	r.grow(len(s) + found*(len(text)-len(old)))
	return strings.Replace(s, old, text, n)
}

// convert changes the case of s and the like; the result may be three times as long.
func (r *run) convert(s string, f func(string) string) string {
	r.grow(3 * len(s))
	return f(s)
}

// title makes the first letter of each word large and the others small.
func title(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		first := !inWord
		inWord = unicode.IsLetter(c)
		switch {
		case !inWord:
			return c
		case first:
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}, s)
}

// titleFilter is the filter title, for which words end at blanks, dashes and brackets only.
func titleFilter(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		first := !inWord
		inWord = !unicode.IsSpace(c) && !strings.ContainsRune("-([{<", c)
		switch {
		case !inWord:
			return c
		case first:
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

// strip is str.strip and its kin: side is < 0 for the left, > 0 for the right, 0 for both.
func (r *run) strip(s string, chars Value, side int) string {
	r.scan(s)
	in := unicode.IsSpace
	if chars != nil {
		set := map[rune]bool{}
		for _, c := range r.str(chars, "strip") {
			set[c] = true
		}
		in = func(c rune) bool { return set[c] }
	}
	if side <= 0 {
		s = strings.TrimLeftFunc(s, in)
	}
	if side >= 0 {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// affix reports whether s begins or ends with v, or with one of v's items.
func (r *run) affix(v Value, has func(string) bool) bool {
	if l, ok := v.(*List); ok {
		for _, item := range l.Items {
			if r.affix(r.str(item, "startswith or endswith"), has) {
				return true
			}
		}
		return false
	}
	return has(r.str(v, "startswith or endswith"))
}

func all(s string, in func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return !in(c) }) < 0
}

// find returns the position of sub in s in code points, -1 if there is none.
func (r *run) find(s string, a arguments, last bool) int {
	r.scan(s)
	sub := r.str(a.or(0, "", nil), "find")
	i := strings.Index(s, sub)
	if last {
		i = strings.LastIndex(s, sub)
	}
	if i < 0 {
		return -1
	}
	return runeCount(s[:i])
}

func lines(s string) []string {
	s = strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
