package kimik25

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/gguf"
)

// TestINT4 converts a checkpoint whose experts are 4-bit integers. In Q4_0 their
// values are those of the codes, exactly; with one scale beyond F16 the row is rounded
// again, and said so.
func TestINT4(t *testing.T) {
	c := checkpointtest.Load(t, tinyRandom)
	n := 0
	for _, x := range append([]*checkpointtest.Tensor(nil), c.Tensors...) {
		if strings.Contains(x.Name, ".mlp.experts.") {
			c.INT4(t, x.Name)
			n++
		}
	}
	c.Config["text_config"].(map[string]any)["quantization_config"] = map[string]any{
		"quant_method": "compressed-tensors", "format": "pack-quantized",
		"config_groups": map[string]any{"group_0": map[string]any{"weights": map[string]any{"num_bits": 4, "group_size": 32, "symmetric": true}}},
	}
	dir := c.Write(t)
	exact, _ := converttest.Run(t, dir, convert.OutF32)
	auto, report := converttest.Run(t, dir, convert.OutAuto)
	plain, _ := converttest.Run(t, tinyRandom, convert.OutF32)
	banks := 0
	for _, info := range auto[convert.Text].Tensors() {
		if !strings.Contains(info.Name, "_exps.") {
			continue
		}
		banks++
		if info.Type != gguf.Q4_0 {
			t.Errorf("%s is %v, want q4_0", info.Name, info.Type)
			continue
		}
		want, got := converttest.Floats(t, exact[convert.Text], info.Name), converttest.Floats(t, auto[convert.Text], info.Name)
		original := converttest.Floats(t, plain[convert.Text], info.Name)
		var errs, squares float64
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("%s: weight %d is %v, the code is %v", info.Name, i, got[i], want[i])
			}
			d := float64(original[i] - got[i])
			errs, squares = errs+d*d, squares+float64(original[i])*float64(original[i])
		}
		if errs > 0.15*0.15*squares {
			t.Errorf("%s: squared error %v of %v", info.Name, errs, squares)
		}
	}
	if banks == 0 || banks*8 != n {
		t.Errorf("%d stacks of experts, %d tensors were quantised", banks, n)
	}
	for _, note := range report.Notes {
		if strings.Contains(note, "rounded again") {
			t.Errorf("note %q", note)
		}
	}

	for _, x := range c.Tensors {
		if strings.HasSuffix(x.Name, "experts.3.up_proj.weight_scale") {
			copy(x.Data, checkpointtest.BF16(0x1.02p-20))
			break
		}
	}
	_, report = converttest.Run(t, c.Write(t), convert.OutAuto)
	if want := "1 row of codes rounded again, as the scales do not fit the output type"; !strings.Contains(fmt.Sprint(report.Notes), want) {
		t.Errorf("notes %q, want %q", report.Notes, want)
	}
}
