package token

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids byte for byte. Control and unused tokens have no text; the result need not be valid UTF-8.
func (v *Vocab) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(v.Piece(id))
	}
	return b.String()
}

// DecodeWithSpecial is Decode with control and unused tokens written as their strings.
func (v *Vocab) DecodeWithSpecial(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		piece, _ := v.Token(id)
		b.Write(piece)
	}
	return b.String()
}

// Detokenizer turns a stream of token pieces into valid UTF-8, a whole character at a time: one character may be spread over
// several tokens. Bytes that can no longer become a character turn into U+FFFD, one for each broken sequence.
type Detokenizer struct {
	pending []byte // the start of a character, 0 to 3 bytes
}

// Push adds a piece and returns the text that is complete with it, possibly none.
func (d *Detokenizer) Push(piece []byte) string {
	d.pending = append(d.pending, piece...)
	var b strings.Builder
	rest := d.pending
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			n = brokenLen(rest)
		}
		b.WriteRune(r)
		rest = rest[n:]
	}
	d.pending = append(d.pending[:0], rest...)
	return b.String()
}

// Flush ends the stream. A character that is still incomplete becomes one U+FFFD.
func (d *Detokenizer) Flush() string {
	if len(d.pending) == 0 {
		return ""
	}
	d.pending = d.pending[:0]
	return string(utf8.RuneError)
}

// brokenLen returns how many bytes one U+FFFD stands for at the start of the invalid sequence b: the longest start of a
// well-formed character, at least one byte.
//
// Source: The Unicode Standard, section 3.9, "U+FFFD Substitution of Maximal Subparts".
func brokenLen(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
