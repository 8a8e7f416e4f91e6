package safetensors

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goldens = "../../testdata/inkling-tiny-random/goldens"

// writeDir writes files by name into a new folder.
func writeDir(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *Checkpoint {
	t.Helper()
	c, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestOpenPublished opens a checkpoint in the layout of the published ones: three
// shards, a fourth called mtp.safetensors, an index.
func TestOpenPublished(t *testing.T) {
	const dir = "../../testdata/inkling-tiny"
	c := open(t, dir)
	want := []string{
		"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
		"model-00003-of-00003.safetensors", "mtp.safetensors",
	}
	if d := cmp.Diff(want, c.Shards()); d != "" {
		t.Errorf("shards (-want +got):\n%s", d)
	}

	var index struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		}
		WeightMap map[string]string `json:"weight_map"`
	}
	readJSON(t, filepath.Join(dir, IndexName), &index)
	var size int64
	at := Tensor{}
	for _, name := range c.Names() {
		ti, ok := c.Tensor(name)
		if !ok || ti.Name != name || ti.Shard != index.WeightMap[name] {
			t.Errorf("tensor %q: %+v, want shard %q", name, ti, index.WeightMap[name])
		}
		if ti.Shard < at.Shard || ti.Shard == at.Shard && ti.Offset < at.Offset {
			t.Errorf("tensor %q comes after %q, which is later in the files", name, at.Name)
		}
		at = ti
		if got := int64(len(c.Bytes(ti))); got != ti.Size {
			t.Errorf("tensor %q: %d bytes, want %d", name, got, ti.Size)
		}
		size += ti.Size
	}
	if len(c.Names()) != len(index.WeightMap) {
		t.Errorf("%d tensors, the index has %d", len(c.Names()), len(index.WeightMap))
	}
	if size != index.Metadata.TotalSize {
		t.Errorf("%d bytes, the index says %d", size, index.Metadata.TotalSize)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpenGoldens compares each golden file of the reference implementation with
// the list of arrays next to it.
func TestOpenGoldens(t *testing.T) {
	dtypes := map[string]DType{"float32": F32, "int32": I32, "uint8": U8, "int64": I64, "bool": Bool}
	paths, err := filepath.Glob(filepath.Join(goldens, "*.safetensors"))
	if err != nil || len(paths) < 9 {
		t.Fatalf("%d golden files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var list struct {
				Arrays []struct {
					Name, DType string
					Shape       []int64
				}
			}
			readJSON(t, strings.TrimSuffix(path, ".safetensors")+".json", &list)
			c, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if len(list.Arrays) == 0 || len(c.Names()) != len(list.Arrays) {
				t.Errorf("%d tensors, want %d", len(c.Names()), len(list.Arrays))
			}
			for _, a := range list.Arrays {
				ti, ok := c.Tensor(a.Name)
				if !ok || ti.DType != dtypes[a.DType] || !slices.Equal(ti.Shape, a.Shape) {
					t.Errorf("%s is %s %v, want %s %v", a.Name, ti.DType, ti.Shape, a.DType, a.Shape)
				}
			}
		})
	}
}

// TestFloatsOfGolden compares a statistic of a tensor with the one that was
// measured when the tensor was made.
func TestFloatsOfGolden(t *testing.T) {
	var measured struct {
		Std float64 `json:"text_prefill_logits_std"`
	}
	readJSON(t, filepath.Join(goldens, "measured.json"), &measured)
	c, err := OpenFile(filepath.Join(goldens, "text_prefill.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	logits, _ := c.Tensor("logits")
	x, err := c.Floats(logits)
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	got := math.Sqrt(squares / float64(len(x)-1))
	if len(x) != 100*1042 || math.Abs(got-measured.Std) > 1e-5 {
		t.Errorf("standard deviation of %d logits is %.6f, want %.6f", len(x), got, measured.Std)
	}
}

// a, b: shards of one tensor each, and the index that fits them.
var (
	shardA = file(object(entry("a", "U8", "[4]", 0, 4)), 4)
	shardB = file(object(entry("b", "U8", "[2]", 0, 2)), 2)
)

func indexOf(pairs ...string) []byte {
	var fields []string
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, `"`+pairs[i]+`":"`+pairs[i+1]+`"`)
	}
	return []byte(`{"metadata":{"total_size":6,"x":[1,{}]},"weight_map":{` + strings.Join(fields, ",") + `},"more":null}`)
}

func TestOpenDir(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string][]byte
		shards []string
		names  []string
	}{
		{
			name: "index, in another order than the shards; files that it does not list",
			files: map[string][]byte{
				IndexName: indexOf("b", "x-2.safetensors", "a", "x-1.safetensors"), "x-1.safetensors": shardA,
				"x-2.safetensors": shardB, "model.safetensors": shardA, "broken.safetensors": []byte("no"),
			},
			shards: []string{"x-1.safetensors", "x-2.safetensors"},
			names:  []string{"a", "b"},
		},
		{
			name:   "model.safetensors, other files are left alone",
			files:  map[string][]byte{"model.safetensors": shardB, "adapter.safetensors": shardA},
			shards: []string{"model.safetensors"},
			names:  []string{"b"},
		},
		{
			name:   "any files",
			files:  map[string][]byte{"2.safetensors": shardA, "1.safetensors": shardB, "readme.md": nil},
			shards: []string{"1.safetensors", "2.safetensors"},
			names:  []string{"b", "a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, writeDir(t, tt.files))
			if d := cmp.Diff(tt.shards, c.Shards()); d != "" {
				t.Errorf("shards (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.names, c.Names()); d != "" {
				t.Errorf("names (-want +got):\n%s", d)
			}
		})
	}
}

func TestOpenDirRefuses(t *testing.T) {
	tests := []struct {
		name  string
		files map[string][]byte
		want  []string
		is    error // nil: a FormatError
	}{
		{
			name:  "nothing there",
			files: map[string][]byte{"config.json": []byte("{}")},
			want:  []string{"no .safetensors file"},
			is:    fs.ErrNotExist,
		},
		{
			name:  "name of the index that its shard lacks",
			files: map[string][]byte{IndexName: indexOf("a", "1.safetensors", "no", "1.safetensors"), "1.safetensors": shardA},
			want:  []string{IndexName, `tensor "no" is not in its shard 1.safetensors`},
		},
		{
			name: "name of the index in another shard",
			files: map[string][]byte{
				IndexName: indexOf("a", "2.safetensors", "b", "1.safetensors"), "1.safetensors": shardA, "2.safetensors": shardB,
			},
			want: []string{`tensor "a" is not in its shard 2.safetensors`},
		},
		{
			name: "name of a shard that the index lacks",
			files: map[string][]byte{
				IndexName:       indexOf("a", "1.safetensors"),
				"1.safetensors": file(object(entry("a", "U8", "[1]", 0, 1), entry("extra", "U8", "[1]", 1, 2)), 2),
			},
			want: []string{IndexName, `tensor "extra" of shard 1.safetensors is not in the index`},
		},
		{
			name: "name in two shards of an index",
			files: map[string][]byte{
				IndexName: indexOf("a", "1.safetensors", "b", "2.safetensors"), "1.safetensors": shardA, "2.safetensors": shardA,
			},
			want: []string{"2.safetensors", `tensor "a" is also in 1.safetensors`},
		},
		{
			name:  "name in two files without an index",
			files: map[string][]byte{"1.safetensors": shardA, "2.safetensors": shardA},
			want:  []string{"2.safetensors", `tensor "a" is also in 1.safetensors`},
		},
		{
			name:  "truncated shard",
			files: map[string][]byte{IndexName: indexOf("a", "1.safetensors"), "1.safetensors": shardA[:len(shardA)-1]},
			want:  []string{"1.safetensors", "has 4 bytes, the file has 3 more"},
		},
		{
			name:  "empty shard",
			files: map[string][]byte{IndexName: indexOf("a", "1.safetensors"), "1.safetensors": nil},
			want:  []string{"1.safetensors", "0 bytes"},
		},
		{
			name:  "broken index beside a model",
			files: map[string][]byte{IndexName: []byte("{"), "model.safetensors": shardA},
			want:  []string{IndexName, "json ends early"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OpenDir(writeDir(t, tt.files))
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not hold %q", err, want)
				}
			}
			var format *FormatError
			if tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil && !errors.As(err, &format) {
				t.Errorf("error %q is of the wrong kind", err)
			}
		})
	}
}

func TestMissingShards(t *testing.T) {
	dir := writeDir(t, map[string][]byte{
		IndexName: indexOf("a", "1.safetensors", "b", "2.safetensors", "c", "2.safetensors", "d", "3.safetensors"),

		"1.safetensors": shardA,
	})
	_, err := OpenDir(dir)
	var missing *MissingShardError
	if !errors.As(err, &missing) {
		t.Fatalf("error %v, want a MissingShardError", err)
	}
	if d := cmp.Diff(&MissingShardError{"2.safetensors", []string{"b", "c"}}, missing); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, want := range []string{dir, "2.safetensors", "3.safetensors"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}

	optional := func(names string) func(string) bool {
		return func(name string) bool { return strings.Contains(names, name) }
	}
	if _, _, err := OpenDirOptional(dir, optional("bd")); !errors.As(err, &missing) || missing.Shard != "2.safetensors" {
		t.Errorf("error %v, want 2.safetensors missing: c is required", err)
	}
	c, absent, err := OpenDirOptional(dir, optional("bcd"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := []*MissingShardError{{"2.safetensors", []string{"b", "c"}}, {"3.safetensors", []string{"d"}}}
	if d := cmp.Diff(want, absent); d != "" {
		t.Errorf("absent (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"a"}, c.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestBytesAndClose(t *testing.T) {
	dir := writeDir(t, map[string][]byte{"model.safetensors": file(object(
		entry("a", "U8", "[4]", 0, 4), entry("none", "U8", "[0]", 4, 4), entry("b", "U8", "[2]", 4, 6)), 6)})
	c, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.Tensor("b")
	for range 2 {
		if got := c.Bytes(b); string(got) != "\x04\x05" || cap(got) != 2 {
			t.Errorf("b holds % x, capacity %d", got, cap(got))
		}
		if got, err := io.ReadAll(c.Reader(b)); err != nil || string(got) != "\x04\x05" {
			t.Errorf("b reads as % x (%v)", got, err)
		}
		c.Prefetch(b)
		c.Release(b) // reads as before
	}
	none, ok := c.Tensor("none")
	if got := c.Bytes(none); !ok || got == nil || len(got) != 0 {
		t.Errorf("empty tensor: %v, %v", got, ok)
	}
	if _, ok := c.Tensor("c"); ok {
		t.Error("a tensor that is not there was found")
	}
	for name, ti := range map[string]Tensor{
		"shard":        {Shard: "other.safetensors", Size: 1},
		"offset":       {Shard: b.Shard, Offset: 1 << 40, Size: 1},
		"offset < 0":   {Shard: b.Shard, Offset: -1, Size: 1},
		"size":         {Shard: b.Shard, Offset: 1, Size: math.MaxInt64},
		"size below 0": {Shard: b.Shard, Offset: 1, Size: -1},
		"by a byte":    {Shard: b.Shard, Offset: b.Offset, Size: b.Size + 1},
	} {
		if got := c.Bytes(ti); got != nil {
			t.Errorf("%s: %d bytes, want none", name, len(got))
		}
		if r := c.Reader(ti); r != nil {
			t.Errorf("%s: a reader of %d bytes, want none", name, r.Size())
		}
		c.Prefetch(ti)
		c.Release(ti)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Bytes(b); got != nil {
		t.Errorf("%d bytes after Close", len(got))
	}
	if r := c.Reader(b); r != nil {
		t.Error("a reader after Close")
	}
	if _, err := c.Ints(b); err == nil {
		t.Error("Ints after Close")
	}
}
