package session

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/markdown"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
)

// printer writes an answer as it comes. Reasoning stands between two marks, as
// Ollama has them, and is dim on a terminal.
type printer struct {
	w            io.Writer
	terminal     bool             // control characters are taken out
	dimmed       bool             // reasoning is dim
	markdown     *markdown.Writer // of the content; nil: as it is
	hideThinking bool
	hideCalls    bool

	thinking bool // the closing mark is owed
	midLine  bool // the last line has no end yet
}

func newPrinter(w io.Writer, hideThinking bool) *printer {
	return &printer{w: w, terminal: terminal.Is(w), dimmed: terminal.Styled(w), hideThinking: hideThinking}
}

// delta writes a piece of the answer.
func (p *printer) delta(d chat.Delta) error {
	if d.Kind == chat.ReasoningDelta {
		if p.hideThinking {
			return nil
		}
		return p.reasoning(d.Text)
	}
	if err := p.endThinking(); err != nil {
		return err
	}
	if d.Kind == chat.ToolCallDelta {
		if p.hideCalls {
			return nil
		}
		line, err := callLine(d.Call)
		if err != nil {
			return err
		}
		if err := p.endLine(); err != nil {
			return err
		}
		return p.text(line)
	}
	if p.markdown != nil {
		return p.markdown.WriteText(d.Text)
	}
	return p.text(d.Text)
}

func (p *printer) reasoning(text string) error {
	if !p.thinking {
		if err := p.endLine(); err != nil {
			return err
		}
		p.thinking = true
		if err := p.style(terminal.DimOn); err != nil {
			return err
		}
		if err := p.text("Thinking...\n"); err != nil {
			return err
		}
	}
	return p.text(text)
}

func (p *printer) endThinking() error {
	if !p.thinking {
		return nil
	}
	p.thinking = false
	if err := p.endLine(); err != nil {
		return err
	}
	if err := p.text("...done thinking."); err != nil {
		return err
	}
	if err := p.style(terminal.DimOff); err != nil {
		return err
	}
	return p.text("\n\n")
}

// end completes the last line.
func (p *printer) end() error {
	if err := p.endThinking(); err != nil {
		return err
	}
	return p.endLine()
}

func (p *printer) endLine() error {
	if p.markdown != nil {
		if err := p.markdown.Flush(); err != nil {
			return err
		}
	}
	if !p.midLine {
		return nil
	}
	return p.text("\n")
}

// text writes text of the model. A terminal does not get control characters:
// they could move its cursor and worse.
func (p *printer) text(s string) error {
	if p.terminal {
		s = terminal.Harmless(s)
	}
	if s == "" {
		return nil
	}
	p.midLine = !strings.HasSuffix(s, "\n")
	_, err := io.WriteString(p.w, s)
	return err
}

func (p *printer) style(sequence string) error {
	if !p.dimmed {
		return nil
	}
	_, err := io.WriteString(p.w, sequence)
	return err
}

// callLine is a tool call as a line of JSON.
func callLine(call *chat.ToolCall) (string, error) {
	var b bytes.Buffer
	err := report.JSON(&b, struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{call.Name, call.Arguments})
	return b.String(), err
}
