package jinja

import (
	"slices"
	"strings"
	"time"
)

// maxRange is how long a range may be: that of Jinja2's sandbox.
const maxRange = 100_000

// globals returns the functions that every template has.
func globals() map[string]Value {
	vars := map[string]Value{}
	for name, call := range map[string]func(*run, arguments) Value{
		"namespace": newNamespace, "raise_exception": raiseException, "range": newRange, "joiner": newJoiner,
		"dict": newDictOf, "cycler": newCycler, "strftime_now": strftimeNow,
	} {
		vars[name] = &Func{name, call}
	}
	return vars
}

func newNamespace(r *run, a arguments) Value {
	ns := &Namespace{map[string]Value{}}
	for k, v := range newDictOf(r, a).(*Dict).values {
		ns.vars[k] = v
	}
	return ns
}

func newDictOf(r *run, a arguments) Value {
	d := NewDict()
	r.items(len(a.names))
	if len(a.list) > 0 {
		from, ok := a.list[0].(*Dict)
		if !ok {
			failf("dict of %s is not possible", kindOf(a.list[0]))
		}
		r.items(len(from.keys))
		for _, k := range from.keys {
			d.Set(k, from.values[k])
		}
	}
	for _, k := range a.names {
		d.Set(k, a.named[k])
	}
	return d
}

func raiseException(r *run, a arguments) Value {
	failf("%s", r.text(a.or(0, "message", "")))
	return nil
}

func newRange(r *run, a arguments) Value {
	from, to, step := 0, index(a.or(0, "stop", nil), "range"), 1
	if len(a.list) > 1 {
		from, to = to, index(a.list[1], "range")
	}
	if len(a.list) > 2 {
		step = index(a.list[2], "range")
	}
	if step == 0 {
		failf("range: the step is 0")
	}
	n := max(0, (to-from+step-sign(step < 0, step > 0))/step)
	if n > maxRange {
		fail(&LimitError{"items of a range", maxRange})
	}
	r.items(n)
	items := make([]Value, n)
	for i := range items {
		items[i] = int64(from + i*step)
	}
	return &List{Items: items}
}

func newJoiner(r *run, a arguments) Value {
	sep, first := a.or(0, "sep", ", "), true
	return &Func{"joiner", func(*run, arguments) Value {
		if first {
			first = false
			return ""
		}
		return sep
	}}
}

// cycler goes round its items.
type cycler struct {
	items []Value
	i     int
}

func newCycler(r *run, a arguments) Value {
	if len(a.list) == 0 {
		failf("cycler without items")
	}
	return &cycler{items: a.list}
}

func (c *cycler) member(name string) Value {
	switch name {
	case "current":
		return c.items[c.i]
	case "next":
		return &Func{"cycler.next", func(*run, arguments) Value {
			v := c.items[c.i]
			c.i = (c.i + 1) % len(c.items)
			return v
		}}
	case "reset":
		return &Func{"cycler.reset", func(*run, arguments) Value {
			c.i = 0
			return nil
		}}
	}
	return Undefined{}
}

// strftimeNow formats the time of day as Python's strftime, with the conversions that templates use.
func strftimeNow(r *run, a arguments) Value {
	format := r.str(a.or(0, "format", "%Y-%m-%d"), "strftime_now")
	r.grow(8 * len(format))
	now := time.Now()
	layouts := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'B': "January", 'b': "Jan",
		'A': "Monday", 'a': "Mon", 'j': "002", 'Z': "MST", 'z': "-0700", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' || i+1 == len(format) {
			b.WriteByte(c)
			continue
		}
		i++
		if layout, ok := layouts[format[i]]; ok {
			b.WriteString(now.Format(layout))
		} else if format[i] == '%' {
			b.WriteByte('%')
		} else {
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}

// attribute returns what v.name is: a member, or a method.
func (r *run) attribute(v Value, name string) Value {
	switch v := v.(type) {
	case *Dict:
		// A member comes before a method of the same name: requests have members "items" and "keys".
		if m, ok := v.values[name]; ok {
			return m
		}
		return dictMethod(v, name)
	case *Namespace:
		if m, ok := v.vars[name]; ok {
			return m
		}
	case *loop:
		return v.member(name)
	case *cycler:
		return v.member(name)
	case string:
		return stringMethod(v, name)
	case *List:
		return listMethod(v, name)
	}
	return Undefined{}
}

func method(name string, call func(r *run, a arguments) Value) *Func { return &Func{name, call} }

func listMethod(l *List, name string) Value {
	switch name {
	case "append":
		return method(name, func(r *run, a arguments) Value {
			r.items(1)
			l.Items = append(l.Items, a.or(0, "", nil))
			return nil
		})
	case "pop":
		return method(name, func(r *run, a arguments) Value {
			i := position(a.or(0, "", int64(-1)), len(l.Items))
			if i < 0 {
				failf("pop of an item that is not there")
			}
			v := l.Items[i]
			r.step(len(l.Items) - i)
			l.Items = slices.Delete(l.Items, i, i+1)
			return v
		})
	case "index", "count":
		return method(name, func(r *run, a arguments) Value {
			n := 0
			for i, v := range l.Items {
				if r.equal(v, a.or(0, "", nil)) {
					if name == "index" {
						return int64(i)
					}
					n++
				}
			}
			if name == "index" {
				failf("index of an item that is not there")
			}
			return int64(n)
		})
	}
	return Undefined{}
}

func dictMethod(d *Dict, name string) Value {
	switch name {
	case "items":
		return method(name, func(r *run, _ arguments) Value { return r.pairs(d, d.keys) })
	case "keys":
		return method(name, func(r *run, _ arguments) Value { return &List{Items: r.iterate(d)} })
	case "values":
		return method(name, func(r *run, _ arguments) Value {
			r.items(len(d.keys))
			l := &List{Items: make([]Value, len(d.keys))}
			for i, k := range d.keys {
				l.Items[i] = d.values[k]
			}
			return l
		})
	case "get":
		return method(name, func(r *run, a arguments) Value {
			if v, ok := d.values[r.text(a.or(0, "", nil))]; ok {
				return v
			}
			return a.or(1, "default", nil)
		})
	case "update":
		return method(name, func(r *run, a arguments) Value {
			from := newDictOf(r, a).(*Dict)
			for _, k := range from.keys {
				d.Set(k, from.values[k])
			}
			return nil
		})
	case "pop":
		return method(name, func(r *run, a arguments) Value {
			key := r.text(a.or(0, "", nil))
			v, ok := d.values[key]
			if !ok {
				return a.or(1, "default", Undefined{})
			}
			r.step(len(d.keys))
			delete(d.values, key)
			d.keys = slices.DeleteFunc(slices.Clone(d.keys), func(k string) bool { return k == key })
			return v
		})
	}
	return Undefined{}
}

// pairs returns the members of d with the keys, as tuples of two.
func (r *run) pairs(d *Dict, keys []string) *List {
	r.items(3 * len(keys))
	l := &List{Items: make([]Value, len(keys))}
	for i, k := range keys {
		l.Items[i] = &List{Items: []Value{k, d.values[k]}, tuple: true}
	}
	return l
}

// sortedKeys returns the keys of d in the order of their code points.
func (r *run) sortedKeys(d *Dict) []string {
	r.items(len(d.keys))
	keys := slices.Clone(d.keys)
	slices.SortFunc(keys, func(a, b string) int { return r.compare(a, b) })
	return keys
}
