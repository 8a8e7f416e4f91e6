package jinja

import (
	"strings"
)

// stmt is a node of a template.
type stmt interface {
	exec(r *run) signal
}

// signal says how a statement ended.
type signal int

const (
	normal signal = iota
	breakLoop
	continueLoop
)

type (
	textStmt   struct{ text string }
	outputStmt struct{ x expr }
	ifStmt     struct {
		conds  []expr
		bodies [][]stmt // one more than conds if there is an else
	}
	forStmt struct {
		targets    []string
		over, cond expr // cond may be nil
		body, none []stmt
	}
	setStmt struct {
		targets []string // one may be NAMESPACE.NAME
		x       expr
	}
	setBlock struct {
		target string
		body   []stmt
		chain  []filterOf
	}
	macroStmt struct {
		name     string
		params   []string
		defaults []expr // nil where there is none
		body     []stmt
	}
	callStmt struct {
		params []string
		call   callOf
		body   []stmt
	}
	filterStmt struct {
		chain []filterOf
		body  []stmt
	}
	jump struct{ signal }
)

// exec runs statements: all recursion of statements goes through here.
func (r *run) exec(body []stmt) signal {
	r.enter()
	for _, s := range body {
		r.step(1)
		if sig := s.exec(r); sig != normal {
			r.leave()
			return sig
		}
	}
	r.leave()
	return normal
}

// capture runs statements and returns their output as a text.
func (r *run) capture(body []stmt) string {
	outer := r.out
	r.out = &strings.Builder{}
	r.exec(body)
	text := r.out.String()
	r.out = outer
	return text
}

func (r *run) print(s string) {
	r.grow(len(s))
	r.out.WriteString(s)
}

func (s textStmt) exec(r *run) signal {
	r.print(s.text)
	return normal
}

func (s outputStmt) exec(r *run) signal {
	r.print(r.text(r.eval(s.x)))
	return normal
}

func (s ifStmt) exec(r *run) signal {
	for i, c := range s.conds {
		if truth(r.eval(c)) {
			return r.exec(s.bodies[i])
		}
	}
	if len(s.bodies) > len(s.conds) {
		return r.exec(s.bodies[len(s.conds)])
	}
	return normal
}

func (s jump) exec(*run) signal { return s.signal }

func (s setStmt) exec(r *run) signal {
	r.assign(s.targets, r.eval(s.x))
	return normal
}

func (s setBlock) exec(r *run) signal {
	r.assign([]string{s.target}, r.applyChain(s.chain, r.capture(s.body)))
	return normal
}

func (s filterStmt) exec(r *run) signal {
	r.print(r.text(r.applyChain(s.chain, r.capture(s.body))))
	return normal
}

func (r *run) applyChain(chain []filterOf, text string) Value {
	var v Value = text
	for _, f := range chain {
		f.x = literal{v}
		v = r.eval(f)
	}
	return v
}

// assign sets one variable, or several to the items of a list.
func (r *run) assign(targets []string, v Value) {
	if len(targets) == 1 {
		r.set(targets[0], v)
		return
	}
	items := r.iterate(v)
	if len(items) != len(targets) {
		failf("%d values for %d variables", len(items), len(targets))
	}
	for i, t := range targets {
		r.set(t, items[i])
	}
}

func (r *run) set(target string, v Value) {
	r.items(1)
	if space, member, ok := strings.Cut(target, "."); ok {
		ns, ok := r.lookup(space).(*Namespace)
		if !ok {
			failf("set %s: %s is not a namespace", target, space)
		}
		ns.vars[member] = v
		return
	}
	r.scope.vars[target] = v
}

func (s forStmt) exec(r *run) signal {
	items := r.iterate(r.eval(s.over))
	outer := r.scope
	defer func() { r.scope = outer }()
	if s.cond != nil {
		items = r.keep(items, func(v Value) bool {
			r.scope = r.child(outer)
			r.assign(s.targets, v)
			return truth(r.eval(s.cond))
		})
	}
	if len(items) == 0 {
		r.scope = outer
		return r.exec(s.none)
	}
	for i, v := range items {
		r.scope = r.child(outer)
		r.assign(s.targets, v)
		r.scope.vars["loop"] = loopVars(items, i)
		if r.exec(s.body) == breakLoop {
			break
		}
	}
	return normal
}

// keep returns the items that ok holds for.
func (r *run) keep(items []Value, ok func(Value) bool) []Value {
	var out []Value
	for _, v := range items {
		if ok(v) {
			r.items(1)
			out = append(out, v)
		}
	}
	return out
}

// loop is the state that a loop's body sees; its members are made when they are asked for.
type loop struct {
	items []Value
	i     int
}

func loopVars(items []Value, i int) Value { return &loop{items, i} }

func (l *loop) member(name string) Value {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1)
	case "index0":
		return int64(l.i)
	case "revindex":
		return int64(n - l.i)
	case "revindex0":
		return int64(n - l.i - 1)
	case "first":
		return l.i == 0
	case "last":
		return l.i == n-1
	case "length":
		return int64(n)
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1]
		}
	case "nextitem":
		if l.i < n-1 {
			return l.items[l.i+1]
		}
	case "cycle":
		return &Func{"loop.cycle", func(_ *run, a arguments) Value {
			if len(a.list) == 0 {
				failf("loop.cycle without values")
			}
			return a.list[l.i%len(a.list)]
		}}
	}
	return Undefined{}
}

func (s macroStmt) exec(r *run) signal {
	defined := r.scope
	r.set(s.name, &Func{s.name, func(r *run, a arguments) Value {
		if len(a.list) > len(s.params) {
			failf("%s takes %d arguments, not %d", s.name, len(s.params), len(a.list))
		}
		return r.inScope(defined, func() Value {
			for i, p := range s.params {
				v, ok := a.get(i, p)
				if !ok && s.defaults[i] != nil {
					v = r.eval(s.defaults[i])
				} else if !ok {
					v = Undefined{}
				}
				r.set(p, v)
			}
			if c, ok := a.named["caller"]; ok {
				r.set("caller", c)
			}
			return r.capture(s.body)
		})
	}})
	return normal
}

// inScope runs f in a new scope under parent.
func (r *run) inScope(parent *scope, f func() Value) Value {
	outer := r.scope
	r.scope = r.child(parent)
	v := f()
	r.scope = outer
	return v
}

func (s callStmt) exec(r *run) signal {
	around := r.scope
	caller := &Func{"caller", func(r *run, a arguments) Value {
		return r.inScope(around, func() Value {
			for i, p := range s.params {
				r.set(p, a.or(i, p, Undefined{}))
			}
			return r.capture(s.body)
		})
	}}
	call := s.call
	call.args.names = append(call.args.names[:len(call.args.names):len(call.args.names)], "caller")
	call.args.named = append(call.args.named[:len(call.args.named):len(call.args.named)], literal{caller})
	r.print(r.text(r.eval(call)))
	return normal
}
