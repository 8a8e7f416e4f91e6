package jinja

import (
	"fmt"
	"regexp"
	"strings"
)

// conversion is one of Python's % conversions, with a width and a precision of two digits at most.
var conversion = regexp.MustCompile(`^%([-+0 ]*)([0-9]{0,2})(?:\.([0-9]{1,2}))?([sdrifxX%])`)

// percent is the filter format: s % values.
func (r *run) percent(s string, values []Value) string {
	r.scan(s)
	w := writer{r: r}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			w.add(s)
			break
		}
		w.add(s[:i])
		m := conversion.FindStringSubmatch(s[i:])
		if m == nil {
			failf("format: conversion %.5q is not known", s[i:])
		}
		s = s[i+len(m[0]):]
		if m[4] == "%" {
			w.add("%")
			continue
		}
		if len(values) == 0 {
			failf("format: fewer values than conversions")
		}
		w.add(r.convertPercent(m, values[0]))
		values = values[1:]
	}
	if len(values) > 0 {
		failf("format: more values than conversions")
	}
	return w.b.String()
}

func (r *run) convertPercent(m []string, v Value) string {
	r.step(8) // regular expressions and fmt take their time
	verb := "%" + m[1] + m[2]
	if m[3] != "" {
		verb += "." + m[3]
	}
	switch m[4] {
	case "s", "r":
		w := writer{r: r}
		if m[4] == "s" {
			w.str(v)
		} else {
			w.repr(v)
		}
		r.grow(w.b.Len())
		return fmt.Sprintf(verb+"s", w.b.String())
	case "f":
		f, _, _, ok := number(v)
		if !ok {
			failf("format: %%f of %s", kindOf(v))
		}
		return fmt.Sprintf(verb+"f", f)
	}
	_, i, isInt, _ := number(r.toInt(v, nil))
	if _, text := v.(string); text || !isInt {
		failf("format: %%%s of %s", m[4], kindOf(v))
	}
	return fmt.Sprintf(verb+strings.NewReplacer("i", "d").Replace(m[4]), i)
}
