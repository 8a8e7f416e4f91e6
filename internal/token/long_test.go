package token

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestSlices checks that texts longer than a slice are split as if they were split at once, if they have lines, and that memory does
// not grow with a text that has none.
func TestSlices(t *testing.T) {
	for _, pattern := range []string{patternO200k, patternGPT2, patternKimi} {
		s, err := newSplitter([]string{pattern})
		if err != nil {
			t.Fatal(err)
		}
		s.cut = false // Kimi's own cuts are others
		var want, got []string
		text := strings.Repeat("One  line's words,\r\n\n  and 1234 signs!!\n/x\n\t中文 é\nA", maxSliceBytes/45)
		s.splitFrom(0, text, func(p string) { want = append(want, p) })
		s.split(text, func(p string) { got = append(got, p) })
		if !slices.Equal(got, want) {
			t.Errorf("%.20s…: %d pieces in slices, %d at once", pattern, len(got), len(want))
		}
	}
	s, err := newSplitter([]string{patternO200k})
	if err != nil {
		t.Fatal(err)
	}
	text, longest, joined := strings.Repeat("é", maxSliceBytes), 0, 0
	s.split(text, func(p string) {
		longest, joined = max(longest, len(p)), joined+len(p)
		if !utf8.ValidString(p) {
			t.Fatal("a character is cut")
		}
	})
	if longest > maxSliceBytes || joined != len(text) {
		t.Errorf("longest piece %d bytes, all %d of %d", longest, joined, len(text))
	}
}

// TestPromptTooLong refuses a prompt that fits no model. A vocabulary of bytes makes a token of each.
func TestPromptTooLong(t *testing.T) {
	v, err := ParseTokenizerJSON([]byte(fileOf("", "", `,"added_tokens":[{"id":256,"content":"<s>","special":true}]`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 100
	text := func(n int) Segment { return Segment{Text: strings.Repeat("a", n)} }
	rows := func(n int) func(int) (int32, int) { return func(int) (int32, int) { return 256, n } }
	for _, tc := range []struct {
		name string
		segs []Segment
		rows int
		ok   bool
	}{
		{"text", []Segment{text(limit)}, 0, true},
		{"a letter more", []Segment{text(limit + 1)}, 0, false},
		{"long text", []Segment{text(1000 * limit)}, 0, false},
		{"text and medium", []Segment{text(limit - 10), {Kind: MediaSegment}}, 10, true},
		{"a row more", []Segment{text(limit - 10), {Kind: MediaSegment}}, 11, false},
		{"two media", []Segment{{Kind: MediaSegment}, {Kind: MediaSegment}}, 51, false},
	} {
		ids, _, err := v.encodeSegments(tc.segs, rows(tc.rows), limit)
		if tc.ok && (err != nil || len(ids) != limit) || !tc.ok && (err == nil || err.Error() != "a prompt of more than 100 tokens") {
			t.Errorf("%s: %d tokens, %v", tc.name, len(ids), err)
		}
	}
}

// TestHostileRuns splits long runs that make a naive matcher backtrack. Every run must be matched, not given up on: the pieces
// are those of the pattern.
func TestHostileRuns(t *testing.T) {
	const n = 200_000
	run := func(s string) string { return strings.Repeat(s, n) }
	s, err := newSplitter([]string{patternO200k})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text  string
		first, last string
		pieces      int
	}{
		{"spaces before a word", run(" ") + "x", run(" ")[1:], " x", 2},
		{"spaces before a line end", run(" ") + "\n", run(" ") + "\n", run(" ") + "\n", 1},
		{"upper case before a digit", run("A") + "1", run("A"), "1", 2},
		{"upper before lower case", run("A") + "b", run("A") + "b", run("A") + "b", 1},
		{"letters without case", run("中") + "1", run("中"), "1", 2},
		{"marks", "e" + run("\u0301") + "1", "e" + run("\u0301"), "1", 2},
		{"signs before slashes", run("!") + run("/"), run("!") + run("/"), run("!") + run("/"), 1},
		{"digits", run("7"), "777", "77", 66_667},
		{"apostrophes", run("'") + "s", run("'"), "s", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pieces []string
			start := time.Now()
			s.split(tc.text, func(p string) { pieces = append(pieces, p) })
			if d := time.Since(start); d > matchTimeout {
				t.Errorf("took %v", d)
			}
			if len(pieces) != tc.pieces || pieces[0] != tc.first || pieces[len(pieces)-1] != tc.last {
				t.Errorf("%d pieces, first of %d bytes, last of %d; want %d, %d, %d",
					len(pieces), len(pieces[0]), len(pieces[len(pieces)-1]), tc.pieces, len(tc.first), len(tc.last))
			}
		})
	}
}
