package media

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

const fixtures = "../../testdata/inkling-tiny-random"

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// golden holds the arrays of one file of reference values.
type golden map[string]struct {
	DType string  `json:"dtype"`
	Shape []int   `json:"shape"`
	At    [2]int  `json:"data_offsets"`
	bytes []uint8 // filled by readGolden
}

func readGolden(t testing.TB, name string) golden {
	t.Helper()
	data := readFile(t, filepath.Join(fixtures, "goldens", name+".safetensors"))
	n := 8 + binary.LittleEndian.Uint64(data)
	var g golden
	if err := json.Unmarshal(data[8:n], &g); err != nil {
		t.Fatal(err)
	}
	for k, v := range g {
		if k == "__metadata__" {
			delete(g, k)
			continue
		}
		v.bytes = data[n:][v.At[0]:v.At[1]]
		g[k] = v
	}
	return g
}

func (g golden) raw(t testing.TB, name, dtype string) []byte {
	t.Helper()
	v, ok := g[name]
	if !ok || v.DType != dtype {
		t.Fatalf("golden %q of type %s is missing", name, dtype)
	}
	return v.bytes
}

func (g golden) floats(t testing.TB, name string) []float32 {
	t.Helper()
	b := g.raw(t, name, "F32")
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func (g golden) ints(t testing.TB, name string) []int32 {
	t.Helper()
	b := g.raw(t, name, "I32")
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// closeTo fails the test unless got and want have equal length and differ by at
// most tol everywhere.
func closeTo(t testing.TB, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	worst, at := 0.0, 0
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if !(d <= worst) { // NaN counts as worst
			worst, at = d, i
		}
	}
	if !(worst <= tol) {
		t.Errorf("%s: differs by %g at %d: got %g, want %g (tolerance %g)", what, worst, at, got[at], want[at], tol)
	}
}

// pixelsClose fails the test unless the pictures have equal size and differ by
// at most tol levels everywhere.
func pixelsClose(t testing.TB, what string, got, want *Image, tol int) {
	t.Helper()
	if got.W != want.W || got.H != want.H || len(got.Pix) != got.W*got.H*3 {
		t.Fatalf("%s: %d x %d with %d bytes, want %d x %d", what, got.W, got.H, len(got.Pix), want.W, want.H)
	}
	for i := range got.Pix {
		if d := int(got.Pix[i]) - int(want.Pix[i]); d < -tol || d > tol {
			t.Fatalf("%s: pixel %d,%d channel %d: got %d, want %d", what, i/3%got.W, i/3/got.W, i%3, got.Pix[i], want.Pix[i])
		}
	}
}
