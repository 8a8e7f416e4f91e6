package testutil

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// Golden holds named arrays that the reference implementation computed. Shapes
// are row-major, as in the file. A method ends the test when the array is
// missing or of another type.
type Golden struct {
	t    testing.TB
	path string
	ck   *safetensors.Checkpoint
}

// OpenGolden opens testdata/<model>/goldens/<name>.safetensors until the test ends.
func OpenGolden(t testing.TB, model, name string) *Golden {
	t.Helper()
	path := Testdata(t, model, "goldens", name+".safetensors")
	ck, err := safetensors.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Golden{t: t, path: path, ck: ck}
}

// Names lists the arrays in the order of the file.
func (g *Golden) Names() []string { return g.ck.Names() }

// Has reports whether there is an array of this name.
func (g *Golden) Has(name string) bool {
	_, ok := g.ck.Tensor(name)
	return ok
}

// Shape returns the row-major shape of an array.
func (g *Golden) Shape(name string) []int64 {
	g.t.Helper()
	return slices.Clone(g.tensor(name).Shape)
}

// Floats returns a copy of an array of floats, row-major.
func (g *Golden) Floats(name string) []float32 {
	g.t.Helper()
	values, err := g.ck.Floats(g.tensor(name))
	if err != nil {
		g.t.Fatalf("%s: %v", g.path, err)
	}
	return values
}

// Ints returns a copy of an array of integers, row-major.
func (g *Golden) Ints(name string) []int64 {
	g.t.Helper()
	values, err := g.ck.Ints(g.tensor(name))
	if err != nil {
		g.t.Fatalf("%s: %v", g.path, err)
	}
	return values
}

func (g *Golden) tensor(name string) safetensors.Tensor {
	g.t.Helper()
	x, ok := g.ck.Tensor(name)
	if !ok {
		g.t.Fatalf("%s: no array %q", g.path, name)
	}
	return x
}

// GoldenJSON decodes testdata/<model>/goldens/<name>.json into v: the facts
// beside a golden's arrays, or a golden that is JSON alone.
func GoldenJSON(t testing.TB, model, name string, v any) {
	t.Helper()
	path := Testdata(t, model, "goldens", name+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
