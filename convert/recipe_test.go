package convert

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/internal/gguf"
)

// TestRecipes asks for the types that mixes give to tensors of a model of 16 layers.
func TestRecipes(t *testing.T) {
	for _, tc := range []struct {
		o    OutType
		name string
		want gguf.Type
	}{
		{OutQ4_K_M, "output.weight", gguf.Q6_K},
		{OutQ4_K_M, "token_embd.weight", gguf.Q4_K},
		{OutQ4_K_M, "blk.3.attn_v.weight", gguf.Q6_K},
		{OutQ4_K_M, "blk.3.attn_v_b.weight", gguf.Q6_K},
		{OutQ4_K_M, "blk.3.attn_output.weight", gguf.Q5_K},
		{OutQ4_K_M, "blk.3.attn_kv_a_mqa.weight", gguf.Q5_K},
		{OutQ4_K_M, "blk.3.ffn_up_shexp.weight", gguf.Q6_K},
		{OutQ4_K_M, "blk.3.ffn_gate_exps.weight", gguf.Q4_K},
		{OutQ4_K_M, "blk.1.ffn_down_exps.weight", gguf.Q6_K},  // of the first eighth
		{OutQ4_K_M, "blk.2.ffn_down_exps.weight", gguf.Q4_K},  // after it
		{OutQ4_K_M, "blk.4.ffn_down_exps.weight", gguf.Q6_K},  // the third after it
		{OutQ4_K_M, "blk.11.ffn_down_exps.weight", gguf.Q4_K}, // not "1"
		{OutQ4_K_M, "blk.14.ffn_down.weight", gguf.Q6_K},      // of the last eighth
		{OutQ4_K_M, "blk.0.nextn.eh_proj.weight", gguf.Q6_K},
		{OutMXFP4, "blk.9.ffn_up_exps.weight", gguf.MXFP4},
		{OutMXFP4, "blk.9.ffn_up_shexp.weight", gguf.Q8_0},
		{OutMXFP4, "blk.0.ffn_up.weight", gguf.Q8_0},
		{OutNVFP4, "blk.9.ffn_up_exps.weight", gguf.NVFP4},
		{OutNVFP4, "blk.9.attn_q.weight", gguf.BF16},
		{OutQ2_K, "blk.9.ffn_up_exps.weight", gguf.Q2_K},
		{OutIQ3_XXS, "blk.9.ffn_up_exps.weight", gguf.IQ3_XXS},
		{OutQ8_0, "blk.9.attn_q.weight", gguf.Q8_0},
	} {
		rule, ok := RecipeFor(tc.o, 16).find(tc.name)
		if !ok || rule.Type != tc.want {
			t.Errorf("%s: %s is %v (%v), want %v", tc.o, tc.name, rule.Type, ok, tc.want)
		}
	}
}

// TestRecipeText writes recipes and reads them back.
func TestRecipeText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recipe")
	for _, o := range OutTypes() {
		want := RecipeFor(o, 7)
		if err := os.WriteFile(path, []byte(want.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := ReadRecipe(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", o, diff)
		}
	}
	for text, want := range map[string]string{
		"":             ": no rule",
		"# nothing\n":  ": no rule",
		"a q8_0":       `:1: "a q8_0", want PATTERN = TYPE`,
		"\n( = q8_0":   ":2: pattern \"(\": error parsing regexp: missing closing ): `^(?:()$`",
		"a=b = q8_0 x": `:1: pattern "a=b": "q8_0 x" is not a type that weights are converted to`,
		"a = i32":      `:1: pattern "a": "i32" is not a type that weights are converted to`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRecipe(path); err == nil || err.Error() != path+want {
			t.Errorf("%q: error %v, want %s", text, err, path+want)
		}
	}
}

func TestFitting(t *testing.T) {
	for _, tc := range []struct {
		t    gguf.Type
		ne0  int64
		want gguf.Type
	}{
		{gguf.Q4_K, 512, gguf.Q4_K},
		{gguf.Q4_K, 96, gguf.Q5_0},
		{gguf.Q5_K, 96, gguf.Q5_1},
		{gguf.Q6_K, 96, gguf.Q8_0},
		{gguf.Q2_K, 96, gguf.IQ4_NL},
		{gguf.IQ3_XXS, 96, gguf.IQ4_NL},
		{gguf.NVFP4, 96, gguf.Q8_0},
		{gguf.Q4_K, 75, gguf.F16},
		{gguf.Q8_0, 75, gguf.F16},
		{gguf.MXFP4, 75, gguf.F16},
		{gguf.BF16, 75, gguf.BF16},
	} {
		if got := fitting(tc.t, tc.ne0); got != tc.want {
			t.Errorf("%v in rows of %d: %v, want %v", tc.t, tc.ne0, got, tc.want)
		}
	}
}

// imatrix writes an importance matrix for t0.weight.
func imatrix(t testing.TB, cols int64, importance func(col int) float32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]float32, cols)
	for i := range sums {
		sums[i] = 10 * importance(i)
	}
	checkpointtest.WriteGGUF(t, w, map[string]any{"general.type": "imatrix", "imatrix.chunk_count": uint32(7)},
		"t0.weight.in_sum2", []int64{cols, 1}, sums, "t0.weight.counts", []int64{1, 1}, []float32{10})
	return path
}

// TestImatrix quantises with all importance on the first half of the columns: their
// error falls, that of the others rises.
func TestImatrix(t *testing.T) {
	dir := random(1).Write(t)
	errs := func(m *Imatrix) (first, second float64) {
		o := Options{Dir: dir, OutDir: t.TempDir(), Name: "m", OutType: OutQ2_K, Only: []Kind{Text}, Imatrix: m}
		report, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		src, _, err := openSource(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		x, _ := src.Tensors.Tensor("t0.weight")
		want, err := src.Tensors.Floats(x)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(report.Files[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, _ := f.Tensor("t0.weight")
		got := make([]float32, len(want))
		if err := binding.Dequantise(binding.DType(info.Type), got, f.Bytes(info)); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			d := math.Pow(float64(want[i]-got[i]), 2)
			if i%256 < 128 {
				first += d
			} else {
				second += d
			}
		}
		if name, err := f.StrOr("quantize.imatrix.file", ""); err != nil || (name != "") != (m != nil) {
			t.Errorf("quantize.imatrix.file is %q (%v)", name, err)
		}
		return first, second
	}
	m, err := ReadImatrix(imatrix(t, 256, func(col int) float32 { return float32(1 - col/128) }))
	if err != nil {
		t.Fatal(err)
	}
	f0, s0 := errs(nil)
	f1, s1 := errs(m)
	if !(f1 < f0 && s1 > s0) {
		t.Errorf("squared errors %v and %v without, %v and %v with importance", f0, s0, f1, s1)
	}

	if m, err = ReadImatrix(imatrix(t, 128, func(int) float32 { return 1 })); err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), Options{Dir: dir, OutDir: t.TempDir(), OutType: OutQ2_K, Imatrix: m})
	if want := "imatrix.gguf: importance of tensor t0.weight is for 1 matrices of 128 columns, want 1 of 256"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	rule, err := NewRule(".*", "iq2_xxs")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), Options{Dir: dir, OutDir: t.TempDir(), Recipe: Recipe{rule}})
	if want := "tensor t0.weight: type iq2_xxs needs an importance matrix that has the tensor"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := ReadImatrix(imatrix(t, 4, func(int) float32 { return float32(math.NaN()) })); err == nil || !strings.Contains(err.Error(), "importance of column 0 is NaN") {
		t.Errorf("error %v", err)
	}
}
