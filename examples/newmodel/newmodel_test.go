package newmodel_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/examples/newmodel/convert/bigram"
	_ "github.com/inkling-go/inkling/examples/newmodel/models/bigram"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

const (
	embd, ff, blocks = 32, 64, 2
	vocab            = 1280 // of the tokenizer in testdata
	eps              = 1e-5
)

// TestBigram converts a checkpoint, runs it, and compares logits with the formula
// computed in float64.
func TestBigram(t *testing.T) {
	dir := t.TempDir()
	c := writeCheckpoint(t, dir)
	report, err := convert.Run(context.Background(), convert.Options{Dir: dir, OutDir: t.TempDir(), Name: "toy", OutType: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := models.OpenFile(report.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m, err := models.Open(f, models.Params{Backend: be})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	cache, err := m.NewCache(2, 16, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()

	logits := make([]float32, 3*vocab)
	err = m.Forward(cache, []models.Batch{
		{Seq: 0, Tokens: []int32{5, 7}, Outputs: []int32{0, 1}},
		{Seq: 1, Tokens: []int32{1279, 0}, Outputs: []int32{0}},
	}, models.Outputs{Logits: logits})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []int{5, 7, 1279} {
		testutil.Close(t, "logits", logits[i*vocab:(i+1)*vocab], c.logits(id), testutil.Tol{Rel: 1e-4, Abs: 1e-5})
	}
	if got := cache.Pos(0); got != 2 {
		t.Errorf("the cache holds %d rows, want 2", got)
	}
}

// checkpoint is tensors by name, row-major.
type checkpoint map[string][]float32

// logits is the formula: y = x + down(silu(gate x')·up x') with x' = norm(x), layer by
// layer, and the unembedding of the normed result.
func (c checkpoint) logits(id int) []float32 {
	x := make([]float64, embd)
	for i := range x {
		x[i] = float64(c["model.embed_tokens.weight"][id*embd+i])
	}
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		both := matVec(c[layer+"mlp.gate_up_proj.weight"], rms(x, c[layer+"norm.weight"]))
		h := make([]float64, ff)
		for i := range h {
			h[i] = both[i] / (1 + math.Exp(-both[i])) * both[ff+i]
		}
		for i, v := range matVec(c[layer+"mlp.down_proj.weight"], h) {
			x[i] += v
		}
	}
	out := make([]float32, vocab)
	for i, v := range matVec(c["lm_head.weight"], rms(x, c["model.norm.weight"])) {
		out[i] = float32(v)
	}
	return out
}

func rms(x []float64, w []float32) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+eps) * float64(w[i])
	}
	return y
}

func matVec(a []float32, x []float64) []float64 {
	y := make([]float64, len(a)/len(x))
	for i := range y {
		for j, v := range x {
			y[i] += float64(a[i*len(x)+j]) * v
		}
	}
	return y
}

// writeCheckpoint writes a checkpoint of random weights and returns them.
func writeCheckpoint(t *testing.T, dir string) checkpoint {
	t.Helper()
	shapes := map[string][]int{"model.embed_tokens.weight": {vocab, embd}, "model.norm.weight": {embd}, "lm_head.weight": {vocab, embd}}
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		shapes[layer+"norm.weight"] = []int{embd}
		shapes[layer+"mlp.gate_up_proj.weight"] = []int{2 * ff, embd}
		shapes[layer+"mlp.down_proj.weight"] = []int{embd, ff}
	}
	c, header, data := checkpoint{}, map[string]any{}, new(bytes.Buffer)
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		shape, n := shapes[name], 1
		for _, d := range shape {
			n *= d
		}
		begin := data.Len()
		for range n {
			v := float32(r.NormFloat64()) / 4
			c[name] = append(c[name], v)
			write(t, data, v)
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{begin, data.Len()}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := new(bytes.Buffer)
	write(t, file, uint64(len(head)))
	file.Write(head)
	file.Write(data.Bytes())

	config := `{"model_type": "bigram", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
		"vocab_size": 1280, "max_position_embeddings": 64, "rms_norm_eps": 1e-5}`
	tokenizer, err := os.ReadFile(testutil.Testdata(t, "inkling-tiny", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": []byte(config), "model.safetensors": file.Bytes(), "tokenizer.json": tokenizer} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func write(t *testing.T, to *bytes.Buffer, v any) {
	t.Helper()
	if err := binary.Write(to, binary.LittleEndian, v); err != nil {
		t.Fatal(err)
	}
}
