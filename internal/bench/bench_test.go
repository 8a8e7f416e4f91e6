package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
	_ "github.com/inkling-go/inkling/models/inkling"
	_ "github.com/inkling-go/inkling/models/kimik25"
)

// madeUp makes up a model of the shape of a test checkpoint.
func madeUp(t *testing.T, outType convert.OutType, config ...string) *Subject {
	t.Helper()
	return madeUpAhead(t, outType, 0, config...)
}

// madeUpAhead has so many layers for multi-token prediction as well, if the shape has any.
func madeUpAhead(t *testing.T, outType convert.OutType, depths int, config ...string) *Subject {
	t.Helper()
	paths := headers(t, outType, config...)
	mtp := ""
	if depths > 0 {
		mtp = paths[convert.MTP]
	}
	return opened(t, paths[convert.Text], Loading{MakeUp: true, Seed: 7, MTP: mtp, Depths: depths})
}

// headers writes the files of the shape of a test checkpoint without weights.
func headers(t *testing.T, outType convert.OutType, config ...string) map[convert.Kind]string {
	t.Helper()
	paths, err := convert.SynthHeaders(convert.SynthOptions{
		Config:  testutil.Testdata(t, config...),
		Options: convert.Options{OutDir: t.TempDir(), OutType: outType},
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// opened opens a model for a thread of the CPU.
func opened(t *testing.T, path string, l Loading) *Subject {
	t.Helper()
	l.Threads, l.Devices, l.Context, l.UBatch, l.KV = 1, devices.Options{Device: "cpu"}, 256, 8, binding.F16
	s, err := Open(path, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestRun measures made-up models of both families.
func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name    string
		outType convert.OutType
		config  []string
	}{
		{"inkling", "q8_0", []string{"inkling-tiny-random", "original", "config.json"}},
		{"inkling with an importance matrix", "iq3_xxs", []string{"inkling-tiny-random", "original", "config.json"}},
		{"kimi", "f32", []string{"kimi-tiny", "config.json"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := madeUp(t, tc.outType, tc.config...)
			o := Options{Prompt: []int{5, 20}, Generate: []int{3}, Depth: []int{0, 30}, Parallel: []int{1, 2}, Repeat: 2, UBatch: 8, KV: binding.F16, Warmup: true}
			var told []string
			o.Progress = func(test string, n, of int) {
				if n != len(told) || of != 12 {
					t.Errorf("%s is %d of %d", test, n, of)
				}
				told = append(told, test)
			}
			rs, err := s.Run(t.Context(), o, 1e9)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{
				"pp5", "pp20", "tg3", "pp5 @ d30", "pp20 @ d30", "tg3 @ d30",
				"pp5 x2", "pp20 x2", "tg3 x2", "pp5 @ d30 x2", "pp20 @ d30 x2", "tg3 @ d30 x2",
			}
			var got []string
			for _, r := range rs {
				got = append(got, r.Test)
				if len(r.Samples) != 2 || r.Mean <= 0 || r.Spread < 0 {
					t.Errorf("%+v", r)
				}
				if r.Generate == 0 {
					continue
				}
				if want := s.Costs.perToken(r.Depth+1, r.Parallel); r.BytesPerToken != want || r.Bandwidth != float64(want)*r.Mean || r.OfMeasured != r.Bandwidth/1e9 {
					t.Errorf("%+v, want %d bytes for a token", r, want)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("tests (-want +got):\n%s", d)
			}
			if d := cmp.Diff(want, told); d != "" {
				t.Errorf("progress (-want +got):\n%s", d)
			}
			o.Depth = []int{1 << 20}
			if _, err := s.Run(t.Context(), o, 0); err == nil {
				t.Error("longer than the context: no error")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			o.Depth, o.Progress = []int{0}, nil
			if _, err := s.Run(ctx, o, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that it was cancelled", err)
			}
		})
	}
}

func TestPerToken(t *testing.T) {
	moe := Costs{Dense: 100, Expert: 10, Experts: 8, Used: 2, fixed: 4, perRow: 0.5}
	for _, tc := range []struct {
		name       string
		c          Costs
		rows, seqs int
		want       int64
	}{
		{"dense", Costs{Dense: 100, perRow: 2}, 10, 1, 120},
		{"weights are shared", Costs{Dense: 100, perRow: 2}, 10, 4, 45},
		{"two of eight experts", moe, 10, 1, 100 + 20 + 9},
		{"two sequences: 7/16 of the experts", moe, 10, 2, 76}, // (100 + 35)/2 + 9 = 76.5
		{"many: all of them", moe, 0, 1000, 4},                 // (100 + 80)/1000 + 4
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.c.perToken(tc.rows, tc.seqs); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// TestReadCosts: all weights but the embedding are either dense or experts, and a
// row of keys and values is that of the layers without a window.
func TestReadCosts(t *testing.T) {
	s := madeUp(t, "f32", "inkling-tiny-random", "original", "config.json")
	embd, ok := s.File.Tensor("token_embd.weight")
	if !ok {
		t.Fatal("no embedding")
	}
	c := s.Costs
	if got, want := c.Dense+int64(c.Experts)*c.Expert+embd.Size, s.WeightBytes(); got != want {
		t.Errorf("%d bytes in all, want %d", got, want)
	}
	if c.Used < 1 || c.Used >= c.Experts || c.Active() >= s.WeightBytes() {
		t.Errorf("%d of %d experts, %d of %d bytes", c.Used, c.Experts, c.Active(), s.WeightBytes())
	}
	sliding, err := s.File.Bools("inkling.attention.sliding_window_pattern")
	if err != nil {
		t.Fatal(err)
	}
	heads, err := s.File.Ints("inkling.attention.head_count_kv")
	if err != nil {
		t.Fatal(err)
	}
	dim, err := s.File.Uint("inkling.attention.key_length")
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for i, swa := range sliding {
		if !swa {
			want += float64(2 * 2 * heads[i] * int64(dim)) // keys and values, two bytes each
		}
	}
	if math.Abs(c.perRow-want) > 0.01*want || want == 0 {
		t.Errorf("%g bytes of keys and values for each row, want %g", c.perRow, want)
	}
	if c.fixed <= 0 {
		t.Errorf("%g bytes of windows", c.fixed)
	}
}

func TestMeanAndSpread(t *testing.T) {
	for _, tc := range []struct {
		in           []float64
		mean, spread float64
	}{{[]float64{3}, 3, 0}, {[]float64{1, 3}, 2, math.Sqrt2}, {[]float64{2, 2, 2}, 2, 0}} {
		mean, spread := meanAndSpread(tc.in)
		if math.Abs(mean-tc.mean) > 1e-12 || math.Abs(spread-tc.spread) > 1e-12 {
			t.Errorf("%v: %g ± %g, want %g ± %g", tc.in, mean, spread, tc.mean, tc.spread)
		}
	}
}

// TestCopyBandwidth: a device's own copies are measured, here the CPU's.
func TestCopyBandwidth(t *testing.T) {
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if b, err := copyBandwidth(t.Context(), be, 1<<20); err != nil || b <= 0 {
		t.Errorf("%g bytes a second, %v", b, err)
	}
	if _, counted := binding.CPU().Replays(); counted {
		t.Error("the CPU says that it records graphs")
	}
}

// TestFill: the rows of a router differ, those of large matrices repeat, and a second
// tensor of the same form is quantised no more.
func TestFill(t *testing.T) {
	fill := Fill(1)
	get := func(name string, typ gguf.Type, size int64, dims ...int64) []byte {
		t.Helper()
		out := make([]byte, size)
		if err := fill(gguf.TensorInfo{Name: name, Type: typ, Size: size, Dims: dims}, func(data []byte, off int64) { copy(out[off:], data) }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const cols, rows = 4096, 256
	router := get("blk.0.ffn_gate_inp.weight", gguf.Type(binding.F32), 4*cols*rows, cols, rows)
	seen := map[string]bool{}
	for r := range rows {
		seen[string(router[r*4*cols:(r+1)*4*cols])] = true
	}
	if len(seen) != rows {
		t.Errorf("%d different rows of a router, want %d", len(seen), rows)
	}
	const q8 = 34 * cols / 32 // bytes of a row of Q8_0
	up, down := get("blk.0.ffn_up.weight", gguf.Type(binding.Q8_0), q8*1024, cols, 1024), get("blk.1.ffn_up.weight", gguf.Type(binding.Q8_0), q8*1024, cols, 1024)
	drawn := (1 << 20) / q8 * q8
	if !bytes.Equal(up[:q8], up[drawn:drawn+q8]) || !bytes.Equal(up, down) || bytes.Equal(up[:q8], up[q8:2*q8]) {
		t.Error("large matrices do not repeat what is drawn once")
	}
}
