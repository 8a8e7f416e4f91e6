package chat

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inkling-go/inkling/internal/token"
)

// A Jinja template mixes its own control tokens and the texts of strangers into one string, and afterwards nothing tells
// "<|end_message|>" of the one from "<|end_message|>" of the other. So before rendering, a mask changes characters of the texts
// where they could take part in a special token's string: they become private-use characters that occur nowhere else in the
// request. After rendering, only strings that the template itself wrote are special tokens; the changed characters are then put
// back.
//
// Masked are:
//   - every sign that a special token begins with ("<"), wherever it stands: the template may remove what is between it and the
//     rest of the token;
//   - the first character of each special token that the text spells, and of its end if that is the beginning of one;
//   - the first character if the text begins with the end of a special token or is a part of one, since the template could write
//     the rest ("<|" + name + "|>"). White space around the text does not count here.
//
// One character replaces one character, so trimming, splitting, slicing, lengths and quoting come out as without masks, and most texts
// reach the template as they are. What changes is a template that searches texts for tags: it finds none.
//
// In the names of members only signs are masked, because templates address members by name ("text" is a part of a special token).
// Roles and types are words of fixed lists and pass as they are.
type guard struct {
	v        *token.Vocab
	signs    map[rune]bool   // first characters of special tokens that are neither letters, digits nor white space
	prefixes map[string]bool // proper prefixes of special tokens
	suffixes map[string]bool // proper suffixes of special tokens
	joined   string          // all special tokens, for the search of parts
	longest  int             // bytes of the longest special token
}

func newGuard(v *token.Vocab) *guard {
	g := &guard{v: v, signs: map[rune]bool{}, prefixes: map[string]bool{}, suffixes: map[string]bool{}}
	list := v.Specials()
	if _, ok := newKimi(v); ok {
		list = append(list, videoPlaceholder) // no token everywhere, but as good as one in templates
	}
	for _, s := range list {
		g.longest = max(g.longest, len(s))
		if first, _ := utf8.DecodeRuneInString(s); isSign(first) {
			g.signs[first] = true
		}
		for i := range s {
			if i > 0 {
				g.prefixes[s[:i]] = true
				g.suffixes[s[i:]] = true
			}
		}
	}
	g.joined = strings.Join(list, "\x00")
	return g
}

// places returns the byte offsets of the characters to mask in s. name says that s is the name of a member.
func (g *guard) places(s string, name bool) map[int]bool {
	var at map[int]bool
	mark := func(i int) {
		if r, _ := utf8.DecodeRuneInString(s[i:]); name && !isSign(r) {
			return
		}
		if at == nil {
			at = map[int]bool{}
		}
		at[i] = true
	}
	for i, r := range s {
		if g.signs[r] {
			mark(i)
		}
	}
	for from := 0; ; {
		i, special := g.v.NextSpecial(s[from:])
		if special == "" {
			break
		}
		mark(from + i)
		_, n := utf8.DecodeRuneInString(s[from+i:])
		from += i + n
	}
	left := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	right := len(strings.TrimRightFunc(s, unicode.IsSpace))
	for _, start := range []int{0, left} {
		for k := 1; k < g.longest && start+k <= len(s); k++ {
			if g.suffixes[s[start:start+k]] {
				mark(start)
				break
			}
		}
	}
	for _, end := range []int{len(s), right} {
		for k := 1; k < g.longest && k <= end; k++ {
			if g.prefixes[s[end-k:end]] {
				mark(end - k)
			}
		}
	}
	if left < right && right-left < g.longest && strings.Contains(g.joined, s[left:right]) {
		mark(left)
	}
	return at
}

// isSign reports whether r can stand neither in a word nor between words.
func isSign(r rune) bool {
	return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r)
}

// firstMask is the first character that may serve as a mask: the private-use planes 15 and 16.
const firstMask = 0xF0000

// mask hides characters of one request.
type mask struct {
	g      *guard
	used   map[rune]bool // private-use characters of the request and the template
	hidden map[rune]rune // character -> mask
	shown  map[rune]rune // mask -> character
	next   rune
}

func (g *guard) newMask(template string) *mask {
	m := &mask{g: g, used: map[rune]bool{}, hidden: map[rune]rune{}, shown: map[rune]rune{}, next: firstMask}
	m.see(template)
	return m
}

// see notes the characters of s that cannot serve as masks. All texts must be seen before the first is hidden.
func (m *mask) see(s string) {
	for _, r := range s {
		if r >= firstMask {
			m.used[r] = true
		}
	}
}

// errNoMask reports a request that holds every private-use character.
var errNoMask = errors.New("the conversation uses all private-use characters")

// hide masks s.
func (m *mask) hide(s string, name bool) (string, error) {
	at := m.g.places(s, name)
	if at == nil {
		return s, nil
	}
	var b strings.Builder
	for i, r := range s {
		if !at[i] {
			b.WriteRune(r)
			continue
		}
		h, ok := m.hidden[r]
		if !ok {
			for m.used[m.next] {
				m.next++
			}
			if m.next > unicode.MaxRune {
				return "", errNoMask
			}
			h = m.next
			m.next++
			m.hidden[r], m.shown[h] = h, r
		}
		b.WriteRune(h)
	}
	return b.String(), nil
}

// show puts the masked characters of s back.
func (m *mask) show(s string) string {
	if len(m.shown) == 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if c, ok := m.shown[r]; ok {
			return c
		}
		return r
	}, s)
}
