// Package markdown lays Markdown out on a terminal, a block as soon as it is complete.
package markdown

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/mattn/go-runewidth"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds of the layout.
const (
	minColumns = 20 // below it lines are not made shorter
	ruleWidth  = 40
	codeIndent = "    "
)

// newMarkdownParser returns a parser of CommonMark with GitHub's tables,
// strikethrough and task lists. Definitions of links are left as text: what they
// define may be printed already.
func newMarkdownParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500))...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// renderMarkdown lays Markdown out for a terminal of so many columns. The lines
// hold what is in the text and escape sequences of ours, and no others.
func renderMarkdown(p parser.Parser, source string, columns int) []string {
	source = terminal.Harmless(source)
	r := markdown{source: []byte(source)}
	lines := r.blocks(p.Parse(text.NewReader(r.source)), columns)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(ansi(line), " ")
	}
	return out
}

// markdown lays out the parts of one text.
type markdown struct {
	source []byte
}

// blocks lays out the children of a node, with an empty line between them unless
// they are items of a tight list.
func (r *markdown) blocks(parent ast.Node, width int) [][]span {
	var out [][]span
	list, isList := parent.(*ast.List)
	item, inItem := parent.(*ast.ListItem)
	tight := isList && list.IsTight || inItem && item.Parent().(*ast.List).IsTight
	number := 0
	if isList {
		number = list.Start
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		var lines [][]span
		if isList {
			lines = r.item(n, list, number, width)
			number++
		} else {
			lines = r.block(n, width)
		}
		if len(out) > 0 && !tight {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

// block lays out one block.
func (r *markdown) block(n ast.Node, width int) [][]span {
	width = max(width, minColumns)
	switch n := n.(type) {
	case *ast.Heading:
		st := bold
		if n.Level == 1 {
			st |= underlined
		}
		return wrap(r.inline(n, st), width)
	case *ast.List:
		return r.blocks(n, width)
	case *ast.Blockquote:
		return indent(r.blocks(n, width-2), span{"│ ", faint}, span{"│ ", faint})
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return r.code(n)
	case *ast.ThematicBreak:
		return [][]span{{{strings.Repeat("─", min(width, ruleWidth)), faint}}}
	case *ast.HTMLBlock:
		lines := r.raw(n)
		if n.HasClosure() {
			lines = append(lines, []span{{strings.TrimRight(string(n.ClosureLine.Value(r.source)), "\n"), 0}})
		}
		return lines
	case *extast.Table:
		return r.table(n, width)
	}
	return wrap(r.inline(n, 0), width)
}

// item lays out an item of a list behind its mark.
func (r *markdown) item(n ast.Node, list *ast.List, number, width int) [][]span {
	mark := "• "
	if list.IsOrdered() {
		mark = strconv.Itoa(number) + string(list.Marker) + " "
	}
	room := runewidth.StringWidth(mark)
	return indent(r.blocks(n, width-room), span{mark, 0}, span{strings.Repeat(" ", room), 0})
}

// code lays out lines of code, which are not wrapped: they are to be copied.
func (r *markdown) code(n ast.Node) [][]span {
	lines := r.raw(n)
	for i, line := range lines {
		lines[i] = codeLine(line[0].text)
	}
	return lines
}

func codeLine(line string) []span {
	return []span{{codeIndent, 0}, {strings.ReplaceAll(line, "\t", "    "), code}}
}

// raw returns the lines of a block as they are.
func (r *markdown) raw(n ast.Node) [][]span {
	var out [][]span
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		out = append(out, []span{{strings.TrimRight(string(seg.Value(r.source)), "\n"), 0}})
	}
	return out
}

// indent puts first before the first line, and rest before the others.
func indent(lines [][]span, first, rest span) [][]span {
	if len(lines) == 0 {
		lines = [][]span{nil}
	}
	for i, line := range lines {
		head := rest
		if i == 0 {
			head = first
		}
		lines[i] = append([]span{head}, line...)
	}
	return lines
}

// table lays out a table in columns, or as it is written if it is wider than the
// terminal.
func (r *markdown) table(t *extast.Table, width int) [][]span {
	var rows [][][]span
	wide := make([]int, len(t.Alignments))
	for n := t.FirstChild(); n != nil; n = n.NextSibling() {
		var st style
		if n.Kind() == extast.KindTableHeader {
			st = bold
		}
		row := make([][]span, len(wide))
		for i, c := 0, n.FirstChild(); c != nil && i < len(row); i, c = i+1, c.NextSibling() {
			row[i] = r.inline(c, st)
			wide[i] = max(wide[i], spansWidth(row[i]))
		}
		rows = append(rows, row)
	}
	total := 3 * (len(wide) - 1)
	for _, n := range wide {
		total += n
	}
	var out [][]span
	for i, row := range rows {
		var line, rule []span
		for c, cell := range row {
			if c > 0 {
				line, rule = append(line, span{" │ ", faint}), append(rule, span{"─┼─", faint})
			}
			if total > width { // columns would not be seen as such
				line = append(line, cell...)
				continue
			}
			line = append(line, aligned(cell, t.Alignments[c], wide[c])...)
			rule = append(rule, span{strings.Repeat("─", wide[c]), faint})
		}
		if total > width {
			out = append(out, wrap(line, width)...)
			continue
		}
		if out = append(out, line); i == 0 {
			out = append(out, rule)
		}
	}
	return out
}

// aligned fills a cell up to the width of its column.
func aligned(cell []span, how extast.Alignment, width int) []span {
	left, right := 0, width-spansWidth(cell)
	switch how {
	case extast.AlignRight:
		left, right = right, 0
	case extast.AlignCenter:
		left = right / 2
		right -= left
	}
	return slices.Concat([]span{{strings.Repeat(" ", left), 0}}, cell, []span{{strings.Repeat(" ", right), 0}})
}

// inline collects the text of a block. Line ends within it are kept: models mean
// them.
func (r *markdown) inline(parent ast.Node, st style) []span {
	var out []span
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = appendText(out, r.plain(n), st)
			if n.SoftLineBreak() || n.HardLineBreak() {
				out = appendText(out, "\n", st)
			}
		case *ast.String:
			out = appendText(out, string(n.Value), st)
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					out = appendText(out, strings.ReplaceAll(string(t.Value(r.source)), "\n", " "), st|code)
				}
			}
		case *ast.Emphasis:
			out = append(out, r.inline(n, st|[]style{italic, bold}[min(n.Level, 2)-1])...)
		case *extast.Strikethrough:
			out = append(out, r.inline(n, st|struck)...)
		case *extast.TaskCheckBox:
			out = appendText(out, map[bool]string{true: "[x] ", false: "[ ] "}[n.IsChecked], st)
		case *ast.Link:
			out = append(out, r.link(n, string(n.Destination), st)...)
		case *ast.Image:
			out = append(out, r.link(n, string(n.Destination), st)...)
		case *ast.AutoLink:
			out = appendText(out, string(n.Label(r.source)), st|underlined)
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				seg := n.Segments.At(i)
				out = appendText(out, string(seg.Value(r.source)), st)
			}
		default:
			out = append(out, r.inline(n, st)...)
		}
	}
	return out
}

// link is a text and the address that it stands for.
func (r *markdown) link(n ast.Node, address string, st style) []span {
	label := r.inline(n, st|underlined)
	if len(label) == 1 && cmp.Or(label[0].text, address) == address {
		return []span{{address, st | underlined}}
	}
	return append(label, span{" (" + terminal.Harmless(address) + ")", st | faint})
}

// plain is the text of a node with escapes and references resolved. What they
// resolve to may be a control character.
func (r *markdown) plain(n *ast.Text) string {
	value := n.Value(r.source)
	if n.IsRaw() {
		return string(value)
	}
	value = util.UnescapePunctuations(value)
	return terminal.Harmless(string(util.ResolveEntityNames(util.ResolveNumericReferences(value))))
}
