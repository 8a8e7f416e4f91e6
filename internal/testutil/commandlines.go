package testutil

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// CommandLine is a call of a program that a page of the documentation shows.
type CommandLine struct {
	Page string // path of the page
	Line int    // counted from 1
	Args []string
}

// Pages lists the Markdown files of the project's folder, root and docs.
func Pages(t *testing.T, root string) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "ggml/*.md", "deploy/*.md", "test/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// CommandLines returns the calls of a program in code blocks and code spans of
// the pages, without quotes, comments and what a shell does itself.
func CommandLines(t *testing.T, root, program string) []CommandLine {
	t.Helper()
	var calls []CommandLine
	for _, page := range Pages(t, root) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range code(string(data)) {
			for _, words := range shellCommands(c.text) {
				if filepath.Base(words[0]) == program {
					calls = append(calls, CommandLine{page, c.line, words[1:]})
				}
			}
		}
	}
	return calls
}

// snippet is one line of code of a page.
type snippet struct {
	line int
	text string
}

var span = regexp.MustCompile("`([^`]+)`")

// code returns the lines of a page's code blocks, continued ones joined, and the
// code spans of its text.
func code(page string) []snippet {
	var list []snippet
	inBlock, joined, first := false, "", 0
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inBlock = !inBlock
			continue
		}
		if !inBlock {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				list = append(list, snippet{i + 1, m[1]})
			}
			continue
		}
		if joined == "" {
			first = i + 1
		}
		if rest, ok := strings.CutSuffix(line, `\`); ok {
			joined += rest
			continue
		}
		list = append(list, snippet{first, joined + line})
		joined = ""
	}
	return list
}

// shellCommands splits a line at the shell's operators into commands, and those
// into words. Assignments before a command, a prompt and comments are left out.
func shellCommands(line string) [][]string {
	var commands [][]string
	var words []string
	end := func() {
		for len(words) > 0 && (words[0] == "$" || words[0] == "sudo" || regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	word, inWord, quote := "", false, rune(0)
	flush := func() {
		if inWord {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			end()
			return commands
		case strings.ContainsRune("|;&()", r):
			flush()
			end()
		case r == ' ' || r == '\t' || r == '<' || r == '>':
			flush()
		default:
			word, inWord = word+string(r), true
		}
	}
	flush()
	end()
	return commands
}
