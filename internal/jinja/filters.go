package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// filterFunc is a filter; the value that it is applied to is its first argument.
type filterFunc func(r *run, a arguments) Value

// filterNamed returns the filter of the name, nil if there is none.
func filterNamed(name string) filterFunc {
	for _, find := range []func(string) filterFunc{textFilter, listFilter, valueFilter} {
		if f := find(name); f != nil {
			return f
		}
	}
	return nil
}

// textFilter returns the filters that make a text of a text.
func textFilter(name string) filterFunc {
	convert := func(f func(string) string) filterFunc {
		return func(r *run, a arguments) Value { return r.convert(r.text(a.list[0]), f) }
	}
	switch name {
	case "lower":
		return convert(strings.ToLower)
	case "upper":
		return convert(strings.ToUpper)
	case "title":
		return convert(titleFilter)
	case "capitalize":
		return convert(capitalize)
	case "trim":
		return func(r *run, a arguments) Value { return r.strip(r.text(a.list[0]), a.or(1, "chars", nil), 0) }
	case "string", "safe":
		return func(r *run, a arguments) Value { return r.text(a.list[0]) }
	case "escape", "e":
		return filterEscape
	case "replace":
		return func(r *run, a arguments) Value {
			old, text := r.text(a.or(1, "old", "")), r.text(a.or(2, "new", ""))
			n := -1
			if c := a.or(3, "count", nil); c != nil {
				n = index(c, "replace")
			}
			return r.replace(r.text(a.list[0]), old, text, n)
		}
	case "indent":
		return filterIndent
	case "wordcount":
		return func(r *run, a arguments) Value {
			s := r.text(a.list[0])
			r.items(len(s)/2 + 1)
			return int64(len(strings.FieldsFunc(s, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })))
		}
	case "format":
		return func(r *run, a arguments) Value { return r.percent(r.text(a.list[0]), a.list[1:]) }
	case "tojson":
		return filterToJSON
	case "fromjson", "from_json":
		return filterFromJSON
	}
	return nil
}

func filterEscape(r *run, a arguments) Value {
	s := r.text(a.list[0])
	for _, p := range [][2]string{{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&#34;"}, {"'", "&#39;"}} {
		s = r.replace(s, p[0], p[1], -1)
	}
	return s
}

func filterIndent(r *run, a arguments) Value {
	s := r.text(a.list[0])
	pad, ok := a.or(1, "width", int64(4)).(string)
	if !ok {
		pad = r.repeat(" ", index(a.or(1, "width", int64(4)), "indent"))
	}
	first, blank := truth(a.or(2, "first", false)), truth(a.or(3, "blank", false))
	w := writer{r: r}
	for i := 0; ; i++ {
		line, rest, more := strings.Cut(s, "\n")
		r.step(1)
		if i == 0 && first || i > 0 && (blank || line != "") {
			w.add(pad)
		}
		w.add(line)
		if !more {
			return w.b.String()
		}
		w.add("\n")
		s = rest
	}
}

// valueFilter returns the filters of numbers and of any values.
func valueFilter(name string) filterFunc {
	switch name {
	case "default", "d":
		return func(_ *run, a arguments) Value {
			_, undefined := a.list[0].(Undefined)
			if undefined || truth(a.or(2, "boolean", false)) && !truth(a.list[0]) {
				return a.or(1, "default_value", "")
			}
			return a.list[0]
		}
	case "length", "count":
		return func(r *run, a arguments) Value { return int64(r.length(a.list[0])) }
	case "int":
		return func(r *run, a arguments) Value { return r.toInt(a.list[0], a.or(1, "default", int64(0))) }
	case "float":
		return func(r *run, a arguments) Value { return r.toFloat(a.list[0], a.or(1, "default", 0.0)) }
	case "abs":
		return func(_ *run, a arguments) Value {
			f, i, isInt, ok := number(a.list[0])
			switch {
			case isInt && i < 0:
				return -i
			case isInt:
				return i
			case ok:
				return math.Abs(f)
			}
			failf("abs wants a number, not %s", kindOf(a.list[0]))
			return nil
		}
	case "round":
		return filterRound
	}
	return nil
}

func (r *run) length(v Value) int {
	switch v := v.(type) {
	case string:
		r.scan(v)
		return runeCount(v)
	case *List:
		return len(v.Items)
	case *Dict:
		return len(v.keys)
	case Undefined:
		return 0
	}
	failf("%s has no length", kindOf(v))
	return 0
}

func (r *run) toInt(v, def Value) Value {
	f, i, isInt, ok := number(v)
	if s, isText := v.(string); isText {
		r.scan(s)
		s = strings.TrimSpace(s)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		var err error
		f, err = strconv.ParseFloat(s, 64)
		ok = err == nil
	}
	switch {
	case isInt:
		return i
	case ok && math.Abs(f) < 1<<63:
		return int64(f)
	}
	return def
}

func (r *run) toFloat(v, def Value) Value {
	f, _, _, ok := number(v)
	if s, isText := v.(string); isText {
		r.scan(s)
		var err error
		f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	if !ok {
		return def
	}
	return f
}

func filterRound(_ *run, a arguments) Value {
	f, _, _, ok := number(a.list[0])
	if !ok {
		failf("round wants a number, not %s", kindOf(a.list[0]))
	}
	scale := math.Pow(10, float64(index(a.or(1, "precision", int64(0)), "round")))
	switch way, _ := a.or(2, "method", "common").(string); way {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	return math.RoundToEven(f*scale) / scale
}
