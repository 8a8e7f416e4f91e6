package testutil

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellCommands(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       [][]string
	}{
		{"words", "make demo", [][]string{{"make", "demo"}}},
		{"a comment", "make   # builds", [][]string{{"make"}}},
		{"a comment alone", "# builds", nil},
		{"quotes", `run m "a # b | c" 'd'`, [][]string{{"run", "m", "a # b | c", "d"}}},
		{"a pipe and a list", "echo a | run b && run c; run d", [][]string{{"echo", "a"}, {"run", "b"}, {"run", "c"}, {"run", "d"}}},
		{"a redirection", "run b > file", [][]string{{"run", "b", "file"}}},
		{"a prompt and variables", "$ A=1 B_C=2 run b", [][]string{{"run", "b"}}},
		{"a substitution", `x "$(run b)"`, [][]string{{"x", "$(run b)"}}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shellCommands(tt.line)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCode(t *testing.T) {
	page := "Text with `make` and `a b`.\n\n```sh\nrun a \\\n    b\nrun c\n```\nMore `x`.\n"
	want := []snippet{{1, "make"}, {1, "a b"}, {4, "run a     b"}, {6, "run c"}, {8, "x"}}
	if diff := cmp.Diff(want, code(page), cmp.AllowUnexported(snippet{})); diff != "" {
		t.Errorf("code (-want +got):\n%s", diff)
	}
}
