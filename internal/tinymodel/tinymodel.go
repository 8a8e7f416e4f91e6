// Package tinymodel converts the small checkpoints of testdata for tests: each
// once for a type and a test binary.
package tinymodel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling" // the architectures of the checkpoints
	_ "github.com/inkling-go/inkling/convert/kimik25"
	"github.com/inkling-go/inkling/internal/testutil"
)

// Checkpoint is a checkpoint by its folder in testdata.
type Checkpoint string

// The checkpoints. Those that are trained answer questions about text and media; the
// random ones are the reference's, of which there are goldens.
const (
	Inkling       Checkpoint = "inkling-tiny"
	InklingRandom Checkpoint = "inkling-tiny-random/original"
	Kimi          Checkpoint = "kimi-tiny"
	KimiRandom    Checkpoint = "kimi-k25-tiny-random/original"
)

// Name is what the checkpoint's files are called by: its first folder.
func (c Checkpoint) Name() string {
	name, _, _ := strings.Cut(string(c), "/")
	return name
}

// Files are the paths of a converted checkpoint, in one folder. One that the
// checkpoint does not make is empty.
type Files struct {
	Model, MMProj, MTP string
}

// Convert converts the checkpoint in the folder from into the folder to, where its
// files are called by name.
func Convert(from, to, name string, outType convert.OutType) (f Files, err error) {
	report, err := convert.Run(context.Background(), convert.Options{Dir: from, OutDir: to, Name: name, OutType: outType})
	if err != nil {
		return f, err
	}
	paths := map[convert.Kind]*string{convert.Text: &f.Model, convert.MMProj: &f.MMProj, convert.MTP: &f.MTP}
	for _, out := range report.Files {
		path, ok := paths[out.Kind]
		if !ok {
			return f, fmt.Errorf("%s: an output of kind %q", from, out.Kind)
		}
		*path = out.Path
	}
	return f, nil
}

// Files returns the converted checkpoint, which tests share: they must not change it.
// The package's TestMain calls [Main].
func (c Checkpoint) Files(t testing.TB, outType convert.OutType) Files {
	t.Helper()
	from := testutil.Testdata(t, filepath.FromSlash(string(c)))
	f, err := shared.files(from, c.Name(), outType)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Main runs the tests of a package, a *testing.M, and takes away what they have
// converted. It returns the exit status.
func Main(m interface{ Run() int }) int {
	defer shared.remove()
	return m.Run()
}

// shared is a package's variable because the tests of a binary have nothing else in
// common that outlives each of them.
var shared outputs

// outputs are the checkpoints that were converted, below a folder for temporary files.
type outputs struct {
	mu   sync.Mutex
	dir  string // empty: nothing was converted yet
	done map[string]func() (Files, error)
}

// files converts a checkpoint, or waits for the test that does.
func (o *outputs) files(from, name string, outType convert.OutType) (Files, error) {
	o.mu.Lock()
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "tinymodel-")
		if err != nil {
			o.mu.Unlock()
			return Files{}, err
		}
		o.dir, o.done = dir, map[string]func() (Files, error){}
	}
	key := filepath.Join(o.dir, name, string(outType))
	once := o.done[key]
	if once == nil {
		once = sync.OnceValues(func() (Files, error) { return Convert(from, key, name, outType) })
		o.done[key] = once
	}
	o.mu.Unlock()
	return once()
}

// remove takes all of them away.
func (o *outputs) remove() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dir != "" {
		_ = os.RemoveAll(o.dir) // in a folder for temporary files
	}
	o.dir, o.done = "", nil
}
