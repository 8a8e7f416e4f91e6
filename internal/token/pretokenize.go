package token

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// matchTimeout bounds one regular expression match: text comes from strangers. The known patterns need
// microseconds, and milliseconds for hundreds of thousands of equal characters.
const matchTimeout = 5 * time.Second

// maxPatternBytes bounds a pattern from a file.
const maxPatternBytes = 1 << 14

// Split patterns. Lookahead and \p classes inside sets are beyond the standard regexp package, and the
// contractions must fold case as Unicode does ('ſ matches 's), so they run on regexp2.
const (
	// patternO200k is the pattern of the o200k vocabularies, which Inkling shares.
	// Source: openai/tiktoken, tiktoken_ext/openai_public.py, o200k_base.
	patternO200k = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	// patternKimi is the pattern of Kimi's vocabularies: o200k's, with Han characters in pieces of their own. && is
	// set intersection, see translateSets.
	// Source: moonshotai/Kimi-K2-Instruct, tokenization_kimi.py, pat_str.
	patternKimi = `[\p{Han}]+` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	// patternGPT2 is what a ByteLevel pre-tokenizer with use_regex applies by itself.
	// Source: openai/gpt-2, src/encoder.py.
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// prePatterns names the patterns for tokenizer.ggml.pre. The first name of a pattern is the one written.
var prePatterns = []struct{ name, pattern string }{
	{"inkling", patternO200k},
	{"gpt-4o", patternO200k},
	{"o200k", patternO200k},
	{"kimi-k2", patternKimi},
	{"gpt-2", patternGPT2},
}

// preName is the name for tokenizer.ggml.pre, "" if no name stands for these patterns. The names also say that pieces are merged even
// if they are tokens as they stand.
func preName(patterns []string, ignoreMerges bool) string {
	for _, p := range prePatterns {
		if len(patterns) == 1 && patterns[0] == p.pattern && !ignoreMerges {
			return p.name
		}
	}
	return ""
}

// splitter cuts text into the pieces within which bytes may merge.
type splitter struct {
	cut bool              // long texts are cut first, see cutLong
	res []*regexp2.Regexp // applied one after the other, each to the pieces of the one before
}

func newSplitter(patterns []string) (*splitter, error) {
	s := &splitter{cut: len(patterns) == 1 && patterns[0] == patternKimi}
	for _, p := range patterns {
		if len(p) > maxPatternBytes {
			return nil, fmt.Errorf("of %d bytes, limit %d", len(p), maxPatternBytes)
		}
		p, err := translateSets(p)
		if err != nil {
			return nil, err
		}
		re, err := regexp2.Compile(p)
		if err != nil {
			return nil, err
		}
		re.MatchTimeout = matchTimeout
		s.res = append(s.res, re)
	}
	return s, nil
}

// intersection matches the end of a set that is intersected with the complement of another: &&[^…]].
var intersection = regexp.MustCompile(`&&\[\^((?:[^\[\]\\]|\\.)+)\]\]`)

// translateSets rewrites sets with intersection, which regexp2 does not have, as the subtraction that it has:
// [A&&[^B]] becomes [A-[B]]. Any other intersection is an error.
func translateSets(pattern string) (string, error) {
	translated := intersection.ReplaceAllString(pattern, "-[$1]]")
	if strings.Contains(translated, "&&") {
		return "", fmt.Errorf("set intersection in pattern %q", pattern)
	}
	return translated, nil
}

// split calls yield with each piece of text in order; the pieces joined are text. Text between matches is a
// piece too. Bytes that are not UTF-8 are matched as U+FFFD and stay as they are in the piece.
func (s *splitter) split(text string, yield func(piece string)) {
	for len(text) > maxSliceBytes {
		n := sliceEnd(text)
		s.splitSlice(text[:n], yield)
		text = text[n:]
	}
	s.splitSlice(text, yield)
}

func (s *splitter) splitSlice(text string, yield func(piece string)) {
	if s.cut && len(text) > maxRunChars {
		cutLong(text, func(slice string) { s.splitFrom(0, slice, yield) })
		return
	}
	s.splitFrom(0, text, yield)
}

func (s *splitter) splitFrom(level int, text string, yield func(piece string)) {
	if text == "" {
		return
	}
	if level == len(s.res) {
		yield(text)
		return
	}
	runes := []rune(text)
	var pos, start int // rune index of, and byte offset at, the end of the last match
	advance := func(to int) string {
		end := start
		for ; pos < to; pos++ {
			_, n := utf8.DecodeRuneInString(text[end:])
			end += n
		}
		piece := text[start:end]
		start = end
		return piece
	}
	// A match that runs into a limit of the engine ends the iteration: what is left becomes one piece, so the
	// text still survives unchanged.
	_ = s.res[level].FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		index, length, _ := m.GroupRange(0)
		s.splitFrom(level+1, advance(index), yield)
		s.splitFrom(level+1, advance(index+length), yield)
		return true
	})
	s.splitFrom(level+1, advance(len(runes)), yield)
}
