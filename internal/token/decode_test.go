package token

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDetokenizer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		want   []string // what each piece completes; the last is for the end
	}{
		{"ascii", []string{"a", "bc"}, []string{"a", "bc", ""}},
		{"emoji in four", []string{"\xf0", "\x9f", "\x98", "\xb8"}, []string{"", "", "", "😸", ""}},
		{"han in two with text", []string{"a\xe4\xb8", "\xadb"}, []string{"a", "中b", ""}},
		{"cut off", []string{"x\xf0\x9f\x98"}, []string{"x", "\uFFFD"}},
		{"proven invalid by the next byte", []string{"\xe4\xb8", "A"}, []string{"", "\uFFFDA", ""}},
		{"never valid", []string{"\xff\xc0"}, []string{"\uFFFD\uFFFD", ""}},
		{"stray continuation", []string{"\x80a"}, []string{"\uFFFDa", ""}},
		{"surrogate", []string{"\xed\xa0\x80"}, []string{"\uFFFD\uFFFD\uFFFD", ""}},
		{"two starts", []string{"\xe4", "\xe4\xb8", "\xad"}, []string{"", "\uFFFD", "中", ""}},
		{"nothing", []string{"", ""}, []string{"", "", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d Detokenizer
			for i, p := range tc.pieces {
				if got := d.Push([]byte(p)); got != tc.want[i] {
					t.Errorf("piece %d: %q, want %q", i, got, tc.want[i])
				}
			}
			if got := d.Flush(); got != tc.want[len(tc.pieces)] {
				t.Errorf("at the end: %q, want %q", got, tc.want[len(tc.pieces)])
			}
		})
	}
}

// TestDetokenizerCuts cuts a text at every pair of places: the result is always the same.
func TestDetokenizerCuts(t *testing.T) {
	for _, text := range []string{"a中😸é\u200d", "a\xe4\xb8A\xff😸\xf0\x9f", "\xed\xa0\x80x"} {
		want := strings.Map(func(r rune) rune { return r }, text) // one U+FFFD per broken byte
		var whole Detokenizer
		whole0 := whole.Push([]byte(text)) + whole.Flush()
		if utf8.ValidString(text) && whole0 != want {
			t.Fatalf("valid text %q became %q", text, whole0)
		}
		for i := range len(text) + 1 {
			for j := i; j <= len(text); j++ {
				var d Detokenizer
				got := ""
				for _, p := range []string{text[:i], text[i:j], text[j:]} {
					s := d.Push([]byte(p))
					if !utf8.ValidString(s) {
						t.Fatalf("%q cut at %d and %d: emitted %q", text, i, j, s)
					}
					got += s
				}
				if got += d.Flush(); got != whole0 {
					t.Errorf("%q cut at %d and %d: %q, want %q", text, i, j, got, whole0)
				}
			}
		}
	}
}
