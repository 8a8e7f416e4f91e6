package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInterspersed(t *testing.T) {
	commands := newApp(nil, nil, nil).Commands
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "inkling-run", "inkling-run"},
		{"no command", "inkling-run --version", "inkling-run --version"},
		{"unknown command", "inkling-run walk m --json", "inkling-run walk m --json"},
		{"options first", "inkling-run run --json m hi", "inkling-run run --json -- m hi"},
		{"options last", "inkling-run run m hi --json", "inkling-run run --json -- m hi"},
		{"values", "inkling-run run m -n 5 hi --temp 0.5", "inkling-run run -n 5 --temp 0.5 -- m hi"},
		{"one dash or two", "inkling-run run m -temp 1 --n 2 x", "inkling-run run -temp 1 --n 2 -- m x"},
		{"aliases", "inkling-run run m -t 1 x -c 2 -b 3 -v", "inkling-run run -t 1 -c 2 -b 3 -v -- m x"},
		{"equals", "inkling-run run m --temp=0.5 hi", "inkling-run run --temp=0.5 -- m hi"},
		{"negative value", "inkling-run run m --seed -1 hi", "inkling-run run --seed -1 -- m hi"},
		{"value like an option", "inkling-run run m --system --json hi", "inkling-run run --system --json -- m hi"},
		{"value missing", "inkling-run run m --temp", "inkling-run run --temp"},
		{"end of options", "inkling-run run m --json -- --raw -- x", "inkling-run run --json -- m --raw -- x"},
		{"prompts with a dash", "inkling-run run m -5 + 3 - -", "inkling-run run -- m -5 + 3 - -"},
		{"unknown option", "inkling-run run m --walk x", "inkling-run run --walk -- m x"},
		{"help", "inkling-run run m -h", "inkling-run run -h -- m"},
		{"show", "inkling-run show m --keys", "inkling-run show --keys -- m"},
		{"command as a prompt", "inkling-run run m show help", "inkling-run run -- m show help"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(strings.Fields(tc.want), interspersed(strings.Fields(tc.in), commands)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestIsOption(t *testing.T) {
	for arg, want := range map[string]bool{
		"-n": true, "--json": true, "-Z": true, "--a=b": true,
		"": false, "-": false, "--": false, "n": false, "-5": false, "- item": false, "---x": false, "-é": false,
	} {
		if got := isOption(arg); got != want {
			t.Errorf("isOption(%q) = %v, want %v", arg, got, want)
		}
	}
}
