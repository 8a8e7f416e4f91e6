package hmlp

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenPlan is an entry of hmlp_plans.json. Out is a number, or the string
// "text_hidden_size" in the last layer.
type goldenPlan struct {
	NLayers int   `json:"n_layers"`
	Rows    []int `json:"rows"`
	Layers  []struct {
		In     int  `json:"in"`
		Out    any  `json:"out"`
		TFold  int  `json:"t_fold"`
		HWFold int  `json:"hw_fold"`
		Norm   bool `json:"norm"`
	} `json:"layers"`
}

func TestPlanGolden(t *testing.T) {
	data, err := os.ReadFile("../../testdata/inkling-tiny-random/goldens/hmlp_plans.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Plans []goldenPlan }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Plans) != 6 {
		t.Fatalf("%d plans in the golden file, want 6", len(golden.Plans))
	}
	for _, p := range golden.Plans {
		t.Run(fmt.Sprintf("n_layers=%d", p.NLayers), func(t *testing.T) {
			if got := choose(scales(40, 2, 3), 40*40*2*3, p.NLayers); !cmp.Equal(got, p.Rows) {
				t.Errorf("rows %v, want %v", got, p.Rows)
			}
			var want []Layer
			for _, l := range p.Layers {
				out, _ := l.Out.(float64)
				want = append(want, Layer{In: l.In, Out: int(out), TFold: l.TFold, HWFold: l.HWFold, Norm: l.Norm})
			}
			got, err := Plan(40, 2, 3, p.NLayers)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("layers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanFoldsTheWholeTile holds for any tower: the folds multiply up to the
// tile, and each projection reads what the fold of the previous one leaves.
func TestPlanFoldsTheWholeTile(t *testing.T) {
	for _, tile := range []struct{ patch, temporal, channels int }{
		{40, 2, 3}, {1, 1, 1}, {14, 4, 3}, {7, 1, 1}, {64, 3, 4}, {4096, 64, 64},
	} {
		for n := 1; n <= 12; n++ {
			layers, err := Plan(tile.patch, tile.temporal, tile.channels, n)
			if err != nil {
				t.Fatalf("%+v, %d layers: %v", tile, n, err)
			}
			hw, tf, c := 1, 1, tile.channels
			for i, l := range layers {
				if l.HWFold < 1 || l.TFold < 1 || l.In != c*l.TFold*l.HWFold*l.HWFold || l.Norm != (i < n-1) {
					t.Errorf("%+v, layer %d of %d: %+v after %d channels", tile, i, n, l, c)
				}
				hw, tf, c = hw*l.HWFold, tf*l.TFold, l.Out
			}
			if hw != tile.patch || tf != tile.temporal {
				t.Errorf("%+v, %d layers: folds %d pixels and %d frames", tile, n, hw, tf)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tc := range []struct {
		name                               string
		patch, temporal, channels, nLayers int
		want                               string
	}{
		{"no layers", 40, 2, 3, 0, "hmlp: n_layers 0, want 1 to 64"},
		{"too many layers", 40, 2, 3, 65, "hmlp: n_layers 65, want 1 to 64"},
		{"no pixels", 0, 2, 3, 4, "hmlp: patch_size 0, want 1 to 4096"},
		{"no frames", 40, -1, 3, 4, "hmlp: temporal_patch_size -1, want 1 to 64"},
		{"no channels", 40, 2, 0, 4, "hmlp: n_channels 0, want 1 to 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Plan(tc.patch, tc.temporal, tc.channels, tc.nLayers)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
