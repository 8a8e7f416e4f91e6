// Package checkpointtest makes checkpoints for tests: it loads one that works,
// lets the test change it, and writes it to a folder.
package checkpointtest

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// Checkpoint is a checkpoint in memory.
type Checkpoint struct {
	Config  map[string]any    // config.json
	Files   map[string][]byte // the other files, by name, without the weights
	Tensors []*Tensor
}

// Tensor is a tensor of a Checkpoint. Shape is row-major, Data little-endian.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64
	Data  []byte
}

// Load reads the checkpoint in dir.
func Load(t testing.TB, dir string) *Checkpoint {
	t.Helper()
	c := &Checkpoint{Files: make(map[string][]byte)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".safetensors") {
			c.Files[e.Name()] = read(t, filepath.Join(dir, e.Name()))
		}
	}
	if err := json.Unmarshal(c.Files["config.json"], &c.Config); err != nil {
		t.Fatal(err)
	}
	delete(c.Files, "config.json")
	st, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range st.Names() {
		x, _ := st.Tensor(name)
		c.Tensors = append(c.Tensors, &Tensor{x.Name, x.DType, x.Shape, slices.Clone(st.Bytes(x))})
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Get returns the tensor called name.
func (c *Checkpoint) Get(t testing.TB, name string) *Tensor {
	t.Helper()
	for _, x := range c.Tensors {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("no tensor %s", name)
	return nil
}

// Remove takes out the tensors whose names have one of the prefixes.
func (c *Checkpoint) Remove(prefixes ...string) {
	c.Tensors = slices.DeleteFunc(c.Tensors, func(x *Tensor) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(x.Name, p) })
	})
}

// Add adds a BF16 tensor of zeros.
func (c *Checkpoint) Add(name string, shape ...int64) *Tensor {
	n := int64(2)
	for _, d := range shape {
		n *= d
	}
	x := &Tensor{name, safetensors.BF16, shape, make([]byte, n)}
	c.Tensors = append(c.Tensors, x)
	return x
}

// Section returns a sub-config.
func (c *Checkpoint) Section(name string) map[string]any { return c.Config[name].(map[string]any) }

// Write writes the checkpoint as one shard to a new folder and returns its path.
func (c *Checkpoint) Write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	config, err := json.MarshalIndent(c.Config, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config.json"), config)
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		write(t, filepath.Join(dir, name), c.Files[name])
	}
	write(t, filepath.Join(dir, "model.safetensors"), c.weights(t))
	return dir
}

// weights returns the safetensors file.
func (c *Checkpoint) weights(t testing.TB) []byte {
	type entry struct {
		DType   safetensors.DType `json:"dtype"`
		Shape   []int64           `json:"shape"`
		Offsets [2]int            `json:"data_offsets"`
	}
	header := make(map[string]entry)
	size := 0
	for _, x := range c.Tensors {
		header[x.Name] = entry{x.DType, x.Shape, [2]int{size, size + len(x.Data)}}
		size += len(x.Data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(text)+size), uint64(len(text)))
	file = append(file, text...)
	for _, x := range c.Tensors {
		file = append(file, x.Data...)
	}
	return file
}

// BF16 encodes values, each of which must be exact in BF16.
func BF16(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
	}
	return b
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
