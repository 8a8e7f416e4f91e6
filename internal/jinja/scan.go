package jinja

import (
	"regexp"
	"strings"
	"unicode"
)

// segmentKind is what a piece of a template is.
type segmentKind int

const (
	segText      segmentKind = iota
	segOutput                // {{ … }}
	segStatement             // {% … %}
)

// segment is a piece of a template.
type segment struct {
	kind segmentKind
	text string // a text, or what is between the delimiters
	line int
}

// scanner cuts a template into segments and removes the white space that its tags ask to remove.
type scanner struct {
	src       string
	pos, line int
	segs      []segment
	trim      bool // the last tag ended in -: white space after it goes
	newline   bool // the last tag was a statement or comment: a line break after it goes (trim_blocks)
	lineStart bool // nothing but the end of a line stands before pos
}

func scan(src string) []segment {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	s := scanner{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for s.pos < len(s.src) {
		s.next()
	}
	return s.segs
}

// next scans a text and the tag after it.
func (s *scanner) next() {
	rest := s.src[s.pos:]
	n := openTag(rest)
	if n < 0 {
		s.text(rest, false, false)
		s.pos = len(s.src)
		return
	}
	kind := rest[n+1]
	body := rest[n+2:]
	strip := strings.HasPrefix(body, "-")
	keep := strings.HasPrefix(body, "+")
	s.text(rest[:n], strip, !keep && kind != '{')
	if strip || keep {
		body = body[1:]
	}
	closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
	end := endOfTag(body, closer, kind == '#')
	if end < 0 {
		failf("line %d: a tag {%c is not closed", s.line, kind)
	}
	content, after := body[:end], body[end+2:]
	s.trim = strings.HasSuffix(content, "-")
	s.newline = kind != '{' && !strings.HasSuffix(content, "+")
	if s.trim || kind != '{' && !s.newline {
		content = content[:len(content)-1]
	}
	s.lineStart = false
	switch kind {
	case '{':
		s.segs = append(s.segs, segment{segOutput, content, s.line})
	case '%':
		s.segs = append(s.segs, segment{segStatement, content, s.line})
	}
	s.pos = len(s.src) - len(after)
	if kind == '%' && strings.TrimSpace(content) == "raw" {
		s.raw(after)
	}
	s.line += strings.Count(body[:end], "\n")
}

// endRaw is the statement that ends a raw block.
var endRaw = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)

// raw takes everything up to the statement endraw as text; its own statements are no part of it.
func (s *scanner) raw(after string) {
	s.segs = s.segs[:len(s.segs)-1]
	s.newline = false
	m := endRaw.FindStringSubmatchIndex(after)
	if m == nil {
		failf("line %d: raw without endraw", s.line)
	}
	before, behind := after[m[2]:m[3]], after[m[4]:m[5]]
	s.text(after[:m[0]], before == "-", before != "+")
	s.trim, s.newline, s.lineStart = behind == "-", behind != "+", false
	s.pos += m[1]
}

// text adds a text between two tags. strip says that the next tag takes the white space before it, lstrip that it takes blanks up to
// the start of the line (lstrip_blocks).
func (s *scanner) text(t string, strip, lstrip bool) {
	line := s.line
	s.line += strings.Count(t, "\n")
	if s.trim {
		t = strings.TrimLeftFunc(t, unicode.IsSpace)
	} else if s.newline && strings.HasPrefix(t, "\n") {
		t, s.lineStart = t[1:], true
	}
	switch {
	case strip:
		t = strings.TrimRightFunc(t, unicode.IsSpace)
	case lstrip:
		i := strings.LastIndexByte(t, '\n') + 1
		if (i > 0 || s.lineStart) && strings.TrimSpace(t[i:]) == "" {
			t = t[:i]
		}
	}
	if t != "" {
		s.segs = append(s.segs, segment{segText, t, line})
	}
	s.trim, s.newline = false, false
}

// openTag finds the first start of a tag.
func openTag(s string) int {
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		i += n
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
		i++
	}
}

// endOfTag finds the closer of a tag, outside of string literals and of brackets that it could close.
func endOfTag(s, closer string, comment bool) int {
	if comment {
		return strings.Index(s, closer)
	}
	braces := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			i++
			for i < len(s) && s[i] != c {
				if s[i] == '\\' {
					i++
				}
				i++
			}
		case braces == 0 && strings.HasPrefix(s[i:], closer):
			return i
		case c == '{':
			braces++
		case c == '}':
			braces = max(braces-1, 0)
		}
	}
	return -1
}
