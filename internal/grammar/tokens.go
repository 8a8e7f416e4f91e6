package grammar

// Tokens is the trie over the byte strings of a vocabulary. It is immutable and
// may be shared between grammars and goroutines.
type Tokens struct{}

// NewTokens builds the trie of n tokens. piece returns the bytes of a token, any
// bytes, also parts of a character; nil or empty is a token that is never
// allowed, such as a control token. The slices are copied.
func NewTokens(n int, piece func(id int32) []byte) *Tokens { return &Tokens{} }
