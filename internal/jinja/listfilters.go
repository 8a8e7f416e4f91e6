package jinja

import (
	"slices"
	"strings"
)

// listFilter returns the filters of lists and dicts.
func listFilter(name string) filterFunc {
	switch name {
	case "first":
		return func(r *run, a arguments) Value { return end(r.iterate(a.list[0]), 0) }
	case "last":
		return func(r *run, a arguments) Value { return end(r.iterate(a.list[0]), -1) }
	case "list":
		return func(r *run, a arguments) Value {
			items := r.iterate(a.list[0])
			r.items(len(items))
			return &List{Items: slices.Clone(items)}
		}
	case "join":
		return func(r *run, a arguments) Value {
			items := r.iterate(a.list[0])
			if by, ok := a.get(2, "attribute"); ok {
				items = r.members(items, r.text(by), Undefined{})
			}
			return r.join(items, r.text(a.or(1, "d", "")))
		}
	case "reverse":
		return func(r *run, a arguments) Value {
			if s, ok := a.list[0].(string); ok {
				r.grow(len(s))
				runes := r.runes(s)
				slices.Reverse(runes)
				return string(runes)
			}
			items := r.iterate(a.list[0])
			r.items(len(items))
			items = slices.Clone(items)
			slices.Reverse(items)
			return &List{Items: items}
		}
	case "items":
		return func(r *run, a arguments) Value {
			switch d := a.list[0].(type) {
			case *Dict:
				return r.pairs(d, d.keys)
			case Undefined:
				return &List{}
			}
			failf("Can only get item pairs from a mapping.") // Jinja2's words: templates show them
			return nil
		}
	case "sort", "unique", "dictsort", "max", "min":
		return orderFilter(name)
	case "map":
		return filterMap
	case "select", "reject", "selectattr", "rejectattr":
		return func(r *run, a arguments) Value {
			return r.choose(a, strings.HasSuffix(name, "attr"), strings.HasPrefix(name, "select"))
		}
	case "sum":
		return filterSum
	case "batch":
		return filterBatch
	}
	return nil
}

func end(items []Value, i int) Value {
	if i = position(int64(i), len(items)); i < 0 {
		return Undefined{}
	}
	return items[i]
}

func (r *run) join(items []Value, sep string) string {
	w := writer{r: r}
	for i, v := range items {
		r.step(1)
		if i > 0 {
			w.add(sep)
		}
		w.str(v)
	}
	return w.b.String()
}

// members returns what items have at a path of names with dots, or def.
func (r *run) members(items []Value, path string, def Value) []Value {
	r.items(len(items))
	out := make([]Value, len(items))
	for i, v := range items {
		out[i] = r.member(v, path, def)
	}
	return out
}

func (r *run) member(v Value, path string, def Value) Value {
	for name := range strings.SplitSeq(path, ".") {
		r.step(1 + len(name)/64)
		switch of := v.(type) {
		case *Dict:
			m, ok := of.values[name]
			if !ok {
				return def
			}
			v = m
		case *Namespace:
			m, ok := of.vars[name]
			if !ok {
				return def
			}
			v = m
		case *List:
			n, ok := atoi(name)
			if !ok || n >= len(of.Items) {
				return def
			}
			v = of.Items[n]
		default:
			return def
		}
	}
	return v
}

// orderFilter returns the filters that compare items. Texts are equal in both cases, unless case_sensitive is set.
func orderFilter(name string) filterFunc {
	return func(r *run, a arguments) Value {
		if name == "dictsort" {
			return filterDictsort(r, a)
		}
		items := r.iterate(a.list[0])
		if len(items) == 0 && (name == "max" || name == "min") {
			return Undefined{}
		}
		at := 1 // of case_sensitive
		if name == "sort" {
			at = 2
		}
		sensitive := truth(a.or(at, "case_sensitive", false))
		keys := items
		if by, ok := a.get(-1, "attribute"); ok && by != nil {
			keys = r.members(items, r.text(by), Undefined{})
		}
		order := make([]int, len(items))
		r.items(2 * len(items))
		folded := make([]Value, len(keys))
		for i, k := range keys {
			order[i], folded[i] = i, r.fold(k, sensitive)
		}
		if name == "unique" {
			return r.unique(items, folded)
		}
		down := name == "max" || name == "sort" && truth(a.or(1, "reverse", false))
		slices.SortStableFunc(order, func(i, j int) int {
			if down {
				i, j = j, i
			}
			return r.compare(folded[i], folded[j])
		})
		if name != "sort" {
			return items[order[0]]
		}
		r.items(len(items))
		out := make([]Value, len(items))
		for i, j := range order {
			out[i] = items[j]
		}
		return &List{Items: out}
	}
}

func (r *run) fold(v Value, sensitive bool) Value {
	if s, ok := v.(string); ok && !sensitive {
		return r.convert(s, strings.ToLower)
	}
	return v
}

// unique returns the items with the first of each key.
func (r *run) unique(items, keys []Value) Value {
	seen := map[string]bool{}
	l := &List{}
	for i, k := range keys {
		w := writer{r: r}
		w.repr(k)
		if s := w.b.String(); !seen[s] {
			r.items(1)
			seen[s] = true
			l.Items = append(l.Items, items[i])
		}
	}
	return l
}

func filterDictsort(r *run, a arguments) Value {
	d, ok := a.list[0].(*Dict)
	if !ok {
		failf("dictsort wants a dict, not %s", kindOf(a.list[0]))
	}
	sensitive := truth(a.or(1, "case_sensitive", false))
	byValue := r.text(a.or(2, "by", "key")) == "value"
	key := func(k string) Value {
		if byValue {
			return r.fold(d.values[k], sensitive)
		}
		return r.fold(k, sensitive)
	}
	down := truth(a.or(3, "reverse", false))
	r.items(len(d.keys))
	keys := slices.Clone(d.keys)
	slices.SortStableFunc(keys, func(x, y string) int {
		if down {
			x, y = y, x
		}
		return r.compare(key(x), key(y))
	})
	return r.pairs(d, keys)
}

// filterMap takes a member of each item, or applies a filter to each.
func filterMap(r *run, a arguments) Value {
	items := r.iterate(a.list[0])
	if by, ok := a.get(-1, "attribute"); ok {
		return &List{Items: r.members(items, r.text(by), a.or(-1, "default", Undefined{}))}
	}
	name := r.text(a.or(1, "", ""))
	f := filterNamed(name)
	if f == nil {
		failf("map: there is no filter %q", name)
	}
	r.enter()
	defer r.leave()
	r.items(len(items))
	out := make([]Value, len(items))
	for i, v := range items {
		args := a.rest(2)
		args.list = append([]Value{v}, args.list...)
		r.items(len(args.list))
		out[i] = f(r, args)
	}
	return &List{Items: out}
}

// choose keeps the items for which a test gives want; without a test, those that are true.
func (r *run) choose(a arguments, byMember, want bool) Value {
	items := r.iterate(a.list[0])
	a = a.rest(1)
	path := ""
	if byMember {
		path = r.text(a.or(0, "", ""))
		a = a.rest(1)
	}
	test := func(_ *run, v Value, _ []Value) bool { return truth(v) }
	if len(a.list) > 0 {
		name := r.text(a.list[0])
		if test = testNamed(name); test == nil {
			failf("there is no test %q", name)
		}
		a = a.rest(1)
	}
	return &List{Items: r.keep(items, func(v Value) bool {
		r.step(1)
		if byMember {
			v = r.member(v, path, Undefined{})
		}
		return test(r, v, a.list) == want
	})}
}

func filterSum(r *run, a arguments) Value {
	items := r.iterate(a.list[0])
	if by, ok := a.get(1, "attribute"); ok && by != nil {
		items = r.members(items, r.text(by), Undefined{})
	}
	total := a.or(2, "start", int64(0))
	for _, v := range items {
		r.step(1)
		fa, ia, intA, okA := number(total)
		fb, ib, intB, okB := number(v)
		switch {
		case intA && intB:
			total = ia + ib
		case okA && okB:
			total = fa + fb
		default:
			failf("sum: %s is not a number", kindOf(v))
		}
	}
	return total
}

func filterBatch(r *run, a arguments) Value {
	items := r.iterate(a.list[0])
	n := index(a.or(1, "linecount", nil), "batch")
	if n < 1 {
		failf("batch of %d items", n)
	}
	r.items(2 * len(items))
	l := &List{}
	for part := range slices.Chunk(items, n) {
		batch := slices.Clone(part)
		if fill := a.or(2, "fill_with", nil); fill != nil {
			r.items(n - len(batch))
			for len(batch) < n {
				batch = append(batch, fill)
			}
		}
		l.Items = append(l.Items, &List{Items: batch})
	}
	return l
}
