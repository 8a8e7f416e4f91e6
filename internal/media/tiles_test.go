package media

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/testutil"
)

// published is the image part of the published processor configuration.
var published = TileConfig{
	Patch: 40, Temporal: 2,
	Mean: [3]float32{0.48145466, 0.4578275, 0.40821073},
	Std:  [3]float32{0.26862954, 0.26130258, 0.27577711},
}

func fixtureImage(t *testing.T, name string) *Image {
	t.Helper()
	path := testutil.Testdata(t, model, "media", name)
	im, err := DecodeImage(path, readFile(t, path), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func TestTilesGolden(t *testing.T) {
	g := testutil.OpenGolden(t, model, "images")
	for i, name := range []string{"image0_100x80.png", "image1_80x80.png", "image2_37x121.png"} {
		t.Run(name, func(t *testing.T) {
			set, err := Tiles(fixtureImage(t, name), published)
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("image%d", i)
			if want := int(g.Ints(key + ".num_patches")[0]); set.N != want || set.Rows*set.Cols != want {
				t.Errorf("%d tiles in %d x %d, want %d", set.N, set.Rows, set.Cols, want)
			}
			testutil.Close(t, "pixel values", set.Pix, g.Floats(key+".pixel_values"), testutil.Tol{Abs: 1e-6})
		})
	}
}

func TestTilesRescaleGolden(t *testing.T) {
	g := testutil.OpenGolden(t, model, "image_rescale")
	cfg := published
	cfg.RescaleFrac, cfg.RescaleMaxLongEdge = 1.5, 2048
	im := fixtureImage(t, "image2_37x121.png")
	want := newImage(182, 56)
	for i, v := range g.Ints("image2.resized") {
		want.Pix[i] = uint8(v)
	}
	w, h := cfg.RescaledSize(im.W, im.H)
	pixelsClose(t, "resized", resize(im, w, h, lanczos), want, 0)
	set, err := Tiles(im, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := int(g.Ints("image2.num_patches")[0]); set.N != n {
		t.Errorf("%d tiles, want %d", set.N, n)
	}
	testutil.Close(t, "pixel values", set.Pix, g.Floats("image2.pixel_values"), testutil.Tol{Abs: 1e-6})
}

// The first eight rows are the reference's own table (image_rescale.json).
func TestRescaledSize(t *testing.T) {
	for _, c := range []struct {
		h, w  int
		frac  float64
		limit int
		wantH int
		wantW int
	}{
		{37, 121, 1.5, 2048, 56, 182},
		{100, 80, 0.5, 2048, 50, 40},
		{1500, 1000, 2, 2048, 2048, 1365},
		{3000, 100, 1.5, 2048, 3000, 100},
		{3000, 2000, 0.25, 2048, 750, 500},
		{33, 77, 1.1, 2048, 36, 85},
		{2047, 5, 1.5, 2048, 2048, 5},
		{640, 480, 1, 2048, 640, 480},
		{640, 480, 0, 2048, 640, 480},       // off
		{1000, 1000, 4, 0, 4000, 4000},      // no cap
		{1000, 1, 0.1, 2048, 100, 1},        // never empty
		{3000, 4000, 2, 2048, 3000, 4000},   // larger than the cap: kept
		{4000, 3000, 0.5, 2048, 2000, 1500}, // shrinking is not capped
	} {
		t.Run(fmt.Sprintf("%dx%d*%g", c.h, c.w, c.frac), func(t *testing.T) {
			cfg := TileConfig{RescaleFrac: c.frac, RescaleMaxLongEdge: c.limit}
			w, h := cfg.RescaledSize(c.w, c.h)
			if diff := cmp.Diff([2]int{c.wantH, c.wantW}, [2]int{h, w}); diff != "" {
				t.Errorf("height, width (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTileCount(t *testing.T) {
	for _, c := range []struct{ w, h, rows, cols int }{
		{40, 40, 1, 2}, // a multiple of the patch still gets a column of padding
		{80, 100, 3, 3},
		{41, 39, 1, 2},
		{39, 41, 2, 1},
		{80, 80, 2, 3},
		{1, 1, 1, 1},
		{2049, 1, 1, 52},
		{4000, 3000, 75, 101},
	} {
		t.Run(fmt.Sprintf("%dx%d", c.w, c.h), func(t *testing.T) {
			rows, cols := TileCount(c.w, c.h, published)
			if rows != c.rows || cols != c.cols {
				t.Errorf("%d x %d tiles, want %d x %d", rows, cols, c.rows, c.cols)
			}
		})
	}
}

// Missing pixels are -1 before scaling, so they are not black.
func TestTilesPadding(t *testing.T) {
	im := newImage(40, 40)
	im.fill([3]uint8{255, 0, 128})
	set, err := Tiles(im, published)
	if err != nil {
		t.Fatal(err)
	}
	norm := func(v float64, ch int) float32 {
		return float32((v/255 - float64(published.Mean[ch])) / float64(published.Std[ch]))
	}
	const tile = 40 * 40 * 3
	for slot := range 2 {
		px := set.Pix[slot*tile:][:3]
		testutil.Close(t, "first tile", px, []float32{norm(255, 0), norm(0, 1), norm(128, 2)}, testutil.Tol{Abs: 1e-6})
		px = set.Pix[(2+slot)*tile:][:3]
		testutil.Close(t, "second tile", px, []float32{norm(-1, 0), norm(-1, 1), norm(-1, 2)}, testutil.Tol{Abs: 1e-6})
	}
}

func TestTilesPair(t *testing.T) {
	a, b := newImage(3, 2), newImage(3, 2)
	a.fill([3]uint8{10, 20, 30})
	b.fill([3]uint8{40, 50, 60})
	set, err := TilesPair(a, b, published)
	if err != nil {
		t.Fatal(err)
	}
	for slot, im := range []*Image{a, b} {
		one, err := Tiles(im, published)
		if err != nil {
			t.Fatal(err)
		}
		const tile = 40 * 40 * 3
		testutil.Close(t, fmt.Sprintf("slot %d", slot), set.Pix[slot*tile:][:tile], one.Pix[:tile], testutil.Tol{})
	}
	if _, err := TilesPair(a, newImage(2, 2), published); err == nil {
		t.Error("frames of two sizes were accepted")
	}
	still := published
	still.Temporal = 1
	if _, err := TilesPair(a, b, still); err == nil {
		t.Error("a pair was accepted for tiles of one frame")
	}
}

func TestTilesErrors(t *testing.T) {
	im := newImage(4, 4)
	for name, change := range map[string]func(*TileConfig){
		"patch 0":    func(c *TileConfig) { c.Patch = 0 },
		"temporal 0": func(c *TileConfig) { c.Temporal = 0 },
		"std 0":      func(c *TileConfig) { c.Std[1] = 0 },
		"huge":       func(c *TileConfig) { c.RescaleFrac = 1e6 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := published
			change(&cfg)
			if _, err := Tiles(im, cfg); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := Tiles(&Image{}, published); err == nil {
		t.Error("an empty picture was accepted")
	}
}

// TestTilingCut: pieces of a tiling are those of the whole, whatever was in their memory.
func TestTilingCut(t *testing.T) {
	a, b := fixtureImage(t, "image0_100x80.png"), fixtureImage(t, "image0_100x80.png")
	b.fill([3]uint8{40, 50, 60})
	whole, err := TilesPair(a, b, published)
	if err != nil {
		t.Fatal(err)
	}
	tiling, err := TilePair(a, b, published)
	if err != nil {
		t.Fatal(err)
	}
	size := tiling.Values()
	if len(whole.Pix) != tiling.N*size {
		t.Fatalf("%d values of a tile, want %d", size, len(whole.Pix)/tiling.N)
	}
	piece := make([]float32, 2*size)
	for first := 0; first < tiling.N; first += 2 {
		n := min(2, tiling.N-first)
		tiling.Cut(piece[:n*size], first)
		if d := cmp.Diff(whole.Pix[first*size:(first+n)*size], piece[:n*size]); d != "" {
			t.Errorf("%d tiles from %d on (-whole +piece):\n%s", n, first, d)
		}
	}
}
