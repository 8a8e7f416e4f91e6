package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// sample is a random schema, and how to write a valid instance of it.
type sample struct {
	schema string
	write  func(r *rand.Rand, w *layout) string
}

// layout is how an instance is spaced.
type layout struct {
	comma, colon string
}

var layouts = []layout{{",", ":"}, {", ", ": "}, {",\n  ", ": "}, {" ,", " : "}}

func always(schema, instance string) sample {
	return sample{schema, func(*rand.Rand, *layout) string { return instance }}
}

var strs = []string{"", "a", "hello", "日本", "a\\\"b", "\\u00e9", "😀", "\\ud83d\\ude00", "x y", "\\n"}

// randomSchema returns a schema of the kinds that are supported. #/$defs/tree is
// there to be referred to.
func randomSchema(r *rand.Rand, depth int) sample {
	kinds := 17
	if depth <= 0 {
		kinds = 12
	}
	switch r.IntN(kinds) {
	case 0:
		return always(`{"type":"null"}`, "null")
	case 1:
		return always(`{"type":["boolean","null"]}`, "true")
	case 2:
		lo := r.IntN(400) - 200
		hi := lo + r.IntN(300)
		return sample{fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, lo, hi), func(r *rand.Rand, _ *layout) string {
			return fmt.Sprint(lo + r.IntN(hi-lo+1))
		}}
	case 3:
		m := 1 + r.IntN(20)
		return sample{fmt.Sprintf(`{"type":"integer","multipleOf":%d,"exclusiveMinimum":-100}`, m), func(r *rand.Rand, _ *layout) string {
			return fmt.Sprint(m * r.IntN(50))
		}}
	case 4:
		lo := float64(r.IntN(2000)-1000) / 100
		hi := lo + float64(1+r.IntN(1000))/100
		return sample{fmt.Sprintf(`{"type":"number","minimum":%.2f,"exclusiveMaximum":%.2f}`, lo, hi), func(r *rand.Rand, _ *layout) string {
			return fmt.Sprintf("%.2f", lo)
		}}
	case 5:
		return sample{`{"type":"number"}`, func(r *rand.Rand, _ *layout) string {
			return []string{"0", "-0.5", "1e5", "12.25E-3", "123456789"}[r.IntN(5)]
		}}
	case 6:
		lo := r.IntN(4)
		hi := lo + r.IntN(6)
		return sample{fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, lo, hi), func(r *rand.Rand, _ *layout) string {
			s := ""
			for range lo + r.IntN(hi-lo+1) {
				s += []string{"a", "é", "日", "😀", "\\n", "\\ud83d\\ude00"}[r.IntN(6)]
			}
			return `"` + s + `"`
		}}
	case 7:
		return sample{`{"type":"string"}`, func(r *rand.Rand, _ *layout) string { return `"` + strs[r.IntN(len(strs))] + `"` }}
	case 8:
		p := [][2]string{
			{`^[a-z]{2,4}$`, "abc"},
			{`^\\d+(\\.\\d+)?$`, "12.5"},
			{`ab`, "xxaby"},
			{`^(foo|bar)-?`, "bar-日"},
			{`[^0-9]$`, "1x"},
			{`^$|^a+$`, "aaa"},
			{`\\w\\s\\w`, "a b"},
			{`^.{3}$`, "é日a"},
		}[r.IntN(8)]
		return always(fmt.Sprintf(`{"type":"string","pattern":"%s"}`, p[0]), `"`+p[1]+`"`)
	case 9:
		f := [][2]string{
			{"date", "2024-02-29"},
			{"time", "23:59:59Z"},
			{"date-time", "1999-12-31T00:00:00.5+01:00"},
			{"email", "a.b@example.org"},
			{"uuid", "123e4567-e89b-12d3-a456-426614174000"},
			{"ipv4", "192.168.0.255"},
			{"ipv6", "2001:db8::1"},
			{"hostname", "www.example.com"},
			{"uri", "https://example.com:80/a/b?c=d#e"},
		}[r.IntN(9)]
		return always(fmt.Sprintf(`{"type":"string","format":"%s"}`, f[0]), `"`+f[1]+`"`)
	case 10:
		return sample{`{"enum":["red","gr\"een",3,null,[1,{"a":2}]]}`, func(r *rand.Rand, _ *layout) string {
			return []string{`"red"`, `"gr\"een"`, "3", "null", `[1,{"a":2}]`}[r.IntN(5)]
		}}
	case 11:
		return always(`{"const":"日本\n"}`, `"日本\n"`)
	case 12:
		return randomArray(r, depth)
	case 13:
		a, b := randomSchema(r, depth-1), randomSchema(r, depth-1)
		return sample{`{"anyOf":[` + a.schema + `,` + b.schema + `]}`, func(r *rand.Rand, w *layout) string {
			if r.IntN(2) == 0 {
				return a.write(r, w)
			}
			return b.write(r, w)
		}}
	case 14:
		return sample{`{"$ref":"#/$defs/tree"}`, writeTree}
	default:
		return randomObject(r, depth)
	}
}

func writeTree(r *rand.Rand, w *layout) string {
	if r.IntN(2) == 0 {
		return `{"v"` + w.colon + `1}`
	}
	return `{"v"` + w.colon + `2` + w.comma + `"kids"` + w.colon + `[{"v"` + w.colon + `0}` + w.comma + writeTree(r, w) + `]}`
}

func randomArray(r *rand.Rand, depth int) sample {
	item := randomSchema(r, depth-1)
	first := randomSchema(r, depth-1)
	lo := r.IntN(3)
	hi := lo + r.IntN(3)
	if r.IntN(3) == 0 {
		return sample{
			fmt.Sprintf(`{"type":"array","prefixItems":[%s],"items":%s,"minItems":1,"maxItems":%d}`, first.schema, item.schema, hi+1),
			func(r *rand.Rand, w *layout) string {
				s := first.write(r, w)
				for range r.IntN(hi + 1) {
					s += w.comma + item.write(r, w)
				}
				return "[" + s + "]"
			},
		}
	}
	return sample{
		fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, item.schema, lo, hi),
		func(r *rand.Rand, w *layout) string {
			var s []string
			for range lo + r.IntN(hi-lo+1) {
				s = append(s, item.write(r, w))
			}
			return "[" + strings.Join(s, w.comma) + "]"
		},
	}
}

func randomObject(r *rand.Rand, depth int) sample {
	n := r.IntN(5)
	subs := make([]sample, n)
	need := make([]bool, n)
	var props, required []string
	for i := range n {
		subs[i] = randomSchema(r, depth-1)
		props = append(props, fmt.Sprintf(`"%s":%s`, propertyName(i), subs[i].schema))
		if need[i] = r.IntN(2) == 0; need[i] {
			required = append([]string{fmt.Sprintf("%q", propertyName(i))}, required...) // out of order
		}
	}
	extra := r.IntN(3)
	additional := []string{"", `,"additionalProperties":false`, `,"additionalProperties":{"type":"integer"}`}[extra]
	text := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]%s}`, strings.Join(props, ","), strings.Join(required, ","), additional)
	if r.IntN(5) == 0 && extra == 2 {
		text = fmt.Sprintf(`{"allOf":[{"type":"object","properties":{%s}%s},{"required":[%s]}]}`, strings.Join(props, ","), additional, strings.Join(required, ","))
	}
	return sample{text, func(r *rand.Rand, w *layout) string {
		var s []string
		for i := range n {
			if need[i] || r.IntN(2) == 0 {
				s = append(s, fmt.Sprintf(`"%s"%s%s`, propertyName(i), w.colon, subs[i].write(r, w)))
			}
		}
		if extra == 2 && r.IntN(2) == 0 {
			s = append(s, `"other"`+w.colon+"7")
		}
		return "{" + strings.Join(s, w.comma) + "}"
	}}
}

func propertyName(i int) string { return []string{"a", "ab", "name", "é", "n\\\"q"}[i] }

const treeDef = `"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["v"],"additionalProperties":false}}`

func validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

func mustBeValid(t testing.TB, s *jsonschema.Schema, schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("not JSON: %v\n%q\nby %s", err, text, schema)
	}
	if err := s.Validate(v); err != nil {
		t.Fatalf("not valid: %v\n%s\nby %s", err, text, schema)
	}
}

// What a random walk through the allowed tokens writes is valid, whatever the
// schema; and what is valid is accepted, however it is cut into tokens.
func TestRandomSchemas(t *testing.T) {
	tk := tokensOf(pieces())
	n := 400
	if testing.Short() {
		n = 60
	}
	refused := 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomSchema(r, 3)
		schema := fmt.Sprintf(`{"$schema":"https://json-schema.org/draft/2020-12/schema",%s,"allOf":[%s]}`, treeDef, s.schema)
		g, err := FromJSONSchema([]byte(schema))
		if errors.Is(err, ErrUnsatisfiable) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, schema)
		}
		v := validator(t, schema)
		for range 10 {
			mustBeValid(t, v, schema, walk(t, g, tk, r))
		}
		for range 6 {
			text := s.write(r, &layouts[r.IntN(len(layouts))])
			mustBeValid(t, v, schema, text)
			if !matches(g, text) {
				t.Fatalf("seed %d: %s\nis not accepted by bytes\n%s", seed, text, schema)
			}
			m := g.Matcher(tk)
			for _, id := range greedy(tk, text) {
				if m.Allowed()[id/64]>>(id%64)&1 == 0 || !m.Accept(id) {
					t.Fatalf("seed %d: %s\nis not accepted by tokens at %q\n%s", seed, text, tk.piece(id), schema)
				}
			}
			if !m.CanEnd() {
				t.Fatalf("seed %d: %s cannot end\n%s", seed, text, schema)
			}
		}
	}
	if refused > n/20 {
		t.Errorf("%d of %d schemas were refused", refused, n)
	}
}

// The mask is the set of tokens that Accept takes, at every step.
func TestMaskIsWhatAcceptTakes(t *testing.T) {
	tk := tokensOf(pieces())
	grammars := map[string]*Grammar{"json": JSON()}
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 3))
		schema := fmt.Sprintf(`{%s,"allOf":[%s]}`, treeDef, randomSchema(r, 3).schema)
		if g, err := FromJSONSchema([]byte(schema)); err == nil {
			grammars[schema] = g
		}
	}
	for name, text := range gbnfSamples {
		g, err := FromGBNF(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		grammars[name] = g
	}
	for name, g := range grammars {
		r := rand.New(rand.NewPCG(1, 1))
		for range 4 {
			m := g.Matcher(tk)
			for range 60 {
				mask := m.Allowed()
				var want []int32
				for id := range tk.n {
					if m.Clone().Accept(int32(id)) {
						want = append(want, int32(id))
					}
				}
				if got := ids(mask); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s: allowed %v, accepted %v", name, got, want)
				}
				if len(want) == 0 {
					break
				}
				m.Accept(want[r.IntN(len(want))])
			}
		}
	}
}
