package gguf

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/ggml.gguf was written by ggml's gguf_write_to_file; testdata/golden.c
// is the program and so the source of the values below.

type pairOf struct {
	key string
	val any
}

var goldenPairs = []pairOf{
	{"general.architecture", "golden"},
	{"test.u8", uint8(200)},
	{"test.i8", int8(-100)},
	{"test.u16", uint16(60000)},
	{"test.i16", int16(-30000)},
	{"test.u32", uint32(4000000000)},
	{"test.i32", int32(-2000000000)},
	{"test.u64", uint64(18000000000000000000)},
	{"test.i64", int64(-9000000000000000000)},
	{"test.f32", float32(0.1)},
	{"test.f64", 0.1},
	{"test.bool", true},
	{"test.strs", []string{"", "a", "Ġthe", "two words"}},
	{"test.i32s", []int32{1, -2, 3}},
	{"test.f32s", []float32{0.5, -1.25}},
	{"test.bools", []bool{true, false, true}},
}

// ggml always has four dimensions and writes those up to the last above 1.
var goldenTensors = []TensorInfo{
	{Name: "blk.0.f32.weight", Type: F32, Dims: []int64{3}, Size: 12},
	{Name: "blk.1.f16.weight", Type: F16, Dims: []int64{256, 2}, Size: 1024},
	{Name: "blk.2.bf16.weight", Type: BF16, Dims: []int64{256, 2, 2}, Size: 2048},
	{Name: "blk.3.q8_0.weight", Type: Q8_0, Dims: []int64{256, 2, 3}, Size: 6 * 8 * 34},
	{Name: "blk.4.q4_K.weight", Type: Q4_K, Dims: []int64{256, 2, 4}, Size: 8 * 144},
}

// goldenData is the content of tensor i: byte j is i+7j.
func goldenData(i int) []byte {
	b := make([]byte, goldenTensors[i].Size)
	for j := range b {
		b[j] = byte(i + 7*j)
	}
	return b
}

func TestOpenFileOfGGML(t *testing.T) {
	f, err := Open("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	var got []pairOf
	for _, k := range f.Keys() {
		v, ok := f.Value(k)
		if !ok {
			t.Errorf("Value(%q) is absent, Keys lists it", k)
		}
		got = append(got, pairOf{k, v})
	}
	if d := cmp.Diff(goldenPairs, got, cmp.AllowUnexported(pairOf{})); d != "" {
		t.Errorf("pairs (-want +got):\n%s", d)
	}

	tensors := f.Tensors()
	if len(tensors) != len(goldenTensors) {
		t.Fatalf("%d tensors, want %d", len(tensors), len(goldenTensors))
	}
	for i, want := range goldenTensors {
		got, ok := f.Tensor(want.Name)
		if !ok {
			t.Fatalf("tensor %q is absent", want.Name)
		}
		if d := cmp.Diff(got, tensors[i]); d != "" {
			t.Errorf("Tensor and Tensors differ:\n%s", d)
		}
		if got.Offset%32 != 0 {
			t.Errorf("%s: offset %d is not aligned", got.Name, got.Offset)
		}
		if !bytes.Equal(f.Bytes(got), goldenData(i)) {
			t.Errorf("%s: wrong data", got.Name)
		}
		got.Offset = 0
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("tensor (-want +got):\n%s", d)
		}
	}
}

// writeGolden writes the content of testdata/ggml.gguf to path.
func writeGolden(t testing.TB, path string) {
	t.Helper()
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, p := range goldenPairs {
		if err := w.Set(p.key, p.val); err != nil {
			t.Fatal(err)
		}
	}
	for _, ti := range goldenTensors {
		if err := w.AddTensor(ti.Name, ti.Type, ti.Dims); err != nil {
			t.Fatal(err)
		}
	}
	for i, ti := range goldenTensors {
		err := w.WriteTensor(ti.Name, func(w io.Writer) error {
			b := goldenData(i)
			if _, err := w.Write(b[:5]); err != nil {
				return err
			}
			_, err := w.Write(b[5:])
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestWriterEqualsGGML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.gguf")
	writeGolden(t, path)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the written file of %d bytes is not ggml's of %d", len(got), len(want))
	}
}
