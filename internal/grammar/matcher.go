package grammar

// Matcher is the state of one answer: which texts may follow what was accepted.
// A Matcher belongs to one goroutine at a time; matchers of one grammar may run
// in different goroutines.
type Matcher struct {
	m   *machine
	set *set
}

// Allowed returns the tokens that may come next, bit id%64 of word id/64 per
// token. The slice is shared and must not be written to; it is valid until the
// next Accept. Tokens without a piece are never allowed, so the set can be empty
// where CanEnd is true. Otherwise it has a member, provided that the vocabulary
// has a token for each single byte.
func (m *Matcher) Allowed() []uint64 {
	m.m.mu.Lock()
	defer m.m.mu.Unlock()
	return m.m.maskOf(m.set)
}

// Accept moves past token id. It returns false, and changes nothing, when id is
// not allowed.
func (m *Matcher) Accept(id int32) bool {
	if id < 0 || int(id) >= m.m.t.n {
		return false
	}
	piece := m.m.t.piece(id)
	if len(piece) == 0 {
		return false
	}
	m.m.mu.Lock()
	defer m.m.mu.Unlock()
	at := m.set
	for _, b := range piece {
		if at = m.m.step(at, b); at.dead() {
			return false
		}
	}
	m.set = at
	return true
}

// CanEnd reports whether the text accepted so far is complete.
func (m *Matcher) CanEnd() bool { return m.set.exit }

// Clone returns an independent matcher in the same state.
func (m *Matcher) Clone() *Matcher { c := *m; return &c }
