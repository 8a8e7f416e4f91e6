package grammar

// Matcher is the state of one answer: which texts may follow what was accepted.
// A Matcher belongs to one goroutine at a time; matchers of one grammar may run
// in different goroutines.
type Matcher struct{}

// Allowed returns the tokens that may come next, bit id%64 of word id/64 per
// token. The slice is shared and must not be written to; it is valid until the
// next Accept. Tokens without a piece are never allowed, so the set can be empty
// where CanEnd is true. Otherwise it has a member, provided that the vocabulary
// has a token for each single byte.
func (m *Matcher) Allowed() []uint64 { return nil }

// Accept moves past token id. It returns false, and changes nothing, when id is
// not allowed.
func (m *Matcher) Accept(id int32) bool { return false }

// CanEnd reports whether the text accepted so far is complete.
func (m *Matcher) CanEnd() bool { return false }

// Clone returns an independent matcher in the same state.
func (m *Matcher) Clone() *Matcher { c := *m; return &c }
