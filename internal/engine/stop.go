package engine

import "strings"

// stopper looks for strings that end the content, which comes in pieces cut
// anywhere between characters.
type stopper struct {
	stops []string
	held  string // what may be the beginning of one
}

// push returns the text that can go out, and the stop string that ended it, if
// one did: the one that is whole first, and of several the longest, so that it
// does not matter how the text is cut.
func (s *stopper) push(text string) (out, stop string) {
	text = s.held + text
	s.held = ""
	end := len(text) + 1
	for _, x := range s.stops {
		i := strings.Index(text, x)
		if e := i + len(x); i >= 0 && (e < end || e == end && len(x) > len(stop)) {
			end, stop = e, x
		}
	}
	if stop != "" {
		return text[:end-len(stop)], stop
	}
	hold := 0
	for _, x := range s.stops {
		for n := min(len(x)-1, len(text)); n > hold; n-- {
			if strings.HasSuffix(text, x[:n]) {
				hold = n
			}
		}
	}
	s.held = text[len(text)-hold:]
	return text[:len(text)-hold], ""
}

// flush returns what was held back, when the content has ended otherwise.
func (s *stopper) flush() string {
	out := s.held
	s.held = ""
	return out
}
