package grammar

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func TestControlTokensAreNeverAllowed(t *testing.T) {
	tk := tokensOf([][]byte{nil, []byte("a"), {}, []byte("ab"), []byte(strings.Repeat("a", 70000))})
	g, err := FromRegex("a*b?")
	if err != nil {
		t.Fatal(err)
	}
	m := g.Matcher(tk)
	if got := ids(m.Allowed()); len(got) != 2 || got[0] != 1 || got[1] != 3 {
		t.Errorf("allowed %v, want [1 3]", got)
	}
	for _, id := range []int32{-1, 0, 2, 4, 5} {
		if m.Accept(id) {
			t.Errorf("token %d is accepted", id)
		}
	}
	if !m.Accept(3) || !m.CanEnd() || len(ids(m.Allowed())) != 0 {
		t.Error("after ab the text must be at its end")
	}
}

func TestCloneIsIndependent(t *testing.T) {
	g := schemaGrammar(t, `{"enum":["ab","ac"]}`)
	m := g.Matcher(bytesOnly)
	for _, b := range `"a` {
		m.Accept(b)
	}
	c := m.Clone()
	if !c.Accept('b') || c.Accept('c') {
		t.Error("the clone does not follow its own text")
	}
	if !m.Accept('c') || !m.Accept('"') || !m.CanEnd() || c.CanEnd() {
		t.Error("the clone changed its origin")
	}
}

// A string is the same state however long it is, and its mask is computed once.
func TestStringMaskIsCached(t *testing.T) {
	tk := tokensOf(pieces())
	m := JSON().Matcher(tk)
	for _, b := range `{"k` {
		m.Accept(b)
	}
	a := m.Allowed()
	m.Accept('x')
	if b := m.Allowed(); &a[0] != &b[0] {
		t.Error("a second mask was computed for the same state")
	}
}

func TestDeepNesting(t *testing.T) {
	g := schemaGrammar(t, `{"type":"array","items":{"$ref":"#"}}`)
	n := 20000
	if !matches(g, strings.Repeat("[", n)+strings.Repeat("]", n)) {
		t.Error("deep arrays are not accepted")
	}
}

// The caches are forgotten when they are full, under matchers that go on.
func TestForgetting(t *testing.T) {
	tk := tokensOf(pieces())
	g := JSON()
	r := rand.New(rand.NewPCG(4, 4))
	m, fresh := g.Matcher(tk), JSON().Matcher(tk)
	for range 300 {
		if r.IntN(5) == 0 {
			m.m.forget()
		}
		allowed, want := ids(m.Allowed()), ids(fresh.Allowed())
		if len(allowed) != len(want) {
			t.Fatalf("allowed %d tokens, want %d", len(allowed), len(want))
		}
		if len(want) == 0 {
			return
		}
		id := want[r.IntN(len(want))]
		if !m.Accept(id) || !fresh.Accept(id) {
			t.Fatal("an allowed token is not accepted")
		}
	}
}

func TestSharedByGoroutines(t *testing.T) {
	tk := tokensOf(pieces())
	schema := `{"type":"object","properties":{"s":{"type":"string","maxLength":20},"n":{"type":"array","items":{"$ref":"#"}}}}`
	g, v := schemaGrammar(t, schema), validator(t, schema)
	var wg sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		wg.Go(func() { texts[i] = walk(t, g, tk, rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	wg.Wait()
	for _, text := range texts {
		mustBeValid(t, v, schema, text)
	}
}
