package jinja

import "strings"

// testFunc is what stands after "is".
type testFunc func(r *run, v Value, args []Value) bool

// testNamed returns the test of the name, nil if there is none.
func testNamed(name string) testFunc {
	switch name {
	case "eq", "equalto", "ne", "gt", "greaterthan", "ge", "lt", "lessthan", "le", "in":
		op := map[string]string{
			"eq": "==", "equalto": "==", "ne": "!=", "gt": ">", "greaterthan": ">", "ge": ">=", "lt": "<", "lessthan": "<", "le": "<=", "in": "in",
		}[name]
		return func(r *run, v Value, args []Value) bool { return r.holds(v, op, first(args, name)) }
	case "sameas":
		return func(r *run, v Value, args []Value) bool {
			other := first(args, name)
			return kindOf(v) == kindOf(other) && r.equal(v, other)
		}
	case "divisibleby":
		return func(r *run, v Value, args []Value) bool {
			n, d := index(v, name), index(first(args, name), name)
			return d != 0 && n%d == 0
		}
	case "upper":
		return func(r *run, v Value, _ []Value) bool { s := r.text(v); return r.convert(s, strings.ToUpper) == s }
	case "lower":
		return func(r *run, v Value, _ []Value) bool { s := r.text(v); return r.convert(s, strings.ToLower) == s }
	}
	if is := kindTest(name); is != nil {
		return func(_ *run, v Value, _ []Value) bool { return is(v) }
	}
	return nil
}

func first(args []Value, name string) Value {
	if len(args) == 0 {
		failf("the test %s wants a value", name)
	}
	return args[0]
}

// kindTest returns the tests of what a value is.
func kindTest(name string) func(Value) bool {
	kind := func(kinds ...string) func(Value) bool {
		return func(v Value) bool {
			for _, k := range kinds {
				if kindOf(v) == k {
					return true
				}
			}
			return false
		}
	}
	switch name {
	case "defined":
		return func(v Value) bool { return kindOf(v) != "undefined" }
	case "undefined":
		return kind("undefined")
	case "none":
		return kind("None")
	case "boolean":
		return kind("bool")
	case "integer":
		return kind("int")
	case "float":
		return kind("float")
	case "number":
		return kind("int", "float", "bool")
	case "string":
		return kind("str")
	case "mapping":
		return kind("dict")
	case "iterable", "sequence":
		return kind("str", "list", "dict")
	case "callable":
		return func(v Value) bool { _, ok := v.(*Func); return ok }
	case "true":
		return func(v Value) bool { return v == true }
	case "false":
		return func(v Value) bool { return v == false }
	case "odd", "even":
		return func(v Value) bool {
			_, i, isInt, _ := number(v)
			return isInt && (i%2 != 0) == (name == "odd")
		}
	}
	return nil
}
