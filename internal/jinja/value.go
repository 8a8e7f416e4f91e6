package jinja

import (
	"math"
	"strings"
)

// Value is a value of a template: nil (None), Undefined, bool, int64, float64, string, *List, *Dict, *Namespace or *Func.
type Value any

// Undefined is the value of what is not there.
type Undefined struct{}

// List is a list or tuple.
type List struct {
	Items []Value
	tuple bool // prints as one
}

// NewList returns a list of items.
func NewList(items ...Value) *List { return &List{Items: items} }

// Dict is a dict with its members in the order of their insertion. Other keys than texts are taken as their texts.
type Dict struct {
	keys   []string
	values map[string]Value
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{values: map[string]Value{}} }

// Set sets a member.
func (d *Dict) Set(key string, v Value) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

// Get returns a member.
func (d *Dict) Get(key string) (Value, bool) {
	v, ok := d.values[key]
	return v, ok
}

// Namespace holds variables that a template sets from inside of loops.
type Namespace struct{ vars map[string]Value }

// Func is something that can be called.
type Func struct {
	name string
	call func(r *run, args arguments) Value
}

// arguments of a call. Functions of the package take a named argument in the place of the positional one of that name.
type arguments struct {
	list  []Value
	names []string // of named, in order
	named map[string]Value
}

// get returns the argument at position i or of the name.
func (a arguments) get(i int, name string) (Value, bool) {
	if i >= 0 && i < len(a.list) {
		return a.list[i], true
	}
	v, ok := a.named[name]
	return v, ok
}

func (a arguments) or(i int, name string, def Value) Value {
	if v, ok := a.get(i, name); ok {
		return v
	}
	return def
}

// rest returns the arguments without the first n positional ones.
func (a arguments) rest(n int) arguments {
	a.list = a.list[min(n, len(a.list)):]
	return a
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// kindOf names the type of v as Python does, for messages.
func kindOf(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case Undefined:
		return "undefined"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case *Namespace:
		return "namespace"
	}
	return "function"
}

// number returns v as a number; i is valid if isInt.
func number(v Value) (f float64, i int64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return float64(v), v, true, true
	case float64:
		return v, 0, false, true
	}
	return 0, 0, false, false
}

// index returns v as an integer, for positions and counts.
func index(v Value, what string) int {
	_, i, isInt, _ := number(v)
	if !isInt {
		failf("%s must be an integer, not %s", what, kindOf(v))
	}
	return int(max(math.MinInt32, min(i, math.MaxInt32)))
}

// equal compares as Python does.
func (r *run) equal(a, b Value) bool {
	r.step(1)
	if fa, ia, intA, ok := number(a); ok {
		fb, ib, intB, ok := number(b)
		if intA && intB {
			return ok && ia == ib
		}
		return ok && fa == fb
	}
	switch a := a.(type) {
	case nil, Undefined:
		return a == b
	case string:
		s, ok := b.(string)
		if ok && len(s) == len(a) {
			r.scan(s)
		}
		return ok && s == a
	case *List:
		l, ok := b.(*List)
		if !ok || len(l.Items) != len(a.Items) {
			return false
		}
		r.enter()
		defer r.leave()
		for i := range a.Items {
			if !r.equal(a.Items[i], l.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(d.keys) != len(a.keys) {
			return false
		}
		r.enter()
		defer r.leave()
		for _, k := range a.keys {
			if v, ok := d.values[k]; !ok || !r.equal(a.values[k], v) {
				return false
			}
		}
		return true
	case *Namespace:
		return a == b
	case *Func:
		return a == b
	}
	return false
}

// compare orders a and b, which must both be numbers, texts or lists.
func (r *run) compare(a, b Value) int {
	r.step(1)
	fa, ia, intA, okA := number(a)
	fb, ib, intB, okB := number(b)
	if okA && okB {
		if intA && intB {
			return sign(ia < ib, ia > ib)
		}
		return sign(fa < fb, fa > fb)
	}
	switch a := a.(type) {
	case string:
		if s, ok := b.(string); ok {
			r.scan(a[:min(len(a), len(s))])
			return strings.Compare(a, s)
		}
	case *List:
		l, ok := b.(*List)
		if !ok {
			break
		}
		r.enter()
		defer r.leave()
		for i := range min(len(a.Items), len(l.Items)) {
			if !r.equal(a.Items[i], l.Items[i]) {
				return r.compare(a.Items[i], l.Items[i])
			}
		}
		return sign(len(a.Items) < len(l.Items), len(a.Items) > len(l.Items))
	}
	failf("cannot order %s and %s", kindOf(a), kindOf(b))
	return 0
}

func sign(less, more bool) int {
	switch {
	case less:
		return -1
	case more:
		return 1
	}
	return 0
}

// contains is the operator in.
func (r *run) contains(container, item Value) bool {
	switch c := container.(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			failf("'in' wants a text to look for in a text, not %s", kindOf(item))
		}
		r.scan(c)
		return strings.Contains(c, s)
	case *List:
		for _, v := range c.Items {
			if r.equal(v, item) {
				return true
			}
		}
		return false
	case *Dict:
		_, ok := c.values[r.text(item)]
		return ok
	case Undefined:
		return false
	}
	failf("'in' cannot look into %s", kindOf(container))
	return false
}

// iterate returns the items of a loop over v.
func (r *run) iterate(v Value) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Dict:
		r.items(len(v.keys))
		items := make([]Value, len(v.keys))
		for i, k := range v.keys {
			items[i] = k
		}
		return items
	case string:
		runes := r.runes(v)
		r.items(len(runes))
		items := make([]Value, len(runes))
		for i, c := range runes {
			items[i] = string(c)
		}
		return items
	case Undefined:
		return nil
	}
	failf("%s cannot be looped over", kindOf(v))
	return nil
}
