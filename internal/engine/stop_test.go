package engine

import (
	"strings"
	"testing"
)

// TestStopper cuts each text into pieces in every way, and finds the same in all.
func TestStopper(t *testing.T) {
	for _, c := range []struct {
		text  string
		stops []string
		out   string
		stop  string
	}{
		{"ab END cd", []string{"END"}, "ab ", "END"},
		{"ENEND", []string{"END"}, "EN", "END"},
		{"aab", []string{"ab", "aab"}, "", "aab"},
		{"abc", []string{"bc", "b"}, "a", "b"},
		{"abc", []string{"abc", "b"}, "a", "b"},
		{"ab EN", []string{"END"}, "ab EN", ""},
		{"aaab", []string{"aab"}, "a", "aab"},
		{"aé!b", []string{"é!"}, "a", "é!"},
		{"", []string{"x"}, "", ""},
		{"x", []string{"x"}, "", "x"},
		{"abab", []string{"bb"}, "abab", ""},
	} {
		runes := []rune(c.text)
		for cuts := range 1 << max(0, len(runes)-1) {
			s := stopper{stops: c.stops}
			var out, piece strings.Builder
			stop := ""
			for i, r := range runes {
				piece.WriteRune(r)
				if i < len(runes)-1 && cuts>>i&1 == 0 {
					continue
				}
				text, found := s.push(piece.String())
				out.WriteString(text)
				piece.Reset()
				if stop = found; stop != "" {
					break
				}
			}
			if stop == "" {
				out.WriteString(s.flush())
			} else if s.held != "" {
				t.Errorf("%q: %q held behind the stop string", c.text, s.held)
			}
			if out.String() != c.out || stop != c.stop {
				t.Errorf("%q cut by %b: %q, stopped by %q, want %q by %q", c.text, cuts, out.String(), stop, c.out, c.stop)
			}
		}
	}
}
