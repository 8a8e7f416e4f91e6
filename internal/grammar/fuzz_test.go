package grammar

import (
	"math/rand/v2"
	"testing"
)

// try runs a grammar over a small vocabulary: whatever it is, a mask is what Accept
// takes, and a state without tokens is an end.
func try(t *testing.T, g *Grammar, tk *Tokens) {
	r := rand.New(rand.NewPCG(5, 5))
	m := g.Matcher(tk)
	for range 20 {
		allowed := ids(m.Allowed())
		if len(allowed) == 0 {
			if !m.CanEnd() {
				t.Fatal("stuck")
			}
			return
		}
		if id := allowed[r.IntN(len(allowed))]; !m.Accept(id) {
			t.Fatalf("token %d is allowed and not accepted", id)
		}
	}
}

func FuzzFromJSONSchema(f *testing.F) {
	for seed := range uint64(12) {
		f.Add([]byte(`{` + treeDef + `,"allOf":[` + randomSchema(rand.New(rand.NewPCG(seed, 7)), 2).schema + `]}`))
	}
	f.Add([]byte(`{"type":["string","null"],"pattern":"^(a|b{2,5})+$","maxLength":4}`))
	f.Add([]byte(`{"anyOf":[{"$ref":"#/definitions/a"},{"type":"array","items":[{},{"const":1}],"additionalItems":{"$ref":"#"}}],"definitions":{"a":{"multipleOf":3,"minimum":-4.5e1}}}`))
	tk := tokensOf(pieces())
	f.Fuzz(func(t *testing.T, schema []byte) {
		if g, err := FromJSONSchema(schema); err == nil {
			try(t, g, tk)
		}
	})
}

func FuzzFromGBNF(f *testing.F) {
	for _, text := range gbnfSamples {
		f.Add(text)
	}
	f.Add("root ::= a{2,3} | [^\\x00-\\x7f]* \"x\"?\na ::= (\"b\" | .)+ a?\n")
	tk := tokensOf(pieces())
	f.Fuzz(func(t *testing.T, text string) {
		if g, err := FromGBNF(text); err == nil {
			try(t, g, tk)
		}
	})
}

func FuzzFromRegex(f *testing.F) {
	for _, re := range []string{`a|bc*`, `(?i)k{2,3}$`, `\d+[^a-z]\pL?`, `^(a*)*|\x{10ffff}`, `[^]a]\u00e9\/`} {
		f.Add(re)
	}
	tk := tokensOf(pieces())
	f.Fuzz(func(t *testing.T, re string) {
		if g, err := FromRegex(re); err == nil {
			try(t, g, tk)
		}
	})
}
