package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
)

func TestPrinter(t *testing.T) {
	think := func(s string) chat.Delta { return chat.Delta{Kind: chat.ReasoningDelta, Text: s} }
	say := func(s string) chat.Delta { return chat.Delta{Kind: chat.ContentDelta, Text: s} }
	call := chat.Delta{Kind: chat.ToolCallDelta, Call: &chat.ToolCall{Name: "f", Arguments: json.RawMessage(`{"x": "<&>"}`)}}
	const callText = "{\"name\":\"f\",\"arguments\":{\"x\":\"<&>\"}}\n"
	for _, tc := range []struct {
		name           string
		terminal, hide bool
		deltas         []chat.Delta
		want           string
	}{
		{"nothing", false, false, nil, ""},
		{"text", false, false, []chat.Delta{say("a"), say("b")}, "ab\n"},
		{"text with a line end", false, false, []chat.Delta{say("a\n")}, "a\n"},
		{"thinking", false, false, []chat.Delta{think("h"), think("m"), say("a")}, "Thinking...\nhm\n...done thinking.\n\na\n"},
		{"thinking with a line end", false, false, []chat.Delta{think("hm\n"), say("a")}, "Thinking...\nhm\n...done thinking.\n\na\n"},
		{"thinking that is cut", false, false, []chat.Delta{think("hm")}, "Thinking...\nhm\n...done thinking.\n\n"},
		{"thinking hidden", false, true, []chat.Delta{think("hm"), say("a")}, "a\n"},
		{"thinking again", false, false, []chat.Delta{think("x"), say("a"), think("y")}, "Thinking...\nx\n...done thinking.\n\na\nThinking...\ny\n...done thinking.\n\n"},
		{"call", false, false, []chat.Delta{call, call}, callText + callText},
		{"call after text", false, false, []chat.Delta{say("a"), call}, "a\n" + callText},
		{"control characters in a file", false, false, []chat.Delta{say("a\x1b[2Jb")}, "a\x1b[2Jb\n"},
		{"control characters on a terminal", true, false, []chat.Delta{say("a\x1b[2J\tb\u009b\r\x07é")}, "a[2J\tbé\n"},
		{"dim", true, false, []chat.Delta{think("hm"), say("a")}, terminal.DimOn + "Thinking...\nhm\n...done thinking." + terminal.DimOff + "\n\na\n"},
		{"dim that is cut", true, false, []chat.Delta{think("hm")}, terminal.DimOn + "Thinking...\nhm\n...done thinking." + terminal.DimOff + "\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			p := newPrinter(&b, tc.hide)
			p.terminal, p.dimmed = tc.terminal, tc.terminal
			for _, d := range tc.deltas {
				if err := p.delta(d); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
