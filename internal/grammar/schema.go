package grammar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Limits on what a schema may expand to.
const (
	maxBranches  = 256     // combinations of the anyOf and oneOf that hold for one value
	maxExpansion = 1 << 13 // schemas looked at for one value
)

// FromJSONSchema compiles a JSON schema (draft 2020-12 or 7) to the grammar of the
// JSON texts that are valid against it. docs/structured-output.md lists what is
// read and where the grammar is narrower than the schema; it is never wider.
//
// A keyword that cannot be kept is an *UnsupportedError, malformed JSON or a
// keyword with a value of the wrong type is a *SyntaxError, and a schema without
// a valid instance or one too large wraps ErrUnsatisfiable or ErrTooLarge.
func FromJSONSchema(schema []byte) (*Grammar, error) {
	root, err := parseSchemaText(schema)
	if err != nil {
		return nil, err
	}
	return compileSchemas(root, root)
}

// compileSchemas compiles the texts for which all of the schemas hold. References
// are to root.
func compileSchemas(root *jsonNode, schemas ...*jsonNode) (_ *Grammar, err error) {
	b := &builder{}
	c := &schemaCompiler{b: b, json: newJSONRules(b), root: root, rules: map[string]call{}}
	top := b.add("root", nil)
	if b.rules[top].body, err = c.all(schemas); err != nil {
		return nil, err
	}
	for len(c.queue) > 0 {
		q := c.queue[0]
		c.queue = c.queue[1:]
		if b.rules[q.rule].body, err = c.body(q.schemas); err != nil {
			return nil, err
		}
		if len(b.rules) > maxRules {
			return nil, fmt.Errorf("grammar: a schema of more than %d rules: %w", maxRules, ErrTooLarge)
		}
	}
	return b.grammar(top)
}

// schemaCompiler makes one rule for each set of schemas that hold together for a
// value: a schema alone, or with those that allOf, $ref and the like add to it.
// There are finitely many sets, so recursive schemas come to an end.
type schemaCompiler struct {
	b     *builder
	json  *jsonRules
	root  *jsonNode
	rules map[string]call // by the ids of the schemas
	queue []queued        // rules without a body yet
}

type queued struct {
	rule    call
	schemas []*jsonNode
}

// all is the values for which all of the schemas hold.
func (c *schemaCompiler) all(schemas []*jsonNode) (expr, error) {
	schemas = slices.Clone(schemas)
	slices.SortFunc(schemas, func(a, b *jsonNode) int { return cmp.Compare(a.id, b.id) })
	schemas = slices.Compact(schemas)
	var key []byte
	kept := schemas[:0]
	for _, s := range schemas {
		switch {
		case s.kind == jsonBool && s.truth:
			continue
		case s.kind == jsonBool:
			return alt{}, nil
		case s.kind != jsonObject:
			return nil, s.wrongType("a schema")
		}
		kept = append(kept, s)
		key = binary.AppendUvarint(key, uint64(s.id))
	}
	if len(kept) == 0 {
		return c.json.value(), nil
	}
	if r, ok := c.rules[string(key)]; ok {
		return r, nil
	}
	r := c.b.add(kept[0].path(), nil)
	c.rules[string(key)] = r
	c.queue = append(c.queue, queued{r, kept})
	return r, nil
}

// body is the alternatives of a rule: one for each choice of branches.
func (c *schemaCompiler) body(schemas []*jsonNode) (expr, error) {
	e := &expansion{root: c.root}
	var todo []pending
	for _, s := range schemas {
		todo = append(todo, pending{schema: s})
	}
	if err := e.expand(todo, nil); err != nil {
		return nil, err
	}
	var out alt
	for _, flat := range e.out {
		k, err := gather(flat, c.root)
		if err != nil {
			return nil, err
		}
		x, err := c.values(k)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// expansion follows $ref, allOf, anyOf and oneOf until only keywords about the
// value itself are left.
type expansion struct {
	root  *jsonNode
	out   [][]*jsonNode // for each choice of branches, the schemas whose other keywords hold
	steps int
}

// pending is a schema that holds for the value, and how it came in.
type pending struct {
	schema *jsonNode
	via    *pending
}

func (e *expansion) expand(todo []pending, flat []*jsonNode) error {
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		if e.steps++; e.steps > maxExpansion {
			return fmt.Errorf("grammar: the combinations of allOf, anyOf and $ref at %s: %w", p.schema.path(), ErrTooLarge)
		}
		for v := p.via; v != nil; v = v.via {
			if v.schema == p.schema {
				return &SyntaxError{Input: "schema", Where: p.schema.path(), Reason: "refers to itself without a value between"}
			}
		}
		s := p.schema
		if s.kind == jsonBool && s.truth || slices.Contains(flat, s) {
			continue
		}
		if s.kind == jsonBool {
			return nil // this choice has no value
		}
		if s.kind != jsonObject {
			return s.wrongType("a schema")
		}
		flat = append(flat[:len(flat):len(flat)], s)
		if ref := s.get("$ref"); ref != nil {
			to, err := ref.resolve(e.root)
			if err != nil {
				return err
			}
			todo = append(todo[:len(todo):len(todo)], pending{to, &p})
		}
		var choices [][]*jsonNode
		for _, key := range []string{"allOf", "anyOf", "oneOf"} {
			n := s.get(key)
			if n == nil {
				continue
			}
			if n.kind != jsonArray || len(n.values) == 0 {
				return n.wrongType("an array with at least one schema")
			}
			if key != "allOf" {
				choices = append(choices, n.values)
				continue
			}
			for _, v := range n.values {
				todo = append(todo[:len(todo):len(todo)], pending{v, &p})
			}
		}
		if len(choices) > 0 {
			return e.choose(choices, todo, flat, &p)
		}
	}
	if len(e.out) >= maxBranches {
		return fmt.Errorf("grammar: more than %d combinations of anyOf and oneOf at %s: %w", maxBranches, flat[0].path(), ErrTooLarge)
	}
	e.out = append(e.out, flat)
	return nil
}

// choose goes on with each branch of the first choice.
func (e *expansion) choose(choices [][]*jsonNode, todo []pending, flat []*jsonNode, via *pending) error {
	if len(choices) == 0 {
		return e.expand(todo, flat)
	}
	for _, branch := range choices[0] {
		next := append(todo[:len(todo):len(todo)], pending{branch, via})
		if err := e.choose(choices[1:], next, flat, via); err != nil {
			return err
		}
	}
	return nil
}
