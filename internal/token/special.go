package token

import (
	"cmp"
	"slices"
	"strings"
)

// specials finds control and user-defined tokens by their strings.
type specials struct {
	ids     map[string]int32
	byFirst [256][]string // strings by their first byte, longest first
}

func newSpecials(ids map[string]int32) specials {
	s := specials{ids: ids}
	for t := range ids {
		s.byFirst[t[0]] = append(s.byFirst[t[0]], t)
	}
	for _, list := range s.byFirst {
		slices.SortFunc(list, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
		})
	}
	return s
}

// next finds the first special token in text: the leftmost, and of those that start there the longest.
func (s *specials) next(text string) (at int, special string) {
	for i := range len(text) {
		for _, t := range s.byFirst[text[i]] {
			if strings.HasPrefix(text[i:], t) {
				return i, t
			}
		}
	}
	return len(text), ""
}

// NextSpecial finds the first special token that text spells: the leftmost, and of those that start there the longest. Without
// one it returns len(text) and "".
func (v *Vocab) NextSpecial(text string) (at int, special string) { return v.special.next(text) }

// Specials returns the strings of all control and user-defined tokens in byte order.
func (v *Vocab) Specials() []string {
	list := make([]string, 0, len(v.special.ids))
	for t := range v.special.ids {
		list = append(list, t)
	}
	slices.Sort(list)
	return list
}

// SplitSpecial cuts text at the special tokens it spells: leftmost first, longest of several. It is for text whose
// author may write control tokens, such as a chat template; never for text of a user.
func (v *Vocab) SplitSpecial(text string) []Segment {
	var segs []Segment
	for text != "" {
		at, special := v.special.next(text)
		if at > 0 {
			segs = append(segs, Segment{Kind: TextSegment, Text: text[:at]})
		}
		if special != "" {
			segs = append(segs, Segment{Kind: ControlSegment, ID: v.special.ids[special]})
		}
		text = text[at+len(special):]
	}
	return segs
}
