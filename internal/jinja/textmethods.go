package jinja

import (
	"strings"
	"unicode"
)

// stringMethod returns a method of Python's str.
func stringMethod(s, name string) Value {
	for _, find := range []func(s, name string) func(*run, arguments) Value{caseMethod, trimMethod, searchMethod} {
		if call := find(s, name); call != nil {
			return method(name, call)
		}
	}
	return Undefined{}
}

func caseMethod(s, name string) func(*run, arguments) Value {
	convert := func(f func(string) string) func(*run, arguments) Value {
		return func(r *run, _ arguments) Value { return r.convert(s, f) }
	}
	is := func(f func(string) bool) func(*run, arguments) Value {
		return func(r *run, _ arguments) Value {
			r.grow(3 * len(s))
			return f(s)
		}
	}
	letters := func(s string) bool { return strings.ToLower(s) != strings.ToUpper(s) }
	switch name {
	case "upper":
		return convert(strings.ToUpper)
	case "lower":
		return convert(strings.ToLower)
	case "title":
		return convert(title)
	case "capitalize":
		return convert(capitalize)
	case "isdigit":
		return is(func(s string) bool { return all(s, unicode.IsDigit) })
	case "isalpha":
		return is(func(s string) bool { return all(s, unicode.IsLetter) })
	case "isalnum":
		return is(func(s string) bool {
			return all(s, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
		})
	case "isspace":
		return is(func(s string) bool { return all(s, unicode.IsSpace) })
	case "isupper":
		return is(func(s string) bool { return letters(s) && s == strings.ToUpper(s) })
	case "islower":
		return is(func(s string) bool { return letters(s) && s == strings.ToLower(s) })
	}
	return nil
}

func trimMethod(s, name string) func(*run, arguments) Value {
	strip := func(side int) func(*run, arguments) Value {
		return func(r *run, a arguments) Value { return r.strip(s, a.or(0, "chars", nil), side) }
	}
	switch name {
	case "strip":
		return strip(0)
	case "lstrip":
		return strip(-1)
	case "rstrip":
		return strip(1)
	case "removeprefix":
		return func(r *run, a arguments) Value { return strings.TrimPrefix(s, r.str(a.or(0, "", nil), name)) }
	case "removesuffix":
		return func(r *run, a arguments) Value { return strings.TrimSuffix(s, r.str(a.or(0, "", nil), name)) }
	case "split", "rsplit":
		return func(r *run, a arguments) Value { return r.words(s, a, name == "rsplit") }
	case "splitlines":
		return func(r *run, _ arguments) Value {
			r.grow(len(s))
			r.items(strings.Count(s, "\n") + strings.Count(s, "\r") + 1)
			return texts(lines(s))
		}
	}
	return nil
}

func searchMethod(s, name string) func(*run, arguments) Value {
	switch name {
	case "startswith":
		return func(r *run, a arguments) Value {
			return r.affix(a.or(0, "", nil), func(p string) bool { return strings.HasPrefix(s, p) })
		}
	case "endswith":
		return func(r *run, a arguments) Value {
			return r.affix(a.or(0, "", nil), func(p string) bool { return strings.HasSuffix(s, p) })
		}
	case "find", "rfind":
		return func(r *run, a arguments) Value { return int64(r.find(s, a, name == "rfind")) }
	case "index", "rindex":
		return func(r *run, a arguments) Value {
			i := r.find(s, a, name == "rindex")
			if i < 0 {
				failf("%s of a text that is not there", name)
			}
			return int64(i)
		}
	case "count":
		return func(r *run, a arguments) Value {
			r.scan(s)
			return int64(strings.Count(s, r.str(a.or(0, "", nil), name)))
		}
	case "replace":
		return func(r *run, a arguments) Value {
			old, text := r.str(a.or(0, "old", nil), name), r.str(a.or(1, "new", nil), name)
			return r.replace(s, old, text, index(a.or(2, "count", int64(-1)), name))
		}
	case "join":
		return func(r *run, a arguments) Value { return r.join(r.iterate(a.or(0, "", nil)), s) }
	case "format":
		return func(r *run, a arguments) Value { return r.format(s, a) }
	}
	return nil
}

// format is str.format with {}, {0} and {name}, without format specifications.
func (r *run) format(s string, a arguments) string {
	w := writer{r: r}
	next := 0
	for {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			w.add(s)
			return w.b.String()
		}
		w.add(s[:i])
		brace := s[i : i+1]
		s = s[i+1:]
		if strings.HasPrefix(s, brace) {
			w.add(brace)
			s = s[1:]
			continue
		}
		field, rest, ok := strings.Cut(s, "}")
		if brace == "}" || !ok {
			failf("format: a single %s", brace)
		}
		s = rest
		v, ok := Value(nil), false
		if field == "" {
			v, ok = a.get(next, "")
			next++
		} else if n, isNumber := atoi(field); isNumber {
			v, ok = a.get(n, "")
		} else {
			v, ok = a.get(-1, field)
		}
		if !ok {
			failf("format: no value for {%s}", field)
		}
		w.str(v)
	}
}

// atoi reads a short number of digits.
func atoi(s string) (n int, ok bool) {
	if len(s) > 6 || !all(s, func(c rune) bool { return c >= '0' && c <= '9' }) {
		return 0, false
	}
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n, true
}
