package gguf

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	parser "github.com/gpustack/gguf-parser-go"

	"github.com/inkling-go/inkling/internal/gguf"
)

const root = "../../.."

// converter is the command under test.
var converter string

func TestMain(m *testing.M) { os.Exit(build(m)) }

// build builds the command and runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	converter = filepath.Join(dir, "convert-inkling")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-C", root, "-o", converter, "./cmd/convert-inkling")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// convert runs the command and returns the files in the output folder.
func convert(t *testing.T, args ...string) []string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), converter, append(args, "-o", out, "--name", "m")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file written (%v)", err)
	}
	return files
}

// outTypes are those that the command's help lists.
func outTypes(t *testing.T) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), converter, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`TYPE of the weights: (.*?);`).FindSubmatch(text)
	if list == nil {
		t.Fatalf("no types in the help:\n%s", text)
	}
	return strings.Split(string(list[1]), ", ")
}

// TestParser has gguf-parser-go read every kind of file of every output type, and
// compares what it finds with what our own reader does.
func TestParser(t *testing.T) {
	for _, model := range []struct {
		dir   string
		kinds int // text, mmproj, mtp
	}{{"inkling-tiny", 3}, {"kimi-tiny", 2}} {
		for _, outType := range outTypes(t) {
			t.Run(model.dir+"/"+outType, func(t *testing.T) {
				files := convert(t, filepath.Join(root, "testdata", model.dir), "--outtype", outType)
				if len(files) != model.kinds {
					t.Errorf("%d files, want %d: %v", len(files), model.kinds, files)
				}
				for _, path := range files {
					compare(t, path)
				}
			})
		}
	}
}

// TestParserSplit is TestParser of a model in several files.
func TestParserSplit(t *testing.T) {
	files := convert(t, filepath.Join(root, "testdata", "inkling-tiny"),
		"--outtype", "q4_k_m", "--only", "text", "--split-max-size", "2M")
	if len(files) < 3 {
		t.Fatalf("%d files, want several", len(files))
	}
	for _, path := range files {
		compare(t, path) // the parser finds the other parts by their names
	}
}

// tensor is what both readers know of a tensor. The parser counts offsets from the
// start of the data.
type tensor struct {
	Name   string
	Type   uint32
	Dims   []uint64
	Offset uint64
	Part   int
}

// compare opens a file, or the model it is a part of, with both readers.
func compare(t *testing.T, path string) {
	t.Helper()
	theirs, err := parser.ParseGGUFFile(path)
	if err != nil {
		t.Errorf("%s: %v", filepath.Base(path), err)
		return
	}
	ours, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()

	parts := len(theirs.SplitTensorDataStartOffsets)
	if n := len(ours.Parts()); n != parts {
		t.Fatalf("%s: %d parts, the parser finds %d", filepath.Base(path), n, parts)
	}
	if diff := cmp.Diff(tensorsOf(ours, theirs.SplitTensorDataStartOffsets), tensorsOfParser(theirs)); diff != "" {
		t.Errorf("%s: tensors (-ours +parser):\n%s", filepath.Base(path), diff)
	}
	if diff := cmp.Diff(keysOf(ours), keysOfParser(theirs)); diff != "" {
		t.Errorf("%s: keys (-ours +parser):\n%s", filepath.Base(path), diff)
	}
}

// tensorsOf lists the tensors with offsets from the given starts of the parts' data.
func tensorsOf(f *gguf.File, starts []int64) []tensor {
	var list []tensor
	for _, x := range f.Tensors() {
		y := tensor{Name: x.Name, Type: uint32(x.Type), Offset: uint64(x.Offset - starts[x.Part]), Part: x.Part}
		for _, d := range x.Dims {
			y.Dims = append(y.Dims, uint64(d))
		}
		list = append(list, y)
	}
	return list
}

// tensorsOfParser lists the tensors; where offsets begin anew another part does.
func tensorsOfParser(f *parser.GGUFFile) []tensor {
	var list []tensor
	part := 0
	for i, x := range f.TensorInfos {
		if i > 0 && x.Offset <= f.TensorInfos[i-1].Offset {
			part++
		}
		list = append(list, tensor{Name: x.Name, Type: uint32(x.Type), Dims: x.Dimensions, Offset: x.Offset, Part: part})
	}
	return list
}

// perPart are keys that each part of a split model has.
var perPart = map[string]bool{"split.no": true, "split.count": true, "split.tensors.count": true}

// keysOf returns all values by key, but for those about the parts. The parser takes
// white space off the ends of strings, and so does this.
func keysOf(f *gguf.File) map[string]any {
	values := make(map[string]any)
	for _, key := range f.Keys() {
		if perPart[key] {
			continue
		}
		v, _ := f.Value(key)
		if s, ok := v.(string); ok {
			v = strings.TrimSpace(s)
		}
		values[key] = v
	}
	return values
}

// keysOfParser is keysOf; arrays become slices of the type of their elements.
func keysOfParser(f *parser.GGUFFile) map[string]any {
	values := make(map[string]any)
	for _, kv := range f.Header.MetadataKV {
		v := kv.Value
		if a, ok := v.(parser.GGUFMetadataKVArrayValue); ok && len(a.Array) > 0 {
			s := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(a.Array[0])), 0, len(a.Array))
			for _, e := range a.Array {
				s = reflect.Append(s, reflect.ValueOf(e))
			}
			v = s.Interface()
		}
		if !perPart[kv.Key] {
			values[kv.Key] = v
		}
	}
	return values
}
