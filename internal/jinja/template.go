package jinja

import (
	"strings"
)

// MaxTemplate bounds the bytes of a template. The longest in use have some 30 kB.
const MaxTemplate = 1 << 17

// Template is a compiled template. It may be rendered by several goroutines at once.
type Template struct{ body []stmt }

// Compile parses a template. Its error names the line.
func Compile(src string) (t *Template, err error) {
	defer catch(&err)
	if len(src) > MaxTemplate {
		fail(&LimitError{"bytes of source", MaxTemplate})
	}
	p := parser{segs: scan(src)}
	body, _, _ := p.until(1)
	return &Template{body}, nil
}

// run is one rendering.
type run struct {
	budget
	scope *scope
	out   *strings.Builder
}

// Render runs the template with variables. A template that calls raise_exception, uses a value as what it is not, or goes over l
// ([LimitError]) gives an error. The values in vars belong to the rendering: templates append to lists.
func (t *Template) Render(vars map[string]Value, l Limits) (text string, err error) {
	defer catch(&err)
	r := &run{budget: newBudget(l), out: &strings.Builder{}}
	r.scope = &scope{vars: globals()}
	r.scope = r.child(r.scope)
	for k, v := range vars {
		r.scope.vars[k] = v
	}
	r.scope = r.child(r.scope)
	r.exec(t.body)
	return r.out.String(), nil
}

// scope holds variables; those of its parents are seen too.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (r *run) child(parent *scope) *scope {
	r.items(4) // what a map takes
	return &scope{map[string]Value{}, parent}
}

func (r *run) lookup(id string) Value {
	for s := r.scope; s != nil; s = s.parent {
		r.step(1)
		if v, ok := s.vars[id]; ok {
			return v
		}
	}
	return Undefined{}
}
