package markdown

import (
	"io"
	"regexp"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/yuin/goldmark/parser"
)

// Writer prints Markdown on a terminal while it comes: each block once it
// is complete, lines of code as they are. Until then the end of the text is on the
// last line of the screen.
type Writer struct {
	w      io.Writer
	parser parser.Parser
	width  int
	tail   *terminal.StatusLine

	pending string // whole lines of a block that may go on
	line    string // the last line, without its end
	gap     bool   // an empty line came after pending
	fence   string // of the code that is being printed, empty outside
	printed bool   // a block needs an empty line before it
}

// NewWriter returns a writer to a terminal.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, parser: newMarkdownParser(), width: terminal.Columns(w), tail: terminal.NewStatusLine(w)}
}

var (
	fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})([^`]*)$")
	listLine  = regexp.MustCompile(`^ {0,3}([-*+]|[0-9]{1,9}[.)])([ \t]|$)`)
)

// WriteText takes a piece of the text.
func (m *Writer) WriteText(text string) error {
	for {
		head, rest, ended := strings.Cut(text, "\n")
		m.line += head
		if !ended {
			break
		}
		line := m.line
		m.line, text = "", rest
		if err := m.take(line); err != nil {
			return err
		}
	}
	// A list may go on after an empty line; most other lines tell at once that it
	// does not.
	if m.gap && m.line != "" && !strings.ContainsAny(m.line[:1], " \t-*+0123456789") {
		if err := m.block(); err != nil {
			return err
		}
	}
	if m.pending+m.line == "" {
		m.tail.Clear()
		return nil
	}
	preview := m.line
	if preview == "" {
		preview = m.pending
	}
	m.tail.Show(lastLine(preview))
	return nil
}

// lastLine is the end of a text, from its last line break but one at its end.
func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// take takes a whole line.
func (m *Writer) take(line string) error {
	if m.fence != "" {
		if closesFence(line, m.fence) {
			m.fence = ""
			return nil
		}
		return m.print(ansi(codeLine(terminal.Harmless(line))))
	}
	inList := listLine.MatchString(m.pending)
	if strings.TrimSpace(line) == "" {
		if m.pending == "" {
			return nil
		}
		if m.gap = inList; !inList {
			return m.block()
		}
		m.pending += "\n"
		return nil
	}
	if m.gap && !strings.ContainsAny(line[:1], " \t") && !listLine.MatchString(line) {
		if err := m.block(); err != nil {
			return err
		}
	}
	m.gap = false
	if f := fenceLine.FindStringSubmatch(line); f != nil && (m.pending == "" || !inList || line[0] != ' ') {
		if err := m.block(); err != nil {
			return err
		}
		m.fence = f[1]
		return m.separate()
	}
	m.pending += line + "\n"
	return nil
}

// closesFence reports whether a line ends the code that began with a fence.
func closesFence(line, fence string) bool {
	f := fenceLine.FindStringSubmatch(line)
	return f != nil && strings.HasPrefix(f[1], fence) && strings.TrimSpace(f[2]) == ""
}

// Flush prints what there is, as it is at the end of an answer.
func (m *Writer) Flush() error {
	if m.line != "" {
		line := m.line
		m.line = ""
		if err := m.take(line); err != nil {
			return err
		}
	}
	err := m.block()
	m.fence, m.printed = "", false
	return err
}

// block prints the pending lines.
func (m *Writer) block() error {
	m.gap = false
	text := m.pending
	if m.pending = ""; strings.TrimSpace(text) == "" {
		return nil
	}
	if err := m.separate(); err != nil {
		return err
	}
	return m.print(renderMarkdown(m.parser, text, m.width)...)
}

// separate puts an empty line between blocks.
func (m *Writer) separate() error {
	if !m.printed {
		m.printed = true
		return nil
	}
	return m.print("")
}

func (m *Writer) print(lines ...string) error {
	m.tail.Clear()
	for _, line := range lines {
		if _, err := io.WriteString(m.w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
