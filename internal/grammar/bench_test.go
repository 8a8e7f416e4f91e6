package grammar

import (
	"testing"

	"github.com/inkling-go/inkling/internal/token"
)

const toolSchema = `{"type":"object","properties":{
	"query":{"type":"string","description":"what to look for"},
	"filters":{"type":"array","items":{"type":"object","properties":{"field":{"enum":["title","author","year"]},"op":{"enum":["=","<",">"]},"value":{"anyOf":[{"type":"string","maxLength":80},{"type":"number"}]}},"required":["field","op","value"],"additionalProperties":false},"maxItems":5},
	"limit":{"type":"integer","minimum":1,"maximum":100},
	"since":{"type":["string","null"],"format":"date"}},
	"required":["query","filters","limit","since"],"additionalProperties":false}`

const toolAnswer = `{"query": "constrained decoding station", "filters": [{"field": "title", "op": "=", "value": "ing re"}, {"field": "year", "op": ">", "value": 2019}], "limit": 25, "since": "2024-02-29"}`

func realVocabulary(b *testing.B) *Tokens {
	v, err := token.LoadTokenizerJSON("../../testdata/inkling-tiny/tokenizer.json")
	if err != nil {
		b.Fatal(err)
	}
	return NewTokens(v.N(), v.Piece)
}

// BenchmarkAnswer is Allowed and Accept over one answer: cold, with a grammar that
// was never used, and warm. ns/token is the figure to compare with a decode step.
func BenchmarkAnswer(b *testing.B) {
	vocabularies := map[string]*Tokens{"200k": bigVocabulary(200_000), "inkling-tiny": realVocabulary(b)}
	grammars := map[string]func() *Grammar{
		"tool":   func() *Grammar { return schemaGrammar(b, toolSchema) },
		"object": JSON,
	}
	for vocabulary, tk := range vocabularies {
		answer := greedy(tk, toolAnswer)
		for name, compile := range grammars {
			run := func(b *testing.B, g *Grammar) {
				m := g.Matcher(tk)
				for _, id := range answer {
					m.Allowed()
					if !m.Accept(id) {
						b.Fatalf("token %q is not accepted", tk.piece(id))
					}
				}
			}
			perToken := func(b *testing.B) {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(answer)), "ns/token")
			}
			b.Run(vocabulary+"/"+name+"/cold", func(b *testing.B) {
				for b.Loop() {
					run(b, compile())
				}
				perToken(b)
			})
			b.Run(vocabulary+"/"+name+"/warm", func(b *testing.B) {
				g := compile()
				for b.Loop() {
					run(b, g)
				}
				perToken(b)
			})
		}
	}
}

// BenchmarkStringMask is the dearest mask: all of the vocabulary, inside a string.
func BenchmarkStringMask(b *testing.B) {
	tk := bigVocabulary(200_000)
	for b.Loop() {
		m := JSON().Matcher(tk)
		for _, c := range `{"k` {
			m.Accept(c)
		}
		m.Allowed()
	}
}
