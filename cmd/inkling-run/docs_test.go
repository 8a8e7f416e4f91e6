package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

// TestDocsCallCommands: the calls of inkling-run in README and docs name commands
// and options that exist.
func TestDocsCallCommands(t *testing.T) {
	options := map[string][]string{}
	for _, c := range commands() {
		names := []string{"help", "h"}
		for _, f := range c.Flags {
			names = append(names, f.Names()...) // one dash or two: the flag package takes both
		}
		for _, name := range c.Names() {
			options[name] = names
		}
	}
	calls := testutil.CommandLines(t, "../..", "inkling-run")
	if len(calls) < 50 {
		t.Fatalf("%d calls in the docs, want more", len(calls))
	}
	for _, c := range calls {
		if len(c.Args) == 0 || c.Args[0] == "COMMAND" || strings.HasPrefix(c.Args[0], "-") {
			continue // its name, or an option of its own
		}
		known, ok := options[c.Args[0]]
		if !ok {
			t.Errorf("%s:%d: inkling-run %s: no such command", c.Page, c.Line, c.Args[0])
			continue
		}
		for _, a := range c.Args[1:] {
			name, _, _ := strings.Cut(strings.Trim(a, "[]"), "=")
			if strings.HasPrefix(name, "-") && strings.Trim(name, "-") != "" && !slices.Contains(known, strings.TrimLeft(name, "-")) {
				t.Errorf("%s:%d: inkling-run %s %s: no such option", c.Page, c.Line, c.Args[0], name)
			}
		}
	}
}
