package markdown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
)

// marks makes the escape sequences of styles readable.
var marks = strings.NewReplacer(
	"\x1b[0m", "⟧", "\x1b[1m", "b⟦", "\x1b[2m", "f⟦", "\x1b[3m", "i⟦", "\x1b[4m", "u⟦", "\x1b[9m", "s⟦", "\x1b[36m", "c⟦", "\x1b[1;4m", "bu⟦", "\x1b[1;36m", "bc⟦", "\x1b[1;3m", "bi⟦",
)

func TestRenderMarkdown(t *testing.T) {
	for _, tc := range []struct {
		name    string
		columns int
		in      string
		want    []string
	}{
		{"text", 40, "one two", []string{"one two"}},
		{"styles", 40, "a **b** *c* ~~d~~ `e` ***f***", []string{"a b⟦b⟧ i⟦c⟧ s⟦d⟧ c⟦e⟧ bi⟦f⟧"}},
		{"words are wrapped", 20, "aaaa bbbb cccc dddd eeee", []string{"aaaa bbbb cccc dddd", "eeee"}},
		{"a style goes on in the next line", 20, "aaaa **bbbb cccc dddd eeee**", []string{"aaaa b⟦bbbb cccc dddd⟧", "b⟦eeee⟧"}},
		{"wide characters", 20, "中文字符一二三四五六七八", []string{"中文字符一二三四五六", "七八"}},
		{"a long word", 20, "abcdefghijklmnopqrstuvwxyz", []string{"abcdefghijklmnopqrst", "uvwxyz"}},
		{"line ends are kept", 40, "a\nb  \nc", []string{"a", "b", "c"}},
		{"headings", 40, "# One\n\n## Two `x`", []string{"bu⟦One⟧", "", "b⟦Two ⟧bc⟦x⟧"}},
		{"list", 40, "- a\n- b\n  - c\n", []string{"• a", "• b", "  • c"}},
		{"loose list", 40, "3. a\n\n4. b\n\n   c\n", []string{"3. a", "", "4. b", "", "   c"}},
		{"list that is wrapped", 24, "10) aaaa bbbb cccc dddd eeee\n", []string{"10) aaaa bbbb cccc dddd", "    eeee"}},
		{"tasks", 40, "- [x] a\n- [ ] b\n", []string{"• [x] a", "• [ ] b"}},
		{"quote", 40, "> a\n> b\n", []string{"f⟦│ ⟧a", "f⟦│ ⟧b"}},
		{"code", 20, "```go\nif a {\n\tlong line that is not wrapped at all\n```\n", []string{"    c⟦if a {⟧", "    c⟦    long line that is not wrapped at all⟧"}},
		{"code in a list", 40, "1. a\n\n   ```\n   b\n\n   c\n   ```\n", []string{"1. a", "", "       c⟦b⟧", "       c⟦⟧", "       c⟦c⟧"}},
		{"rule", 20, "a\n\n---\n", []string{"a", "", "f⟦" + strings.Repeat("─", 20) + "⟧"}},
		{"links", 60, "[a](http://x) <http://y> [http://z](http://z) ![p](q.png)", []string{"u⟦a⟧f⟦ (http://x)⟧ u⟦http://y⟧ u⟦http://z⟧ u⟦p⟧f⟦ (q.png)⟧"}},
		{"definitions of links are text", 40, "[a]: http://x\n", []string{"[a]: http://x"}},
		{"html is text", 40, "<div>\na\n</div>\n\nb <i>c</i>", []string{"<div>", "a", "</div>", "", "b <i>c</i>"}},
		{"references and escapes", 40, `&lt;&#x41;&amp; \* \[`, []string{"<A& * ["}},
		{"table", 40, "| a | bb |\n|---|---:|\n| 中 | 1 |\n| x | y |\n", []string{"b⟦a⟧ f⟦ │ ⟧b⟦bb⟧", "f⟦──⟧f⟦─┼─⟧f⟦──⟧", "中f⟦ │ ⟧ 1", "x f⟦ │ ⟧ y"}},
		{"table that is too wide", 20, "| aaaaaaaaa | bbbbbbbbb |\n|---|---|\n| c | d |\n", []string{"b⟦aaaaaaaaa⟧f⟦ │⟧", "b⟦bbbbbbbbb⟧", "cf⟦ │ ⟧d"}},
		{"control characters", 40, "a\x1b[2Jb `\x1b]0;x\x07` &#27;[31m\u202Ec [x](&#27;y)", []string{"a[2Jb c⟦]0;x⟧ [31mc u⟦x⟧f⟦ (&#27;y)⟧"}},
		{"control characters in code", 40, "```\n\x1b[2J\u009b\n```\n", []string{"    c⟦[2J⟧"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := renderMarkdown(newMarkdownParser(), tc.in, tc.columns)
			for i := range got {
				got[i] = marks.Replace(got[i])
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestMarkdownWriter writes a text in pieces of several sizes: what is printed
// after which piece does not depend on them.
func TestMarkdownWriter(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
	}{
		{"nothing", "", ""},
		{"empty lines", "\n\n", ""},
		{"one line", "a **b**", "a b⟦b⟧\n"},
		{"paragraphs", "a\n\n\n\nb\n", "a\n\nb\n"},
		{"list that goes on", "1. a\n\n   b\n\n2. c\n\nd", "1. a\n\n   b\n\n2. c\n\nd\n"},
		{"text after a list", "- a\n- b\n\n*c*", "• a\n• b\n\ni⟦c⟧\n"},
		{"code", "a\n```c\nb\n\n**c**\n```\nd", "a\n\n    c⟦b⟧\n    c⟦⟧\n    c⟦**c**⟧\n\nd\n"},
		{"code after a list", "- a\n```\nb\n```\n", "• a\n\n    c⟦b⟧\n"},
		{"code in a list", "- a\n  ```\n  b\n\n  c\n  ```\n- d\n", "• a\n      c⟦b⟧\n      c⟦⟧\n      c⟦c⟧\n• d\n"},
		{"a longer fence", "````\n```\na\n````\nb", "    c⟦```⟧\n    c⟦a⟧\n\nb\n"},
		{"code that does not end", "~~~\na", "    c⟦a⟧\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{1, 3, 1000} {
				var b strings.Builder
				m := NewWriter(&b)
				for rest := tc.in; rest != ""; {
					n := min(size, len(rest))
					if err := m.WriteText(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := m.Flush(); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, marks.Replace(b.String())); d != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", size, d)
				}
			}
		})
	}
}

// TestMarkdownWriterEarly prints a block as soon as it is known to be complete.
func TestMarkdownWriterEarly(t *testing.T) {
	var b strings.Builder
	m := NewWriter(&b)
	for _, tc := range []struct{ in, want string }{
		{"a", ""},
		{"\n", ""},
		{"\n", "a\n"},
		{"- b\n\n", "a\n"},
		{"c", "a\n\n• b\n"},
		{"\n```\nd\n", "a\n\n• b\n\nc\n\n    c⟦d⟧\n"},
	} {
		if err := m.WriteText(tc.in); err != nil {
			t.Fatal(err)
		}
		if got := marks.Replace(b.String()); got != tc.want {
			t.Errorf("after %q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

// FuzzMarkdown: whatever a model writes, in whatever pieces, a terminal gets no
// escape sequences but those of the styles, and no other control characters.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		"", "# a\n\n- b\n  1. c\n\n> d\n\n```x\ne\n```\n", "| a | b |\n|:-:|--:|\n| c |\n", "**a *b* `c`** [d](e \"f\") <g@h.i> ![j](k)",
		"\x1b[2J&#27;[2J\\\x1b\u009b", "```\x1b]0;a\x07\n\x1b[2J", "<!-- \x1b\n\n", "- [x] a\n\n\t- b\n", ">>>>>> a\n\n    b", "[\x1b]: \x1b \"\x1b\"\n",
	} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, in string, size int) {
		if size < 1 || len(in) > 4<<10 {
			t.Skip()
		}
		var b strings.Builder
		m := NewWriter(&b)
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if err := m.WriteText(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := m.Flush(); err != nil {
			t.Fatal(err)
		}
		out := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(b.String(), "")
		if terminal.Harmless(out) != out {
			t.Errorf("%q becomes %q", in, out)
		}
	})
}
