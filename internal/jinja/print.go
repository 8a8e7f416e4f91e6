package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// text returns v as {{ v }} prints it: Python's str.
func (r *run) text(v Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	w := writer{r: r}
	w.str(v)
	return w.b.String()
}

// writer builds a text, each byte counted before it is written.
type writer struct {
	r *run
	b strings.Builder
}

func (w *writer) add(s string) {
	w.r.grow(len(s))
	w.b.WriteString(s)
}

// str writes v as Python's str does.
func (w *writer) str(v Value) {
	switch v := v.(type) {
	case string:
		w.add(v)
	case Undefined:
	default:
		w.repr(v)
	}
}

// repr writes v as Python's repr does.
func (w *writer) repr(v Value) {
	switch v := v.(type) {
	case nil:
		w.add("None")
	case Undefined:
		w.add("Undefined")
	case bool:
		if v {
			w.add("True")
		} else {
			w.add("False")
		}
	case int64:
		w.add(strconv.FormatInt(v, 10))
	case float64:
		w.add(formatFloat(v))
	case string:
		w.quote(v)
	case *List:
		w.list(v)
	case *Dict:
		w.r.enter()
		w.add("{")
		for i, k := range v.keys {
			if i > 0 {
				w.add(", ")
			}
			w.quote(k)
			w.add(": ")
			w.repr(v.values[k])
		}
		w.add("}")
		w.r.leave()
	default:
		w.add("<" + kindOf(v) + ">")
	}
}

func (w *writer) list(l *List) {
	open, end := "[", "]"
	if l.tuple {
		open, end = "(", ")"
		if len(l.Items) == 1 {
			end = ",)"
		}
	}
	w.r.enter()
	w.add(open)
	for i, item := range l.Items {
		if i > 0 {
			w.add(", ")
		}
		w.repr(item)
	}
	w.add(end)
	w.r.leave()
}

// quote writes a string literal of Python: double quotes only if there are single ones and no double ones.
func (w *writer) quote(s string) {
	w.r.grow(len(s))
	q := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		q = '"'
	}
	w.b.WriteRune(q)
	for _, c := range s {
		switch {
		case c == q || c == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(c)
		case c == '\n':
			w.add(`\n`)
		case c == '\r':
			w.add(`\r`)
		case c == '\t':
			w.add(`\t`)
		case c < ' ' || c == 0x7F:
			w.add(`\x` + hex(c, 2))
		case !unicode.IsPrint(c) && c < 0x100:
			w.add(`\x` + hex(c, 2))
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteRune(q)
}

func hex(c rune, digits int) string {
	s := strconv.FormatInt(int64(c), 16)
	return strings.Repeat("0", max(digits-len(s), 0)) + s
}

// formatFloat writes f as Python's repr: the shortest digits that give f back, with an exponent below 1e-4 and from 1e16 on.
func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
