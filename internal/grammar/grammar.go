package grammar

import "sync"

// Grammar is a compiled grammar: the set of texts that an answer may be. It is
// immutable and may be shared by any number of goroutines; what matchers find
// out about it is cached in it, so a grammar that is used again should be kept.
type Grammar struct {
	prog *program

	mu       sync.Mutex
	machines map[*Tokens]*machine // one per vocabulary
}

// FromJSONSchema compiles a JSON schema (draft 2020-12 or 7) to the grammar of
// the JSON texts that are valid against it. docs/structured-output.md lists what
// is read and where the grammar is narrower than the schema; it is never wider.
//
// A keyword that cannot be kept is an *UnsupportedError, malformed JSON or a
// keyword with a value of the wrong type is a *SyntaxError, and a schema without
// a valid instance or one too large wraps ErrUnsatisfiable or ErrTooLarge.
func FromJSONSchema(schema []byte) (*Grammar, error) {
	return nil, &UnsupportedError{Keyword: "schema"}
}

// JSON returns the grammar of any JSON object, response format "json_object" of
// the OpenAI API.
func JSON() *Grammar { return nil }

// FromRegex compiles a regular expression in RE2 syntax to the grammar of the
// texts that match it as a whole. Lookaround, backreferences and word boundaries
// are an *UnsupportedError.
func FromRegex(re string) (*Grammar, error) {
	return nil, &UnsupportedError{Keyword: "regex"}
}

// FromGBNF compiles a grammar in llama.cpp's GBNF notation; its texts are those
// of the rule root. Left recursion is an *UnsupportedError.
func FromGBNF(text string) (*Grammar, error) {
	return nil, &UnsupportedError{Keyword: "gbnf"}
}

// Matcher returns the state of one answer, before its first token, in the
// vocabulary t.
func (g *Grammar) Matcher(t *Tokens) *Matcher { return &Matcher{} }

type (
	program struct{}
	machine struct{}
)
