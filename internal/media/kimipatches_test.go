package media

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

const kimi = "kimi-k25-tiny-random"

// kimiPatches is the configuration of the published model, with another budget.
func kimiPatches(budget int) PatchConfig {
	half := [3]float32{0.5, 0.5, 0.5}
	return PatchConfig{Patch: 14, Merge: 2, Mean: half, Std: half, Budget: budget, Side: 512}
}

func kimiImage(t testing.TB, file string) *Image {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, kimi, "media", file))
	if err != nil {
		t.Fatal(err)
	}
	im, err := DecodeImage(file, data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestPatchSizesGolden is the reference's table of the size rule.
func TestPatchSizesGolden(t *testing.T) {
	var golden struct {
		Facts struct {
			Sizes []struct {
				Height, Width   int
				MaxPatches      int `json:"max_patches"`
				Resized, Padded [2]int
			} `json:"navit_resize"`
		}
	}
	testutil.GoldenJSON(t, kimi, "image_resize", &golden)
	if len(golden.Facts.Sizes) < 10 {
		t.Fatalf("%d sizes", len(golden.Facts.Sizes))
	}
	for _, s := range golden.Facts.Sizes {
		cfg := kimiPatches(s.MaxPatches)
		w, h := cfg.Scaled(s.Width, s.Height)
		if [2]int{h, w} != s.Resized {
			t.Errorf("%d x %d, %d patches: scaled to %d x %d, want %v (height, width)", s.Width, s.Height, s.MaxPatches, w, h, s.Resized)
		}
		rows, cols, err := cfg.Grid(s.Width, s.Height)
		if err != nil || [2]int{14 * rows, 14 * cols} != s.Padded {
			t.Errorf("%d x %d, %d patches: %d x %d patches (%v), want %v pixels (height, width)", s.Width, s.Height, s.MaxPatches, cols, rows, err, s.Padded)
		}
	}
}

func TestPatchGrid(t *testing.T) {
	vl := kimiPatches(4096)
	vl.Tokens = true
	crop := vl
	crop.Crop = true
	for _, c := range []struct {
		name       string
		cfg        PatchConfig
		w, h       int
		rows, cols int
		err        string
	}{
		{"one block", kimiPatches(16384), 28, 28, 2, 2, ""},
		{"filled up", kimiPatches(16384), 27, 29, 4, 2, ""},
		{"one pixel", kimiPatches(16384), 1, 1, 2, 2, ""},
		{"full HD", kimiPatches(16384), 1920, 1080, 78, 138, ""},
		{"full HD frame", kimiPatches(4096), 1920, 1080, 48, 86, ""},
		{"12 megapixels", kimiPatches(16384), 3000, 4000, 150, 112, ""},
		{"a line", kimiPatches(16384), 4000, 10, 2, 286, ""},
		{"a column", kimiPatches(16384), 100, 8000, 512, 8, ""},
		{"no pixel", kimiPatches(16384), 0, 10, 0, 0, "empty picture"},
		{"tokens, within", vl, 896, 896, 64, 64, ""},
		{"tokens, filled up", vl, 900, 890, 64, 66, ""}, // 64*63 whole patches are within 4096
		{"tokens, scaled", vl, 1920, 1080, 48, 86, ""},  // 77*137 patches: by sqrt(4096/10549) to 1196 x 672, 24 blocks high
		{"tokens, cropped", crop, 900, 890, 62, 64, ""},
		{"tokens, nothing left", crop, 900, 27, 0, 0, "smaller than a block"},
		{"tokens, too long", vl, 7168, 14, 0, 0, "at most 511"},
		{"no patch", PatchConfig{Merge: 2, Budget: 1, Side: 2, Std: [3]float32{1, 1, 1}}, 1, 1, 0, 0, "patches of 0 pixels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, cols, err := c.cfg.Grid(c.w, c.h)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || rows != c.rows || cols != c.cols {
				t.Errorf("%d rows, %d columns (%v), want %d, %d", rows, cols, err, c.rows, c.cols)
			}
		})
	}
}

// TestPatchesGolden: patches of pictures that are not scaled, and of one that is.
func TestPatchesGolden(t *testing.T) {
	images := testutil.OpenGolden(t, kimi, "images")
	for i, file := range []string{"image0_84x112.png", "image1_150x75.png", "image2_112x112.png"} {
		set, err := Patches(kimiImage(t, file), kimiPatches(16384))
		if err != nil {
			t.Fatal(err)
		}
		grid := images.Ints(fmt.Sprintf("image%d.grid_thw", i))
		if int64(set.Rows) != grid[1] || int64(set.Cols) != grid[2] {
			t.Errorf("%s: grid %d x %d, want %v", file, set.Rows, set.Cols, grid)
		}
		testutil.Close(t, file, set.Pix, images.Floats(fmt.Sprintf("image%d.pixel_values", i)), testutil.Tol{Abs: 1e-6})
	}

	golden := testutil.OpenGolden(t, kimi, "image_resize")
	im, cfg := kimiImage(t, "image3_203x310.png"), kimiPatches(100)
	w, h := cfg.Scaled(im.W, im.H)
	var want []uint8
	for _, v := range golden.Ints("resized") {
		want = append(want, uint8(v))
	}
	pixelsClose(t, "resized", resize(im, w, h, bicubic), &Image{W: 176, H: 115, Pix: want}, 1)
	set, err := Patches(im, cfg)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "pixel_values", set.Pix, golden.Floats("pixel_values"), testutil.Tol{Abs: 0.008})
	if last := set.Pix[len(set.Pix)-1]; last != -1 { // black, not mid-grey
		t.Errorf("padding is %v after normalisation, want -1", last)
	}
}

// TestFitCrop: an odd remainder goes to the right.
func TestFitCrop(t *testing.T) {
	cfg := kimiPatches(4096)
	cfg.Tokens, cfg.Crop = true, true
	im := newImage(31, 29)
	for i := range im.Pix {
		im.Pix[i] = uint8(i / 3 % 31) // the column
	}
	out, err := cfg.Fit(im)
	if err != nil {
		t.Fatal(err)
	}
	if out.W != 28 || out.H != 28 || out.Pix[0] != 2 || out.Pix[3*27] != 29 { // round(1.5) = 2
		t.Errorf("%d x %d from column %d to %d, want 28 x 28 from 2 to 29", out.W, out.H, out.Pix[0], out.Pix[3*27])
	}
}

func TestCutPatchesErrors(t *testing.T) {
	cfg := kimiPatches(4096)
	for _, c := range []struct {
		frames []*Image
		want   string
	}{
		{nil, "without frames"},
		{[]*Image{newImage(28, 14)}, "not whole blocks"},
		{[]*Image{newImage(28, 28), newImage(28, 56)}, "frame 1 has 28 x 56 pixels"},
	} {
		if _, err := CutPatches(c.frames, cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
