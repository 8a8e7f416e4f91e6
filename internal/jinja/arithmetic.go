package jinja

import (
	"math"
	"strings"
)

func (x arithmetic) eval(r *run) Value {
	a, b := r.eval(x.x), r.eval(x.y)
	if x.op == "~" {
		return r.concat(r.text(a), r.text(b))
	}
	fa, ia, intA, okA := number(a)
	fb, ib, intB, okB := number(b)
	switch {
	case intA && intB:
		return integers(x.op, ia, ib)
	case okA && okB:
		return floats(x.op, fa, fb)
	case x.op == "+":
		return r.sum(a, b)
	case x.op == "%":
		if s, ok := a.(string); ok {
			if l, isList := b.(*List); isList && l.tuple {
				return r.percent(s, l.Items)
			}
			return r.percent(s, []Value{b})
		}
	case x.op == "*":
		if intA {
			a, ib, intB = b, ia, true
		}
		switch a := a.(type) {
		case string:
			if intB {
				return r.repeat(a, count(ib))
			}
		case *List:
			if intB {
				return r.repeatList(a, count(ib))
			}
		}
	}
	failf("%s %s %s is not possible", kindOf(a), x.op, kindOf(b))
	return nil
}

func count(n int64) int { return int(max(0, min(n, math.MaxInt32))) }

func (r *run) concat(a, b string) string {
	r.grow(len(a) + len(b))
	return a + b
}

// sum is + of texts and of lists. A text with something else is more than Jinja2 allows: other engines do, and templates rely on it.
func (r *run) sum(a, b Value) Value {
	la, okA := a.(*List)
	lb, okB := b.(*List)
	if okA && okB {
		r.items(len(la.Items) + len(lb.Items))
		return &List{Items: append(append(make([]Value, 0, len(la.Items)+len(lb.Items)), la.Items...), lb.Items...)}
	}
	_, okA = a.(string)
	_, okB = b.(string)
	if !okA && !okB {
		failf("%s + %s is not possible", kindOf(a), kindOf(b))
	}
	return r.concat(r.text(a), r.text(b))
}

func (r *run) repeat(s string, n int) string {
	n = max(n, 0)
	if len(s) > 0 && n > math.MaxInt32/len(s) {
		n = math.MaxInt32 / len(s) // over every limit
	}
	r.grow(len(s) * n)
	return strings.Repeat(s, n)
}

func (r *run) repeatList(l *List, n int) *List {
	if len(l.Items) == 0 {
		n = 0
	} else if n > math.MaxInt32/len(l.Items) {
		n = math.MaxInt32 / len(l.Items)
	}
	r.items(len(l.Items) * n)
	out := make([]Value, 0, len(l.Items)*n)
	for range n {
		out = append(out, l.Items...)
	}
	return &List{Items: out}
}

func integers(op string, a, b int64) Value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		if f := math.Pow(float64(a), float64(b)); b >= 0 && math.Abs(f) < 1<<53 {
			return int64(f)
		} else {
			return f
		}
	}
	if b == 0 {
		failf("division by zero")
	}
	switch op {
	case "/":
		return float64(a) / float64(b)
	case "//":
		q := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			q--
		}
		return q
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

func floats(op string, a, b float64) Value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	if b == 0 {
		failf("division by zero")
	}
	switch op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}
