package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/testutil"
)

// TestDocsCallOptions: the calls of convert-inkling in README and docs have options
// that exist.
func TestDocsCallOptions(t *testing.T) {
	calls := testutil.CommandLines(t, "../..", "convert-inkling")
	if len(calls) < 5 {
		t.Fatalf("%d calls in the docs, want more", len(calls))
	}
	for _, c := range calls {
		known := optionNames(flags())
		if len(c.Args) > 0 && c.Args[0] == "synth" {
			known = optionNames(synthFlags())
		}
		for _, a := range c.Args {
			name, _, _ := strings.Cut(strings.Trim(a, "[]"), "=")
			if strings.HasPrefix(name, "-") && !slices.Contains(known, name) {
				t.Errorf("%s:%d: convert-inkling %s: no such option", c.Page, c.Line, name)
			}
		}
	}
}

// optionNames returns the options as they are typed.
func optionNames(list []cli.Flag) []string {
	names := []string{"--help", "-h"}
	for _, f := range list {
		for _, n := range f.Names() {
			if len(n) == 1 {
				names = append(names, "-"+n)
			} else {
				names = append(names, "--"+n)
			}
		}
	}
	return names
}
