package jinja

// expr is a node of an expression.
type expr interface {
	eval(r *run) Value
}

type (
	literal struct{ v Value }
	name    struct{ id string }
	attr    struct {
		of   expr
		name string
	}
	item  struct{ of, key expr }
	slice struct{ of, from, to, step expr } // the last three may be nil
	not   struct{ x expr }
	minus struct{ x expr }
	plus  struct{ x expr }
	both  struct{ x, y expr } // and
	any1  struct{ x, y expr } // or
	// comparison is x op1 y1 op2 y2 …, as in Python: each with the next.
	comparison struct {
		x   expr
		ops []string
		ys  []expr
	}
	arithmetic struct {
		op   string
		x, y expr
	}
	choice struct{ yes, cond, no expr } // no may be nil
	listOf struct {
		items []expr
		tuple bool
	}
	dictOf struct{ keys, values []expr }
	callOf struct {
		fn   expr
		args args
	}
	filterOf struct {
		x    expr
		name string
		fn   filterFunc
		args args
	}
	testOf struct {
		x      expr
		name   string
		fn     testFunc
		negate bool
		args   args
	}
)

// args are the expressions of a call's arguments.
type args struct {
	list  []expr
	names []string
	named []expr
}

// eval evaluates x: all recursion of expressions goes through here.
func (r *run) eval(x expr) Value {
	r.step(1)
	r.enter()
	v := x.eval(r)
	r.leave()
	return v
}

func (r *run) evalArgs(a args) arguments {
	out := arguments{list: make([]Value, len(a.list)), names: a.names}
	for i, x := range a.list {
		out.list[i] = r.eval(x)
	}
	if len(a.named) > 0 {
		out.named = make(map[string]Value, len(a.named))
		for i, x := range a.named {
			out.named[a.names[i]] = r.eval(x)
		}
	}
	r.items(len(a.list) + len(a.named))
	return out
}

func (x literal) eval(*run) Value { return x.v }
func (x name) eval(r *run) Value  { return r.lookup(x.id) }
func (x attr) eval(r *run) Value  { return r.attribute(r.eval(x.of), x.name) }

func (x item) eval(r *run) Value {
	of, key := r.eval(x.of), r.eval(x.key)
	switch of := of.(type) {
	case *Dict:
		if v, ok := of.values[r.text(key)]; ok {
			return v
		}
		return Undefined{}
	case *Namespace:
		return r.attribute(of, r.text(key))
	case *List:
		if i := position(key, len(of.Items)); i >= 0 {
			return of.Items[i]
		}
	case string:
		r.scan(of)
		n := runeCount(of)
		if i := position(key, n); i >= 0 {
			return runeAt(of, i, n)
		}
	}
	return Undefined{}
}

// position returns the index that key means in a sequence of n, -1 if none.
func position(key Value, n int) int {
	_, k, isInt, _ := number(key)
	if !isInt {
		return -1
	}
	if k < 0 {
		k += int64(n)
	}
	if k < 0 || k >= int64(n) {
		return -1
	}
	return int(k)
}

func (x not) eval(r *run) Value { return !truth(r.eval(x.x)) }

func (x minus) eval(r *run) Value {
	v := r.eval(x.x)
	f, i, isInt, ok := number(v)
	switch {
	case isInt:
		return -i
	case ok:
		return -f
	}
	failf("- wants a number, not %s", kindOf(v))
	return nil
}

func (x plus) eval(r *run) Value { return r.eval(x.x) }

func (x both) eval(r *run) Value {
	if v := r.eval(x.x); !truth(v) {
		return v
	}
	return r.eval(x.y)
}

func (x any1) eval(r *run) Value {
	if v := r.eval(x.x); truth(v) {
		return v
	}
	return r.eval(x.y)
}

func (x comparison) eval(r *run) Value {
	left := r.eval(x.x)
	for i, op := range x.ops {
		right := r.eval(x.ys[i])
		if !r.holds(left, op, right) {
			return false
		}
		left = right
	}
	return true
}

func (r *run) holds(x Value, op string, y Value) bool {
	switch op {
	case "==":
		return r.equal(x, y)
	case "!=":
		return !r.equal(x, y)
	case "in":
		return r.contains(y, x)
	case "not in":
		return !r.contains(y, x)
	case "<":
		return r.compare(x, y) < 0
	case "<=":
		return r.compare(x, y) <= 0
	case ">":
		return r.compare(x, y) > 0
	}
	return r.compare(x, y) >= 0
}

func (x choice) eval(r *run) Value {
	switch {
	case truth(r.eval(x.cond)):
		return r.eval(x.yes)
	case x.no != nil:
		return r.eval(x.no)
	}
	return Undefined{}
}

func (x listOf) eval(r *run) Value {
	r.items(len(x.items))
	l := &List{Items: make([]Value, len(x.items)), tuple: x.tuple}
	for i, item := range x.items {
		l.Items[i] = r.eval(item)
	}
	return l
}

func (x dictOf) eval(r *run) Value {
	r.items(2 * len(x.keys))
	d := NewDict()
	for i, k := range x.keys {
		key := r.text(r.eval(k))
		d.Set(key, r.eval(x.values[i]))
	}
	return d
}

func (x callOf) eval(r *run) Value {
	f, ok := r.eval(x.fn).(*Func)
	if !ok {
		failf("%s is not a function", spell(x.fn))
	}
	return f.call(r, r.evalArgs(x.args))
}

// spell names x for messages.
func spell(x expr) string {
	switch x := x.(type) {
	case name:
		return x.id
	case attr:
		return spell(x.of) + "." + x.name
	case item:
		return spell(x.of) + "[…]"
	}
	return "the value"
}

func (x filterOf) eval(r *run) Value {
	v := r.eval(x.x)
	a := r.evalArgs(x.args)
	a.list = append([]Value{v}, a.list...)
	return x.fn(r, a)
}

func (x testOf) eval(r *run) Value {
	v := r.eval(x.x)
	return x.fn(r, v, r.evalArgs(x.args).list) != x.negate
}
