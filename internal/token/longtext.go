package token

import (
	"unicode"
	"unicode/utf8"
)

// Kimi's own tokenizer cuts long texts before it splits them by the pattern: into slices of maxSliceChars characters, and those where
// maxRunChars characters in a row are white space or are not. Tokens do not span a cut.
// Source: moonshotai/Kimi-K2-Instruct, tokenization_kimi.py, encode.
const (
	maxSliceChars = 400_000
	maxRunChars   = 25_000
)

// maxSliceBytes bounds the text that is split and merged at once: matching takes 4 bytes for each character of it and merging 40 for
// each byte of a piece, and texts come from strangers.
const maxSliceBytes = 1 << 20

// sliceEnd returns where to cut a text of more than maxSliceBytes. A line that begins with a letter or digit of ASCII begins a piece
// under each of the known patterns, so a cut there changes nothing; where half of maxSliceBytes has no such line, the cut is at any
// character and may part a piece.
func sliceEnd(text string) int {
	for i := maxSliceBytes; i > maxSliceBytes/2; i-- {
		if c := text[i]; text[i-1] == '\n' && (c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			return i
		}
	}
	for i := maxSliceBytes; i > maxSliceBytes-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return maxSliceBytes
}

// cutLong calls yield with the slices of text in order; the slices joined are text.
func cutLong(text string, yield func(slice string)) {
	start, chars, run := 0, 0, 0
	var space bool
	cut := func(at int) {
		yield(text[start:at])
		start, run = at, 0
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if chars == maxSliceChars {
			cut(i)
			chars = 0
		}
		switch now := isPythonSpace(r); {
		case now != space:
			space, run = now, 0
		case run == maxRunChars:
			cut(i)
		}
		run++
		chars++
		i += n
	}
	yield(text[start:])
}

// isPythonSpace is Python's str.isspace of one character.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
