package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// copies is an architecture for tests. Its files hold the checkpoint's tensors
// under their names: those that begin with "proj." in the mmproj file, the others
// in the text file.
type copies struct{}

func init() { Register(copies{}) }

func (copies) Name() string           { return "copies" }
func (copies) ModelTypes() []string   { return []string{"copies"} }
func (copies) Optional(s string) bool { return strings.HasPrefix(s, "draft.") }

func (copies) Refuses(modelType string) string {
	if modelType == "copies2" {
		return "copies2 is another one"
	}
	return ""
}

func (copies) Plan(src *Source) (*Plan, error) {
	m := NewMatcher(src)
	text, proj := File{Kind: Text, Arch: "copies"}, File{Kind: MMProj, Arch: "clip"}
	for _, name := range src.Tensors.Names() {
		x, _ := src.Tensors.Tensor(name)
		dims := slices.Clone(x.Shape)
		slices.Reverse(dims)
		f := &text
		if strings.HasPrefix(name, "proj.") {
			f = &proj
		}
		f.Tensors = append(f.Tensors, m.Find(name, dims, Spelling{Name: name, Shape: x.Shape}))
	}
	return &Plan{Files: []File{text, proj}}, m.Err()
}

// small is a checkpoint of two files with a few weights.
func small() *checkpointtest.Checkpoint {
	c := &checkpointtest.Checkpoint{Config: map[string]any{"model_type": "copies"}}
	for _, name := range []string{"a.weight", "b.weight", "proj.c.weight"} {
		c.Add(name, 2, 32).Data = slices.Repeat(checkpointtest.BF16(1, -2), 32)
	}
	return c
}

// filesIn returns the names of the files in a folder.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRunReport(t *testing.T) {
	dir := small().Write(t)
	out := filepath.Join(t.TempDir(), "a", "b")
	var last Progress
	o := Options{Dir: dir, OutDir: out, Name: "m", Workers: 1, Progress: func(p Progress) { last = p }}
	want := Report{
		Arch: "copies",
		Files: []FileReport{
			{Text, filepath.Join(out, "m-BF16.gguf"), nil, 2, 256, []TypeCount{{gguf.BF16, 2, 256}}, false},
			{MMProj, filepath.Join(out, "mmproj-m-BF16.gguf"), nil, 1, 128, []TypeCount{{gguf.BF16, 1, 128}}, false},
		},
		Memory: 4 * 2 * 32 * 4, // four buffers of the largest tensor
	}
	for _, dry := range []bool{true, false} {
		o.DryRun = dry
		got, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		got.Took, got.Recipe = 0, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dry run %v: report (-want +got):\n%s", dry, diff)
		}
		if files := filesIn(t, out); (len(files) == 0) != dry {
			t.Errorf("dry run %v: files %v", dry, files)
		}
	}
	wantLast := Progress{
		File: want.Files[1].Path, Tensor: "proj.c.weight", Done: 384, Total: 384,
		Shard: "model.safetensors", ShardDone: 384, ShardTotal: 384,
	}
	if last != wantLast {
		t.Errorf("last progress %+v, want %+v", last, wantLast)
	}
}

// TestRunNames checks where outputs go and what they are called by default.
func TestRunNames(t *testing.T) {
	dir := small().Write(t)
	model := filepath.Join(filepath.Dir(dir), "my-model-v1.5")
	if err := os.Rename(dir, model); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), Options{Dir: model + "/."}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(filepath.Join(model, "my-model-v1.5-BF16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if name, err := f.Str("general.name"); name != "My Model v1.5" {
		t.Errorf("general.name %q (%v)", name, err)
	}
}

func TestRunForce(t *testing.T) {
	o := Options{Dir: small().Write(t), OutDir: t.TempDir(), Name: "m"}
	old := filepath.Join(o.OutDir, "mmproj-m-BF16.gguf")
	if err := os.WriteFile(old, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Run(context.Background(), o)
	var path *fs.PathError
	if !errors.Is(err, fs.ErrExist) || !errors.As(err, &path) || path.Path != old {
		t.Errorf("error %v, want one about %s", err, old)
	}
	if diff := cmp.Diff([]string{"mmproj-m-BF16.gguf"}, filesIn(t, o.OutDir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	o.DryRun = true
	report, err := Run(context.Background(), o)
	if want := "write " + old + ": file already exists"; err != nil || !cmp.Equal(report.Notes, []string{want}) {
		t.Errorf("dry run: notes %q, error %v; want %q", report.Notes, err, want)
	}
	o.DryRun, o.Force = false, true
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(old); err != nil || string(data) == "old" {
		t.Errorf("old file is still there: %v", err)
	}
}

// TestRunNaN has weights that are no numbers in three tensors of two files.
func TestRunNaN(t *testing.T) {
	c := small()
	copy(c.Get(t, "b.weight").Data, []byte{0x80, 0x7f, 0xc0, 0x7f}) // +inf, NaN
	copy(c.Get(t, "proj.c.weight").Data[126:], []byte{0x80, 0xff})  // -inf
	o := Options{Dir: c.Write(t), OutDir: filepath.Join(t.TempDir(), "out"), Name: "m"}
	_, err := Run(context.Background(), o)
	var bad *NonFiniteError
	if !errors.As(err, &bad) {
		t.Fatalf("error %v", err)
	}
	if want := (NonFiniteError{o.Dir, 3, 2, "b.weight"}); *bad != want {
		t.Errorf("%+v, want %+v", *bad, want)
	}
	if want := o.Dir + ": 3 NaN or infinite weights in 2 tensors, first in b.weight"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if files := filesIn(t, filepath.Dir(o.OutDir)); files != nil {
		t.Errorf("left behind: %v", files)
	}
	o.AllowNaN, o.Force = true, true
	for range 20 { // the workers find them in any order
		report, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"kept 3 NaN or infinite weights in 2 tensors, first in b.weight"}; !cmp.Equal(report.Notes, want) {
			t.Fatalf("notes %q, want %q", report.Notes, want)
		}
	}
	o.OutType = OutQ8_0
	if _, err := Run(context.Background(), o); !errors.As(err, &bad) {
		t.Errorf("Q8_0: error %v", err)
	}
}

func TestRunRange(t *testing.T) {
	c := small()
	copy(c.Get(t, "b.weight").Data, checkpointtest.BF16(1<<16, -1<<20))
	o := Options{Dir: c.Write(t), OutDir: t.TempDir(), OutType: OutF16}
	_, err := Run(context.Background(), o)
	var beyond *RangeError
	if !errors.As(err, &beyond) {
		t.Fatalf("error %v", err)
	}
	if want := (RangeError{o.Dir, "b.weight", 2, "f16"}); *beyond != want {
		t.Errorf("%+v, want %+v", *beyond, want)
	}
	if files := filesIn(t, o.OutDir); files != nil {
		t.Errorf("left behind: %v", files)
	}
}

// TestRunCancel cancels while each of the tensors is in work.
func TestRunCancel(t *testing.T) {
	dir := small().Write(t)
	for _, tensor := range []string{"a.weight", "b.weight", "proj.c.weight"} {
		t.Run(tensor, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			parent := t.TempDir()
			o := Options{Dir: dir, OutDir: filepath.Join(parent, "x", "y"), Progress: func(p Progress) {
				if p.Tensor == tensor {
					cancel()
				}
			}}
			if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if files := filesIn(t, parent); files != nil {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// TestRunSecondFileFails has a folder in the way of the second output.
func TestRunSecondFileFails(t *testing.T) {
	o := Options{Dir: small().Write(t), OutDir: t.TempDir(), Name: "m", Force: true}
	if err := os.Mkdir(filepath.Join(o.OutDir, "mmproj-m-BF16.gguf"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"mmproj-m-BF16.gguf"}, filesIn(t, o.OutDir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestCommitAll fails to name the second of two files.
func TestCommitAll(t *testing.T) {
	dir := t.TempDir()
	var writers []*gguf.Writer
	for _, name := range []string{"a.gguf", "b.gguf"} {
		w, err := gguf.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	if err := writers[1].AddTensor("never.written", gguf.F32, []int64{1}); err != nil {
		t.Fatal(err)
	}
	if err := commitAll(context.Background(), writers); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"b.gguf.partial"}, filesIn(t, dir)); diff != "" { // Abort is the caller's
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := writers[1].Abort(); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(c *checkpointtest.Checkpoint)
		want string
	}{
		{"unknown", func(c *checkpointtest.Checkpoint) { c.Config["model_type"] = "x" }, `/config.json: unsupported: model_type "x", want one of: copies`},
		{"refused by name", func(c *checkpointtest.Checkpoint) { c.Config["model_type"] = "copies2" }, "/config.json: unsupported: copies2 is another one"},
		{"unknown method", func(c *checkpointtest.Checkpoint) {
			c.Config["quantization_config"] = map[string]any{"quant_method": "awq"}
		}, `/config.json: unsupported: quantisation method "awq", want one of: modelopt, compressed-tensors, fp8, or MLX's`},
		{"unnamed method", func(c *checkpointtest.Checkpoint) {
			c.Config["quantization_config"] = map[string]any{"bits": 4}
		}, "/config.json: unsupported: quantization_config.quant_method is missing"},
		{"unknown algorithm", func(c *checkpointtest.Checkpoint) {
			c.Files = map[string][]byte{"hf_quant_config.json": []byte(`{"quantization":{"quant_algo":"W4A8_AWQ"}}`)}
		}, `/hf_quant_config.json: unsupported: quantization.quant_algo is "W4A8_AWQ", want NVFP4 or FP8`},
		{"MLX's other mode", func(c *checkpointtest.Checkpoint) {
			c.Config["quantization"] = map[string]any{"bits": 4, "group_size": 32, "mode": "mxfp4"}
		}, `/config.json: unsupported: quantization.mode is "mxfp4", want affine`},
		{"MLX's NVFP4", func(c *checkpointtest.Checkpoint) {
			c.Config["quantization"] = map[string]any{"bits": 4, "group_size": 16, "mode": "nvfp4"}
		}, `/config.json: unsupported: quantization.mode is "nvfp4", want affine`},
		{"wrong sampling", func(c *checkpointtest.Checkpoint) {
			c.Files = map[string][]byte{"generation_config.json": []byte(`{"top_k":"all"}`)}
		}, `/generation_config.json: top_k is "all", want a whole number from 0 to 2147483647`},
		{"integers", func(c *checkpointtest.Checkpoint) { c.Tensors[0].DType = safetensors.I16 }, ": unsupported: tensor a.weight is I16; weights are read as F32, F16, BF16 and F64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := small()
			tc.edit(c)
			dir := c.Write(t)
			_, err := Run(context.Background(), Options{Dir: dir, OutDir: filepath.Join(t.TempDir(), "out")})
			if err == nil || err.Error() != dir+tc.want {
				t.Errorf("error %v\nwant  %s%s", err, dir, tc.want)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"inkling-tiny": true, "a b": true, "Ünï": true, ".hidden": true,
		"": false, ".": false, "..": false, "a/b": false, `a\b`: false, "a\nb": false, strings.Repeat("x", 201): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTensorsErrorCutsLists(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint(i))
	}
	err := &TensorsError{Dir: "d", Unknown: names, Missing: []string{"m"}}
	const want = "d: missing tensor m; 20 unknown tensors: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more"
	if err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
}

// TestSpace asks for more than any disk has.
func TestSpace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	var space *SpaceError
	if err := checkSpace(dir, 1<<62, false); !errors.As(err, &space) || space.Need != 1<<62 || space.Free <= 0 {
		t.Errorf("error %v, want a SpaceError", err)
	}
	if err := errors.Join(checkSpace(dir, 1, false), checkSpace(dir, 1<<62, true)); err != nil {
		t.Error(err)
	}
}
