package inkling_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/testutil"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
)

// TestDocsLinks: relative links of the pages lead to files, and to headings of them.
func TestDocsLinks(t *testing.T) {
	for _, page := range testutil.Pages(t, ".") {
		for _, m := range link.FindAllStringSubmatch(text(t, page), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), path)
			if path == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: no such file", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(text(t, target)), anchor) {
				t.Errorf("%s: link to %s: no such heading", page, m[1])
			}
		}
	}
}

// TestDocsIndex: docs/README.md names every page of the folder.
func TestDocsIndex(t *testing.T) {
	index := text(t, filepath.Join("docs", "README.md"))
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

// TestDocsRooms: docs/architecture.md has a row for every room of layers_test.go.
func TestDocsRooms(t *testing.T) {
	page := text(t, filepath.Join("docs", "architecture.md"))
	for _, r := range rooms {
		if r.path != "" && !strings.Contains(page, "`"+r.path+"`") && !strings.Contains(page, "`"+strings.TrimPrefix(r.path, "internal/")+"`") {
			t.Errorf("docs/architecture.md does not name the room %s", r.path)
		}
	}
}

// TestDocsMake: the calls of make in the pages have targets that exist.
func TestDocsMake(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	calls := testutil.CommandLines(t, ".", "make")
	if len(calls) < 10 {
		t.Fatalf("%d calls in the pages, want more", len(calls))
	}
	for _, c := range calls {
		for _, a := range c.Args {
			if !strings.Contains(a, "=") && !strings.HasPrefix(a, "-") && !slices.Contains(targets, a) {
				t.Errorf("%s:%d: make %s: no such target", c.Page, c.Line, a)
			}
		}
	}
}

// TestDocComments: every exported name has a comment. Methods that are known from
// the standard library need none.
func TestDocComments(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "build", "dist", "test", "testdata"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "nocgo.go":
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", set.Position(d.Pos()), name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// undocumented returns the exported names of a declaration that have no comment.
func undocumented(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		known := slices.Contains([]string{"String", "Error", "Unwrap", "Is", "Close", "Len", "Less", "Swap"}, d.Name.Name)
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exported(d.Recv.List[0].Type) && !known) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					names = append(names, s.Names[0].Name)
				}
			}
		}
	}
	return names
}

// exported reports whether the type of a receiver is.
func exported(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.StarExpr:
		return exported(t.X)
	case *ast.IndexExpr:
		return exported(t.X)
	case *ast.IndexListExpr:
		return exported(t.X)
	case *ast.Ident:
		return t.IsExported()
	}
	return false
}

func TestUndocumented(t *testing.T) {
	const source = `package p

// A has one.
type A int

type B int

// M has one.
func (A) M() {}

func (A) N() {}

func (A) String() string { return "" }

func (c) O() {}

const (
	C = 1 // has one
	D = 2
)

func String() {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.Decls {
		got = append(got, undocumented(d)...)
	}
	if diff := cmp.Diff([]string{"B", "N", "D", "String"}, got); diff != "" {
		t.Errorf("undocumented (-want +got):\n%s", diff)
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# POST /v1/chat/completions\n```\n# no heading\n```\n## What `run` takes\n## Twice\n## Twice\n")
	want := []string{"post-v1chatcompletions", "what-run-takes", "twice", "twice-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
}

// text reads a file.
func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) []string {
	var list []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		n := seen[slug]
		seen[slug]++
		if n > 0 {
			slug += "-" + string(rune('0'+n))
		}
		list = append(list, slug)
	}
	return list
}
