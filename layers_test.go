package inkling_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This file is docs/architecture.md as a test: which room of the tree may
// import which. A package outside of every room, or an import that its room
// does not allow, fails make lint.

const modulePath = "github.com/inkling-go/inkling"

// room is one folder of the tree with everything below it. A package belongs to
// the room with the longest matching path. Packages of one room may import each
// other.
type room struct {
	path string // relative to the module; "" is the root package
	may  []string
}

// formats are the pure Go packages for bytes from outside; they may use each other.
var formats = []string{
	"internal/gguf", "internal/mapped", "internal/media", "internal/safetensors", "internal/testutil", "internal/token",
}

// runParts is the folder of what inkling-run is made of.
const runParts = "cmd/inkling-run/internal"

// belowCmd is what commands may use of the tree.
var belowCmd = []string{"", "binding", "convert", "ggml", "internal", "models"}

var rooms = []room{
	{"ggml", nil},
	{"binding", []string{"ggml"}},

	{"internal/gguf", formats},
	{"internal/mapped", formats},
	{"internal/media", formats},
	{"internal/safetensors", formats},
	{"internal/testutil", append([]string{"internal/parity"}, formats...)},
	{"internal/tinymodel", []string{"convert", "internal/testutil"}},
	{"internal/token", formats},
	{"internal/chat", []string{"internal/jinja", "internal/token"}},
	{"internal/jinja", nil}, // texts in, texts out
	{"internal/hmlp", nil},
	{"internal/machine", nil},
	{"internal/plot", nil},
	{"internal/parity", []string{"internal/plot"}}, // the report over the tests; they reach it through testutil
	{"internal/sbom", nil},                         // what a built program is made of

	// convert and models never import each other: they meet in the file.
	// convert has binding for quantising only.
	{"convert", []string{"binding", "internal/gguf", "internal/hmlp", "internal/machine", "internal/safetensors", "internal/token"}},
	{"models", []string{"binding", "internal/gguf", "internal/hmlp", "internal/machine", "internal/media", "internal/token"}},

	{"internal/grammar", nil}, // bytes in, masks of tokens out
	{"internal/devices", []string{"binding", "internal/machine", "models"}}, // where a model is computed
	{"internal/engine", []string{"binding", "internal/chat", "internal/devices", "internal/grammar", "internal/machine", "internal/media", "internal/token", "models"}},
	// What looks at models from outside: what they take, how fast and how good they are.
	{"internal/doctor", []string{"binding", "internal/devices", "internal/gguf", "internal/machine", "models"}},
	{"internal/bench", []string{"binding", "internal/devices", "internal/gguf", "internal/machine", "internal/media", "models"}},
	{"internal/eval", []string{"binding", "internal/chat", "internal/devices", "internal/engine", "internal/gguf", "internal/media", "internal/plot", "internal/token", "models"}},

	{"internal/store", []string{"internal/gguf", "internal/machine"}},
	{"internal/server", []string{"internal/chat", "internal/engine", "internal/grammar", "internal/media", "internal/store"}},

	{"", []string{"internal", "models"}}, // the Go API; "internal" stands for every room below it
	{"cmd", append([]string{runParts, runParts + "/inspectcmd", runParts + "/measurecmd", runParts + "/runcmd", runParts + "/servecmd", runParts + "/storecmd"}, belowCmd...)},
	// Commands do not know each other: what two of them need is in the parts.
	{runParts, belowCmd},
	{runParts + "/inspectcmd", append([]string{runParts}, belowCmd...)},
	{runParts + "/measurecmd", append([]string{runParts}, belowCmd...)},
	{runParts + "/runcmd", append([]string{runParts}, belowCmd...)},
	{runParts + "/servecmd", append([]string{runParts}, belowCmd...)},
	{runParts + "/storecmd", append([]string{runParts}, belowCmd...)},
	{"examples", []string{""}}, // as a user of the Go API would
	{"examples/newmodel", []string{"binding", "convert", "internal/gguf", "internal/token", "models"}}, // both halves of an architecture
	{"test/load", nil}, // clients of a server that is a process of its own
}

// forTests is what the tests of every room may import beyond their room's own
// list: a test of a model begins with a checkpoint.
var forTests = append([]string{"convert", "internal/tinymodel"}, formats...)

// forTestsOf is what the tests of one room may import besides: a server is tried
// with models, whose architectures register themselves.
var forTestsOf = map[string][]string{"internal/server": {"models"}}

// testOnly are imported by tests alone.
var testOnly = []string{"internal/testutil", "internal/tinymodel"}

// withCgo lists the packages, not rooms, that may import "C".
var withCgo = []string{"binding", "ggml"}

// confined says which rooms may import a foreign module. Only through these
// does the tree depend on it, so that it can be exchanged there.
var confined = map[string][]string{
	"github.com/ollama/ollama": {"ggml"},
}

// listed is the part of go list -json that the rules look at.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestLayers(t *testing.T) {
	for _, tags := range []string{"", "ggml_dir"} {
		t.Run("tags="+tags, func(t *testing.T) {
			pkgs, err := goList(tags)
			if err != nil {
				t.Fatal(err)
			}
			if len(pkgs) < 5 {
				t.Fatalf("go list found %d packages only", len(pkgs))
			}
			for _, v := range violations(pkgs) {
				t.Error(v)
			}
		})
	}
}

func TestLayersFindViolations(t *testing.T) {
	const m = modulePath + "/"
	for _, tt := range []struct {
		name string
		pkg  listed
		want []string
	}{
		{
			name: "allowed: own room, listed rooms, standard library, other modules",
			pkg:  listed{ImportPath: m + "models/inkling", Imports: []string{"fmt", m + "models", m + "binding/op", m + "internal/gguf", "golang.org/x/sys/unix"}},
		},
		{
			name: "allowed: cgo in binding",
			pkg:  listed{ImportPath: m + "binding", Imports: []string{"C", m + "ggml"}},
		},
		{
			name: "allowed: tests start from a checkpoint",
			pkg:  listed{ImportPath: m + "models", TestImports: []string{m + "internal/testutil"}, XTestImports: []string{m + "convert/inkling"}},
		},
		{
			name: "allowed: the Go API sees every internal room",
			pkg:  listed{ImportPath: modulePath, Imports: []string{m + "internal/engine", m + "models"}},
		},
		{
			name: "models imports convert",
			pkg:  listed{ImportPath: m + "models/inkling", Imports: []string{m + "convert/inkling"}},
			want: []string{"models/inkling imports convert/inkling: room models may import binding, internal/gguf, internal/hmlp, internal/machine, internal/media, internal/token"},
		},
		{
			name: "convert imports models",
			pkg:  listed{ImportPath: m + "convert", Imports: []string{m + "models"}},
			want: []string{"convert imports models: room convert may import binding, internal/gguf, internal/hmlp, internal/machine, internal/safetensors, internal/token"},
		},
		{
			name: "a room with an empty list",
			pkg:  listed{ImportPath: m + "internal/hmlp", Imports: []string{m + "internal/gguf"}},
			want: []string{"internal/hmlp imports internal/gguf: room internal/hmlp may import nothing of this module"},
		},
		{
			name: "the root package is used from inside",
			pkg:  listed{ImportPath: m + "internal/server", Imports: []string{modulePath}},
			want: []string{"internal/server imports the root package: room internal/server may import internal/chat, internal/engine, internal/grammar, internal/media, internal/store"},
		},
		{
			name: "chat reads media itself",
			pkg:  listed{ImportPath: m + "internal/chat", Imports: []string{m + "internal/media"}},
			want: []string{"internal/chat imports internal/media: room internal/chat may import internal/jinja, internal/token"},
		},
		{
			name: "cgo below binding",
			pkg:  listed{ImportPath: m + "binding/op", Imports: []string{"C"}},
			want: []string{`binding/op imports "C": only binding, ggml may`},
		},
		{
			name: "a command is imported",
			pkg:  listed{ImportPath: m + "cmd/inkling-run", Imports: []string{m + "cmd/convert-inkling"}},
			want: []string{"cmd/inkling-run imports cmd/convert-inkling: nobody imports a command"},
		},
		{
			name: "a command is imported by a test",
			pkg:  listed{ImportPath: m + "models", TestImports: []string{m + "cmd/inkling-run"}},
			want: []string{"models (test) imports cmd/inkling-run: nobody imports a command"},
		},
		{
			name: "a command knows another one",
			pkg:  listed{ImportPath: m + "cmd/inkling-run/internal/storecmd", Imports: []string{m + "cmd/inkling-run/internal/locate", m + "cmd/inkling-run/internal/runcmd"}},
			want: []string{"cmd/inkling-run/internal/storecmd imports cmd/inkling-run/internal/runcmd: room cmd/inkling-run/internal/storecmd may import cmd/inkling-run/internal, the root package, binding, convert, ggml, internal, models"},
		},
		{
			name: "testutil in the program",
			pkg:  listed{ImportPath: m + "internal/token", Imports: []string{m + "internal/testutil"}},
			want: []string{"internal/token imports internal/testutil: it is for tests"},
		},
		{
			name: "a test reaches up",
			pkg:  listed{ImportPath: m + "binding", XTestImports: []string{m + "models"}},
			want: []string{"binding (test) imports models: room binding may import ggml"},
		},
		{
			name: "ggml's module beside the ggml room",
			pkg:  listed{ImportPath: m + "models", Imports: []string{"github.com/ollama/ollama/ml/backend/ggml/ggml/src"}},
			want: []string{"models imports github.com/ollama/ollama/ml/backend/ggml/ggml/src: only ggml may"},
		},
		{
			name: "a package of no room",
			pkg:  listed{ImportPath: m + "internal/helpers"},
			want: []string{"internal/helpers is in no room of layers_test.go and docs/architecture.md"},
		},
		{
			name: "an import of no room",
			pkg:  listed{ImportPath: m + "cmd/inkling-run", Imports: []string{m + "helpers"}},
			want: []string{"cmd/inkling-run imports helpers: it is in no room"},
		},
		{
			name: "a room's name as a prefix of another word",
			pkg:  listed{ImportPath: m + "internal/tokens"},
			want: []string{"internal/tokens is in no room of layers_test.go and docs/architecture.md"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, violations([]listed{tt.pkg})); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// goList reads every package of the module as the build with these tags sees
// it; -e because a package that does not compile is for go vet to report.
func goList(tags string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "-tags="+tags, "./...")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	var pkgs []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

// violations lists every import that breaks a rule, one line each.
func violations(pkgs []listed) []string {
	var vs []string
	for _, p := range pkgs {
		from := relative(p.ImportPath)
		home, ok := roomOf(from)
		if !ok {
			vs = append(vs, label(from)+" is in no room of layers_test.go and docs/architecture.md")
			continue
		}
		for _, imp := range p.Imports {
			vs = appendIf(vs, label(from), checkImport(from, home, imp, false))
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			vs = appendIf(vs, label(from)+" (test)", checkImport(from, home, imp, true))
		}
	}
	return vs
}

func appendIf(vs []string, from, reason string) []string {
	if reason == "" {
		return vs
	}
	return append(vs, from+" "+reason)
}

// checkImport returns "" or what is wrong with the package at path from, which
// lives in room home, importing imp.
func checkImport(from string, home room, imp string, inTest bool) string {
	if imp == "C" {
		if slices.Contains(withCgo, from) {
			return ""
		}
		return fmt.Sprintf("imports %q: only %s may", imp, strings.Join(withCgo, ", "))
	}
	if !within(imp, modulePath) {
		for module, may := range confined {
			if within(imp, module) && !slices.Contains(may, home.path) {
				return fmt.Sprintf("imports %s: only %s may", imp, strings.Join(may, ", "))
			}
		}
		return ""
	}

	to := relative(imp)
	target, ok := roomOf(to)
	switch {
	case !ok:
		return fmt.Sprintf("imports %s: it is in no room", to)
	case target.path == "cmd":
		return fmt.Sprintf("imports %s: nobody imports a command", to)
	case slices.Contains(testOnly, target.path) && !inTest && !slices.Contains(testOnly, home.path):
		return fmt.Sprintf("imports %s: it is for tests", to)
	case target.path == home.path, allows(home.may, target), inTest && (allows(forTests, target) || allows(forTestsOf[home.path], target)):
		return ""
	case len(home.may) == 0:
		return fmt.Sprintf("imports %s: room %s may import nothing of this module", label(to), label(home.path))
	default:
		return fmt.Sprintf("imports %s: room %s may import %s", label(to), label(home.path), strings.Join(labels(home.may), ", "))
	}
}

func allows(may []string, target room) bool {
	return slices.Contains(may, target.path) || slices.Contains(may, "internal") && within(target.path, "internal")
}

// relative turns an import path of this module into a path in the tree; the
// root package becomes "".
func relative(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, modulePath), "/")
}

// label is a path as messages show it.
func label(path string) string {
	if path == "" {
		return "the root package"
	}
	return path
}

func labels(paths []string) []string {
	var list []string
	for _, p := range paths {
		list = append(list, label(p))
	}
	return list
}

func roomOf(path string) (room, bool) {
	best, found := room{}, false
	for _, r := range rooms {
		root := r.path == "" && path == "" // the root room has no rooms below it
		if (root || r.path != "" && within(path, r.path)) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
