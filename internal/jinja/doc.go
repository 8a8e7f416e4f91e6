// Package jinja renders chat templates: Jinja2 as transformers sets it up (trim_blocks, lstrip_blocks, loop controls, its own
// tojson, raise_exception and strftime_now), with limits.
//
// A chat template is a program that comes with a model file, so it may be hostile. Jinja2 itself bounds neither recursion nor loops
// nor the length of texts. Here every step of a program and every byte that it makes is counted before it is made (budget.go): a
// template that goes over its limits ends in a [LimitError]. The parser has limits of its own.
//
// Not there: inheritance and imports (include, extends, import, block), recursive loops, autoescaping, and big
// numbers. As in other engines for chat templates, an attribute of an undefined value is undefined, not an error, and
// lists can be appended to.
package jinja
