package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsPage: docs/commands.md has every exit status, in the words of the
// manual page.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitCodes {
		if row := fmt.Sprintf("\n| %d | %s | ", e.code, e.meaning); !strings.Contains(string(page), row) {
			t.Errorf("docs/commands.md lacks %q", row)
		}
	}
}

// TestFlagsOf: every option of every command has a usage, and one that takes a value
// says what it is.
func TestFlagsOf(t *testing.T) {
	for _, c := range commands() {
		for _, f := range flagsOf(c.Flags) {
			if f.usage == "" {
				t.Errorf("%s %s has no usage", c.Name, dashed(f.names[0]))
			}
			if f.value == "VALUE" {
				t.Errorf("%s %s does not name its value: %s", c.Name, dashed(f.names[0]), f.usage)
			}
		}
	}
}
