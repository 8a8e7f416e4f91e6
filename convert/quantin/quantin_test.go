package quantin

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// stored is a tensor of a checkpoint for tests.
type stored struct {
	name  string
	dtype string
	shape []int64
	data  []byte
}

// open writes tensors to a file and groups them.
func open(t *testing.T, c Config, tensors ...stored) (*Set, error) {
	t.Helper()
	header, off := make(map[string]any), 0
	var data []byte
	for _, x := range tensors {
		header[x.name] = map[string]any{"dtype": x.dtype, "shape": x.shape, "data_offsets": []int{off, off + len(x.data)}}
		off += len(x.data)
		data = append(data, x.data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(file, data...), 0o666); err != nil {
		t.Fatal(err)
	}
	ckpt, err := safetensors.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	return Open(ckpt, c)
}

func f32(v ...float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func bf16(v ...float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
	}
	return b
}

func words(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// zeros is first and then zeros, n bytes in all.
func zeros(n int, first ...byte) []byte { return append(first, make([]byte, n-len(first))...) }

// TestKnownBlocks has one block of each convention, with weights worked out by hand
// from the definition. The first weights of the first row are compared.
func TestKnownBlocks(t *testing.T) {
	// E4M3: 0x38 = 1 (exponent 7, mantissa 0), 0x40 = 2, 0x30 = 0.5, 0x3c = 1.5, 0xb8 = -1.
	// E2M1 nibbles: 1 = 0.5, 2 = 1, 7 = 6, 9 = -0.5, f = -6.
	for _, tc := range []struct {
		name    string
		c       Config
		tensors []stored
		weights string
		format  Format
		row     int64
		want    []float32
	}{
		{
			name: "ModelOpt NVFP4: low nibble first, factors multiply, one per expert",
			tensors: []stored{
				{"x.w13_weight", "U8", []int64{2, 1, 8}, append(zeros(8, 0x21), zeros(8, 0xf7, 0x91)...)},
				{"x.w13_weight.scale", "F8_E4M3", []int64{2, 1, 1}, []byte{0x38, 0x40}},
				{"x.w13_weight.scale2", "F32", []int64{2}, f32(1, 0.25)},
				{"x.w13_weight.input_amax", "F32", []int64{1}, f32(7)},
				{"x.w13_weight.original_shape", "I64", []int64{1}, make([]byte, 8)},
			},
			weights: "x.w13_weight", format: NVFP4, row: 1,
			want: []float32{6 * 2 * 0.25, -6 * 2 * 0.25, 0.5 * 2 * 0.25, -0.5 * 2 * 0.25},
		},
		{
			name: "ModelOpt NVFP4 of a linear layer, one factor",
			tensors: []stored{
				{"x.weight", "U8", []int64{1, 8}, zeros(8, 0x72)},
				{"x.weight_scale", "F8_E4M3", []int64{1, 1}, []byte{0x30}},
				{"x.weight_scale_2", "F32", []int64{}, f32(4)},
				{"x.input_scale", "F32", []int64{}, f32(1)},
			},
			weights: "x.weight", format: NVFP4,
			want: []float32{1 * 0.5 * 4, 6 * 0.5 * 4, 0},
		},
		{
			name: "compressed-tensors NVFP4: the global scale divides",
			tensors: []stored{
				{"x.weight_packed", "U8", []int64{1, 8}, zeros(8, 0x72)},
				{"x.weight_scale", "F8_E4M3", []int64{1, 1}, []byte{0x3c}},
				{"x.weight_global_scale", "F32", []int64{1}, f32(8)},
				{"x.input_global_scale", "F32", []int64{1}, f32(1)},
			},
			weights: "x.weight", format: NVFP4,
			want: []float32{1 * 1.5 / 8, 6 * 1.5 / 8, 0},
		},
		{
			name: "compressed-tensors NVFP4 of stacked experts",
			tensors: []stored{
				{"x.w2_weight.weight_packed", "U8", []int64{2, 1, 8}, append(zeros(8), zeros(8, 0x01)...)},
				{"x.w2_weight.weight_scale", "F8_E4M3", []int64{2, 1, 1}, []byte{0x38, 0x38}},
				{"x.w2_weight.weight_global_scale", "F32", []int64{2, 1, 1}, f32(1, 2)},
			},
			weights: "x.w2_weight", format: NVFP4, row: 1,
			want: []float32{0.25, 0},
		},
		{
			name: "FP8 in blocks of the config, the last ones cut",
			c:    Config{Block: [2]int64{2, 2}},
			tensors: []stored{
				{"x.weight", "F8_E4M3", []int64{3, 3}, []byte{0x38, 0x38, 0x38, 0x38, 0x38, 0x38, 0x38, 0xb8, 0x40}},
				{"x.weight_scale_inv", "F32", []int64{2, 2}, f32(2, 3, 5, 7)},
			},
			weights: "x.weight", format: FP8, row: 2,
			want: []float32{5, -5, 14},
		},
		{
			name: "FP8 with a scale per row",
			tensors: []stored{
				{"x.weight", "F8_E4M3", []int64{2, 2}, []byte{0x38, 0x38, 0x40, 0x30}},
				{"x.weight_scale", "BF16", []int64{2, 1}, bf16(1, 0.5)},
			},
			weights: "x.weight", format: FP8, row: 1,
			want: []float32{1, 0.25},
		},
		{
			name: "MLX 4 bit: low bits first, scale times code plus bias",
			c:    Config{Affine: Affined{4, 32}},
			tensors: []stored{
				{"x.weight", "U32", []int64{1, 4}, words(0x0000_00f1, 0, 0, 0xf000_0000)},
				{"x.scales", "BF16", []int64{1, 1}, bf16(0.5)},
				{"x.biases", "BF16", []int64{1, 1}, bf16(-4)},
			},
			weights: "x.weight", format: Affine,
			want: []float32{0.5 - 4, 7.5 - 4, -4, -4},
		},
		{
			name: "MLX 8 bit by an override of the module",
			c:    Config{Affine: Affined{4, 64}, Paths: map[string]Affined{"x": {8, 32}}},
			tensors: []stored{
				{"x.weight", "U32", []int64{1, 8}, zeros(32, 1, 255)},
				{"x.scales", "F16", []int64{1, 1}, []byte{0x00, 0x3c}}, // 1
				{"x.biases", "F16", []int64{1, 1}, []byte{0x00, 0xc0}}, // -2
			},
			weights: "x.weight", format: Affine,
			want: []float32{-1, 253, -2},
		},
		{
			name: "INT4: 8 is zero, the lowest nibble of a word first",
			tensors: []stored{
				{"x.weight_packed", "I32", []int64{1, 4}, words(0x8888_80f9, 0x8888_8888, 0x8888_8888, 0x8888_8888)},
				{"x.weight_scale", "BF16", []int64{1, 1}, bf16(0.25)},
				{"x.weight_shape", "I32", []int64{2}, words(1, 32)},
			},
			weights: "x.weight", format: INT4,
			want: []float32{0.25, 7 * 0.25, -8 * 0.25, 0, 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := open(t, tc.c, tc.tensors...)
			if err != nil {
				t.Fatal(err)
			}
			if names := set.Names(); !cmp.Equal(names, []string{tc.weights}) && !strings.Contains(names[0], tc.weights) {
				t.Errorf("weights %v, want %s", names, tc.weights)
			}
			w, ok := set.Find(tc.weights)
			if !ok {
				t.Fatalf("no weights %s in %v", tc.weights, set.Names())
			}
			if w.Format != tc.format {
				t.Errorf("format %s, want %s", w.Format, tc.format)
			}
			got := make([]float32, w.Cols())
			w.Decode(got, tc.row)
			if diff := cmp.Diff(tc.want, got[:len(tc.want)]); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepack compares what GGUF's own decoder makes of repacked rows with the weights.
func TestRepack(t *testing.T) {
	nibbles := make([]byte, 64)
	for i := range nibbles {
		nibbles[i] = byte(i*37 + 11)
	}
	for _, tc := range []struct {
		name    string
		c       Config
		to      gguf.Type
		factor  float32 // that GGUF has elsewhere
		tensors []stored
	}{
		{"INT4 to Q4_0", Config{}, gguf.Q4_0, 1, []stored{
			{"x.weight_packed", "I32", []int64{1, 8}, nibbles[:32]},
			{"x.weight_scale", "BF16", []int64{1, 2}, bf16(0.5, -0.01171875)},
		}},
		{"MLX 4 bit to Q4_1", Config{Affine: Affined{4, 64}}, gguf.Q4_1, 1, []stored{
			{"x.weight", "U32", []int64{1, 16}, nibbles},
			{"x.scales", "BF16", []int64{1, 2}, bf16(0.5, 0.25)},
			{"x.biases", "BF16", []int64{1, 2}, bf16(-2, -1.5)},
		}},
		{"NVFP4", Config{}, gguf.NVFP4, 0.125, []stored{
			{"x.weight", "U8", []int64{1, 64}, nibbles},
			{"x.weight_scale", "F8_E4M3", []int64{1, 8}, []byte{0x38, 0x40, 0x01, 0x7e, 0x30, 0x3c, 0x00, 0x55}},
			{"x.weight_scale_2", "F32", []int64{1}, f32(0.125)},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := open(t, tc.c, tc.tensors...)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := set.Find("x.weight")
			if to, ok := w.Packs(); !ok || to != tc.to {
				t.Fatalf("packs %v, %v; want %v", to, ok, tc.to)
			}
			size, err := tc.to.RowBytes(w.Cols())
			if err != nil {
				t.Fatal(err)
			}
			row := make([]byte, size)
			if !w.Repack(row, 0) {
				t.Fatal("not repacked")
			}
			want := make([]float32, w.Cols())
			w.Decode(want, 0)
			if diff := cmp.Diff(want, decoded(t, tc.to, row, int(w.Cols()), tc.factor)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

// decoded reads a row of GGUF blocks; of Q4_1 by its definition: d, m, then codes.
func decoded(t *testing.T, from gguf.Type, row []byte, n int, factor float32) []float32 {
	t.Helper()
	got := make([]float32, n)
	if from != gguf.Q4_1 {
		if err := gguf.DecodeRows(from, got, row); err != nil {
			t.Fatal(err)
		}
	} else {
		for b := range n / 32 {
			var dm [2]float32
			block := row[20*b:][:20]
			if err := gguf.DecodeRows(gguf.F16, dm[:], block[:4]); err != nil {
				t.Fatal(err)
			}
			for i := range 16 {
				got[32*b+i] = float32(block[4+i]&15)*dm[0] + dm[1]
				got[32*b+16+i] = float32(block[4+i]>>4)*dm[0] + dm[1]
			}
		}
	}
	for i := range got {
		got[i] *= factor
	}
	return got
}

// TestRepackScales has scales that the other type cannot hold.
func TestRepackScales(t *testing.T) {
	for _, tc := range []struct {
		scale float32
		fits  bool
	}{
		{0x1p-17, true},
		{0x1.fep-17, true},
		{0x1.02p-18, false}, // one bit more than F16 has there
		{65280, true},
		{65536, false},
		{-0.5, true},
		{0, true},
		{float32(math.Inf(1)), false},
	} {
		set, err := open(t, Config{},
			stored{"x.weight_packed", "I32", []int64{1, 4}, make([]byte, 16)},
			stored{"x.weight_scale", "BF16", []int64{1, 1}, bf16(tc.scale)})
		if err != nil {
			t.Fatal(err)
		}
		w, _ := set.Find("x.weight")
		if got := w.Repack(make([]byte, 18), 0); got != tc.fits {
			t.Errorf("scale %v: repacked %v, want %v", tc.scale, got, tc.fits)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	codes := stored{"x.weight_packed", "U8", []int64{1, 8}, make([]byte, 8)}
	scale := stored{"x.weight_scale", "F8_E4M3", []int64{1, 1}, []byte{0x38}}
	global := stored{"x.weight_global_scale", "F32", []int64{1}, f32(1)}
	mlx := stored{"x.weight", "U32", []int64{1, 4}, make([]byte, 16)}
	int4 := stored{"x.weight_packed", "I32", []int64{1, 4}, make([]byte, 16)}
	fp8 := stored{"x.weight", "F8_E4M3", []int64{4, 4}, make([]byte, 16)}
	for _, tc := range []struct {
		name    string
		c       Config
		tensors []stored
		want    string
	}{
		{"no scale", Config{}, []stored{codes, global}, "tensor x.weight_packed: no tensor x.weight_scale"},
		{"no global scale", Config{}, []stored{codes, scale}, "tensor x.weight_packed: no tensor x.weight_global_scale"},
		{"global scale of 0", Config{}, []stored{codes, scale, {"x.weight_global_scale", "F32", []int64{1}, f32(0)}}, "tensor x.weight_global_scale: scale 0 is 0, want a positive number"},
		{"scales for other blocks", Config{}, []stored{codes, {"x.weight_scale", "F8_E4M3", []int64{1, 2}, make([]byte, 2)}, global}, "tensor x.weight_scale: is F8_E4M3 [1 2], want F8_E4M3 [1 1]"},
		{"ModelOpt without scale2", Config{}, []stored{{"w", "U8", []int64{1, 8}, make([]byte, 8)}, {"w.scale", "F8_E4M3", []int64{1, 1}, []byte{1}}}, "tensor w: no tensor w.scale2 or w_scale_2"},
		{"FP8 of unknown blocks", Config{}, []stored{fp8, {"x.weight_scale_inv", "F32", []int64{2, 2}, f32(1, 1, 1, 1)}}, "tensor x.weight: scales [2 2] for weights [4 4], and config.json has no weight_block_size"},
		{"FP8 of other blocks", Config{Block: [2]int64{4, 2}}, []stored{fp8, {"x.weight_scale_inv", "F32", []int64{3, 2}, f32(1, 1, 1, 1, 1, 1)}}, "tensor x.weight_scale_inv: shape [3 2], want 2 scales for blocks of 4 by 2"},
		{"FP8 alone", Config{}, []stored{fp8}, "tensor x.weight: is F8_E4M3 without a tensor x.weight_scale_inv or x.weight_scale"},
		{"MLX without biases", Config{}, []stored{mlx, {"x.scales", "BF16", []int64{1, 1}, bf16(1)}}, "tensor x.weight: no tensor x.biases: MLX's affine mode is the one that is read"},
		{"MLX of 3 bits", Config{Affine: Affined{3, 32}}, []stored{mlx, {"x.scales", "BF16", []int64{1, 1}, bf16(1)}, {"x.biases", "BF16", []int64{1, 1}, bf16(1)}}, "tensor x.weight: codes of 3 bits, want 4 or 8"},
		{"MLX with other groups", Config{Affine: Affined{4, 64}}, []stored{mlx, {"x.scales", "BF16", []int64{1, 1}, bf16(1)}, {"x.biases", "BF16", []int64{1, 1}, bf16(1)}}, "tensor x.scales: shape [1 1], want [1 0] for groups of 64 codes of 4 bits"},
		{"INT4 with zero points", Config{}, []stored{int4, {"x.weight_zero_point", "I32", []int64{1}, words(0)}}, "tensor x.weight_packed: has x.weight_zero_point, which is not supported"},
		{"INT4 of another shape", Config{}, []stored{int4, {"x.weight_scale", "BF16", []int64{1, 1}, bf16(1)}, {"x.weight_shape", "I32", []int64{2}, words(1, 30)}}, "tensor x.weight_shape: is [1 30], want [1 32]"},
		{"twice", Config{}, []stored{codes, scale, global, {"x.weight", "BF16", []int64{1}, bf16(1)}}, "tensor x.weight: weights x.weight are also stored as x.weight_packed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := open(t, tc.c, tc.tensors...); err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

// TestDraw checks the moments of drawn weights and that they repeat.
func TestDraw(t *testing.T) {
	w := Draw("x", []int64{128, 1000}, 7, 0.02, 0)
	x := make([]float32, 128*1000)
	w.Decode(x, 0)
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(x))
	if mean, dev := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 2e-4 || math.Abs(dev-0.02) > 2e-4 {
		t.Errorf("mean %v and deviation %v, want 0 and 0.02", mean, dev)
	}
	p := int(w.Period())
	if !cmp.Equal(x[:1000], x[p*1000:(p+1)*1000]) || cmp.Equal(x[:1000], x[1000:2000]) {
		t.Error("rows do not repeat after the period, or before it")
	}
	other := make([]float32, 1000)
	Draw("x", []int64{128, 1000}, 8, 0.02, 0).Decode(other, 0)
	if cmp.Equal(x[:1000], other) {
		t.Error("another seed gives the same weights")
	}
}

// FuzzOpen groups tensors of any type and shape under names that mean something.
func FuzzOpen(f *testing.F) {
	f.Add(byte(0), byte(1), byte(2), int64(1), int64(8), int64(4), int64(64))
	f.Add(byte(2), byte(0), byte(0), int64(2), int64(16), int64(8), int64(32))
	f.Fuzz(func(t *testing.T, a, b, c byte, rows, cols, bits, group int64) {
		names := []string{"x.weight", "x.weight_packed", "x.weight.scale", "x.weight.scale2", "x.weight_scale", "x.weight_global_scale", "x.scales", "x.biases", "x.weight_shape", "x.weight_scale_inv"}
		types := []string{"U8", "U32", "I32", "F8_E4M3", "BF16", "F32"}
		rows, cols = rows&7, cols&63
		var list []stored
		seen := make(map[string]bool)
		for i, v := range []byte{a, b, c} {
			name, d := names[int(v)%len(names)], types[int(v/16)%len(types)]
			if seen[name] {
				return
			}
			seen[name] = true
			shape := []int64{rows, cols}
			if i > 0 {
				shape = []int64{rows, (cols + 15) / 16}
			}
			n := shape[0] * shape[1] * int64(safetensors.DType(d).Bits()/8)
			list = append(list, stored{name, d, shape, make([]byte, n)})
		}
		set, err := open(t, Config{Block: [2]int64{group, bits}, Affine: Affined{bits, group}}, list...)
		if err != nil {
			return
		}
		for _, name := range set.Names() {
			if w, _ := set.Find(name); w.Format != Plain && w.Rows() > 0 {
				w.Decode(make([]float32, w.Cols()), w.Rows()-1)
			}
		}
	})
}
