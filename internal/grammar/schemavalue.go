package grammar

import (
	"cmp"
	"fmt"
	"slices"
)

// maxItemCount bounds minItems and maxItems: each item has its own states.
const maxItemCount = 4096

// values is the JSON values that keywords allow. Without type, a schema is about
// the types that its other keywords are about.
func (c *schemaCompiler) values(k *keywords) (expr, error) {
	if k.limited {
		return c.enum(k)
	}
	t := k.types
	if !k.typed && k.implied != 0 {
		t = k.implied
	} else if t == allTypes && k.implied == 0 {
		return c.json.value(), nil
	}
	var out alt
	for _, kind := range []struct {
		t    types
		make func(*keywords) (expr, error)
	}{
		{objectType, c.objectOf},
		{arrayType, c.arrayOf},
		{stringType, c.stringOf},
		{boolType, func(*keywords) (expr, error) { return boolean(), nil }},
		{nullType, func(*keywords) (expr, error) { return literal("null"), nil }},
	} {
		if t&kind.t == 0 {
			continue
		}
		x, err := kind.make(k)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	if t&numberType != 0 {
		x, err := c.numberOf(k, t&fractionType == 0)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// enum is the listed values for which the other keywords hold.
func (c *schemaCompiler) enum(k *keywords) (expr, error) {
	text, err := k.stringDFA()
	if err != nil {
		return nil, err
	}
	var out alt
	for _, v := range k.enum {
		ok, err := k.holds(v, text)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, literal(v.String()))
		}
	}
	return out, nil
}

// holds reports whether the keywords beside enum hold for v; text is k.stringDFA.
func (k *keywords) holds(v *jsonNode, text *dfa) (bool, error) {
	switch v.kind {
	case jsonNull:
		return k.types&nullType != 0, nil
	case jsonBool:
		return k.types&boolType != 0, nil
	case jsonNumber:
		return k.holdsNumber(v)
	case jsonString:
		if k.types&stringType == 0 {
			return false, nil
		}
		n := len([]rune(v.text))
		return n >= k.minLength && (k.maxLength < 0 || n <= k.maxLength) && (text == nil || text.accepts(quote(v.text))), nil
	case jsonArray:
		if k.types&arrayType != 0 && (len(k.arrays) > 0 || k.minItems >= 0 || k.maxItems >= 0) {
			return false, &UnsupportedError{Keyword: "enum", Path: k.at.path(), Reason: "it lists arrays beside other keywords about arrays"}
		}
		return k.types&arrayType != 0, nil
	default:
		if k.types&objectType != 0 && len(k.objects) > 0 {
			return false, &UnsupportedError{Keyword: "enum", Path: k.at.path(), Reason: "it lists objects beside other keywords about objects"}
		}
		return k.types&objectType != 0, nil
	}
}

// stringOf is the strings that the keywords allow.
func (c *schemaCompiler) stringOf(k *keywords) (expr, error) {
	if k.maxLength >= 0 && k.maxLength < k.minLength {
		return alt{}, nil
	}
	d, err := k.stringDFA()
	if err != nil {
		return nil, err
	}
	if d == nil {
		return c.json.text(k.minLength, k.maxLength), nil
	}
	if k.minLength > 0 || k.maxLength >= 0 {
		size, err := regular(seq{literal(`"`), repeat{jsonEncoding(anyRune), k.minLength, k.maxLength}, literal(`"`)}, maxRegexStates)
		if err == nil {
			d, err = intersect(d, size, maxRegexStates)
		}
		if err != nil {
			return nil, fmt.Errorf("%w, in minLength and maxLength beside pattern or format at %s", err, k.at.path())
		}
	}
	return c.b.add(k.at.path(), d), nil
}

// stringDFA is the JSON strings that match all patterns and formats; nil without
// any.
func (k *keywords) stringDFA() (*dfa, error) {
	var all *dfa
	add := func(re string, search bool, at *jsonNode) error {
		x, err := parseRegex(re, at.path())
		if err != nil {
			return err
		}
		d, err := matchDFA(x, jsonEncoding, search, at.path())
		if err != nil {
			return fmt.Errorf("%w, in the %s at %s", err, at.key, at.path())
		}
		if all == nil {
			all = d
			return nil
		}
		all, err = intersect(all, d, maxRegexStates)
		return err
	}
	for _, p := range k.patterns {
		if err := add(p.text, true, p); err != nil {
			return nil, err
		}
	}
	for _, f := range k.formats {
		if err := add(stringFormats[f.text], false, f); err != nil {
			return nil, err
		}
	}
	if all == nil {
		return nil, nil
	}
	return regular(seq{literal(`"`), all, literal(`"`)}, maxRegexStates)
}

// arrayOf is the arrays that the keywords allow.
func (c *schemaCompiler) arrayOf(k *keywords) (expr, error) {
	fixed := 0
	for _, v := range k.arrays {
		fixed = max(fixed, len(v.prefix))
	}
	low, high := k.minItems, k.maxItems
	if max(low, high, fixed) > maxItemCount {
		return nil, fmt.Errorf("grammar: an array of more than %d counted items at %s: %w", maxItemCount, k.at.path(), ErrTooLarge)
	}
	if low < 0 { // a tuple is written in full
		low = fixed
		if high >= 0 {
			low = min(low, high)
		}
	}
	if high >= 0 && high < low {
		return alt{}, nil
	}
	if high >= 0 {
		fixed = min(fixed, high)
	}
	n := net{n: fixed + 2}
	end := fixed + 1
	for i := range fixed {
		item, err := c.item(k, i)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			item = seq{c.json.comma(), item}
		}
		n.edges = append(n.edges, netEdge{i, i + 1, item})
		if i >= low {
			n.edges = append(n.edges, netEdge{i, end, seq{}})
		}
	}
	rest, err := c.rest(k, fixed, low, high)
	if err != nil {
		return nil, err
	}
	n.edges = append(n.edges, netEdge{fixed, end, rest})
	return c.json.braces("[", n, "]"), nil
}

// item is what all views say about item i.
func (c *schemaCompiler) item(k *keywords, i int) (expr, error) {
	var schemas []*jsonNode
	for _, v := range k.arrays {
		switch {
		case i < len(v.prefix):
			schemas = append(schemas, v.prefix[i])
		case v.rest != nil:
			schemas = append(schemas, v.rest)
		}
	}
	return c.all(schemas)
}

// rest is the items after the fixed ones. A tuple whose schema does not say what
// follows it has no more items than minItems demands.
func (c *schemaCompiler) rest(k *keywords, fixed, low, high int) (expr, error) {
	low = floor0(low - fixed)
	open := fixed == 0 || slices.ContainsFunc(k.arrays, func(v arrayView) bool { return v.rest != nil })
	switch {
	case high >= 0:
		high -= fixed
		if !open {
			high = low
		}
	case !open:
		high = low
	}
	if high == 0 {
		return seq{}, nil
	}
	item, err := c.item(k, maxItemCount)
	if err != nil {
		return nil, err
	}
	if fixed == 0 {
		return c.json.list(item, low, high), nil
	}
	return repeat{seq{c.json.comma(), item}, low, high}, nil
}

// member is a property of an object.
type member struct {
	name     string
	required bool
	value    expr
}

// objectOf is the objects that the keywords allow: members in the order of the
// schema, then additional ones.
func (c *schemaCompiler) objectOf(k *keywords) (expr, error) {
	members, names, err := c.members(k)
	if err != nil {
		return nil, err
	}
	extra, err := c.additional(k, names)
	if err != nil {
		return nil, err
	}
	// Two rows of nodes: row 0 before the first member, row 1 after it, where a
	// comma comes before the next one.
	n := net{n: 2*len(members) + 3}
	node := func(row, i int) int { return row*(len(members)+1) + i }
	end := n.n - 1
	for row := range 2 {
		for i, m := range members {
			var x expr = c.b.add(m.name, seq{literal(quote(m.name)), c.json.colon(), m.value})
			if row == 1 {
				x = seq{c.json.comma(), x}
			}
			n.edges = append(n.edges, netEdge{node(row, i), node(1, i+1), x})
			if !m.required {
				n.edges = append(n.edges, netEdge{node(row, i), node(row, i+1), seq{}})
			}
		}
		var tail expr = seq{}
		if extra != nil && row == 0 {
			tail = c.json.list(extra, 0, -1)
		} else if extra != nil {
			tail = repeat{seq{c.json.comma(), extra}, 0, -1}
		}
		n.edges = append(n.edges, netEdge{node(row, len(members)), end, tail})
	}
	return c.json.braces("{", n, "}"), nil
}

// members lists the declared properties, then those only required, with what all
// views say about each.
func (c *schemaCompiler) members(k *keywords) ([]member, []string, error) {
	var names []string
	required := map[string]bool{}
	at := map[string]int{}
	list := func(all []string) {
		for _, name := range all {
			if _, ok := at[name]; !ok {
				at[name] = len(names)
				names = append(names, name)
			}
		}
	}
	for _, v := range k.objects {
		list(v.names)
	}
	for _, v := range k.objects {
		list(v.required)
		for _, name := range v.required {
			required[name] = true
		}
	}
	schemas := make([][]*jsonNode, len(names))
	for _, v := range k.objects {
		own := map[string]bool{}
		for i, name := range v.names {
			own[name] = true
			schemas[at[name]] = append(schemas[at[name]], v.schemas[i])
		}
		if v.additional == nil {
			continue
		}
		for i, name := range names {
			if !own[name] {
				schemas[i] = append(schemas[i], v.additional)
			}
		}
	}
	members := make([]member, len(names))
	for i, name := range names {
		value, err := c.all(schemas[i])
		if err != nil {
			return nil, nil, err
		}
		members[i] = member{name, required[name], value}
	}
	return members, names, nil
}

// additional is a member that is none of names; nil when there may be none. An
// object whose schema has properties and does not speak of others has no others.
func (c *schemaCompiler) additional(k *keywords, names []string) (expr, error) {
	var schemas []*jsonNode
	closed := false
	for _, v := range k.objects {
		if v.additional != nil {
			schemas = append(schemas, v.additional)
		}
		closed = closed || v.names != nil
	}
	if closed && len(schemas) == 0 {
		return nil, nil
	}
	value, err := c.all(schemas)
	if err != nil {
		return nil, err
	}
	if none, ok := value.(alt); ok && len(none) == 0 {
		return nil, nil
	}
	key, err := c.otherKey(names)
	if err != nil {
		return nil, err
	}
	return seq{key, c.json.colon(), value}, nil
}

// otherKey is a key that is none of names. Its characters have one spelling each,
// so that a name cannot hide behind escapes.
func (c *schemaCompiler) otherKey(names []string) (expr, error) {
	if len(names) == 0 {
		return c.json.text(0, -1), nil
	}
	names = slices.Clone(names)
	slices.SortFunc(names, cmp.Compare)
	var taken alt
	for _, n := range names {
		taken = append(taken, literal(quote(n)))
	}
	not, err := regular(taken, maxStates)
	if err != nil {
		return nil, err
	}
	all, err := regular(seq{literal(`"`), repeat{jsonEncoding(anyRune), 0, -1}, literal(`"`)}, maxStates)
	if err != nil {
		return nil, err
	}
	d, err := subtract(all, not, maxStates)
	if err != nil {
		return nil, err
	}
	return c.b.add("other key", d), nil
}
