package grammar

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// runeRange is the characters lo..hi.
type runeRange struct{ lo, hi rune }

// utf8Class is one character of the ranges, as UTF-8. Surrogates have no encoding
// and fall out.
func utf8Class(ranges []runeRange) expr {
	var out alt
	for _, r := range ranges {
		if r.lo < 0xD800 && r.hi > 0xDFFF {
			out = appendUTF8(appendUTF8(out, r.lo, 0xD7FF), 0xE000, r.hi)
			continue
		}
		if r.lo >= 0xD800 && r.lo <= 0xDFFF {
			r.lo = 0xE000
		}
		if r.hi >= 0xD800 && r.hi <= 0xDFFF {
			r.hi = 0xD7FF
		}
		out = appendUTF8(out, r.lo, r.hi)
	}
	return out
}

// appendUTF8 appends sequences of byte ranges that cover lo..hi: the range is cut
// until, in each part, every byte of the encoding runs through a range of its own
// (Thompson's UTF-8 ranges in Plan 9 grep; RE2's compiler has them too).
func appendUTF8(out alt, lo, hi rune) alt {
	if lo > hi {
		return out
	}
	// Parts of one length of encoding.
	for _, last := range [...]rune{0x7F, 0x7FF, 0xFFFF} {
		if lo <= last && last < hi {
			return appendUTF8(appendUTF8(out, lo, last), last+1, hi)
		}
	}
	if hi <= 0x7F {
		return append(out, class{byte(lo), byte(hi)})
	}
	// Parts in which the trailing bytes run through all of their values.
	for i := 1; i < utf8.UTFMax; i++ {
		m := rune(1)<<(6*i) - 1
		if lo&^m == hi&^m {
			continue
		}
		if lo&m != 0 {
			return appendUTF8(appendUTF8(out, lo, lo|m), (lo|m)+1, hi)
		}
		if hi&m != m {
			return appendUTF8(appendUTF8(out, lo, hi&^m-1), hi&^m, hi)
		}
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	var s seq
	for i := range n {
		s = append(s, class{a[i], b[i]})
	}
	return append(out, s)
}

// complement returns the characters that are in none of the ranges.
func complement(ranges []runeRange) []runeRange {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b runeRange) int { return cmp.Compare(a.lo, b.lo) })
	var out []runeRange
	next := rune(0)
	for _, r := range ranges {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = max(next, r.hi+1)
	}
	if next <= utf8.MaxRune {
		out = append(out, runeRange{next, utf8.MaxRune})
	}
	return out
}
