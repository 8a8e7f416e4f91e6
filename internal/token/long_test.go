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
		text := strings.Repeat("One  line's words,\r\n\n  and 1234 signs!!\n/x\n\t中文 é\nA", maxSliceBytes/20)
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
	text, longest, joined := strings.Repeat("é", 2*maxSliceBytes), 0, 0
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
	v, err := ParseTokenizerJSON([]byte(fileOf("", "", "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", maxPrompt)
	if ids, _, err := v.EncodeSegments([]Segment{{Text: text}}, nil); err != nil || len(ids) != maxPrompt {
		t.Errorf("%d tokens, %v; want %d", len(ids), err, maxPrompt)
	}
	if _, _, err := v.EncodeSegments([]Segment{{Text: text + "a"}}, nil); err == nil || err.Error() != "a prompt of more than 16777216 tokens" {
		t.Errorf("error %v", err)
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
