package media

import (
	"fmt"
	"math"
)

// TileConfig is the image part of a checkpoint's processor configuration.
type TileConfig struct {
	Patch    int        // side of a tile in pixels
	Temporal int        // frames in a tile
	Mean     [3]float32 // per channel, of pixels in 0..1
	Std      [3]float32

	// RescaleFrac scales the picture before it is cut; 0 leaves it as it is,
	// which is what the published processor does.
	RescaleFrac float64
	// RescaleMaxLongEdge caps the longer side when enlarging (0: no cap). A
	// picture that is already larger keeps its size.
	RescaleMaxLongEdge int
}

// TileSet is a picture, or a pair of video frames, cut into tiles.
type TileSet struct {
	N, Rows, Cols   int // N = Rows*Cols tiles, one soft token each
	Temporal, Patch int
	Pix             []float32 // [N, Temporal, Patch, Patch, 3] row-major, normalised
}

// Tiling is a picture, or a pair of video frames, laid out in tiles that are cut
// when they are wanted: floats take 8 times the memory of the picture.
type Tiling struct {
	N, Rows, Cols   int // N = Rows*Cols tiles, one soft token each
	Temporal, Patch int

	frames []*Image // of the size that is cut
	levels *[3][257]float32
}

// padLevel is the raw value of missing pixels. It is put in before scaling, so
// the tower sees (-1/255 - mean) / std.
const padLevel = -1

// RescaledSize is the size of a w x h picture after the optional rescale
// (RescaleFrac, RescaleMaxLongEdge). Sides are rounded half up and stay at
// least one pixel.
func (c TileConfig) RescaledSize(w, h int) (int, int) {
	if !(c.RescaleFrac > 0) || w <= 0 || h <= 0 {
		return w, h
	}
	long := float64(max(w, h))
	target := long * c.RescaleFrac
	if limit := float64(c.RescaleMaxLongEdge); limit > 0 {
		target = min(target, max(limit, long))
	}
	ratio := target / long
	if ratio == 1 {
		return w, h
	}
	// The upper bound keeps absurd factors within an int; Tiles refuses them.
	side := func(s int) int { return int(min(max(math.Floor(float64(s)*ratio+0.5), 1), 1<<30)) }
	return side(w), side(h)
}

// TileCount is the grid for a w x h picture: rows*cols tiles, one soft token
// each. cfg.Patch must be at least 1. There is always one column more than whole
// tiles fit into the width, also if the width is a multiple of the patch: the
// reference does so, and the checkpoints have seen nothing else.
func TileCount(w, h int, cfg TileConfig) (rows, cols int) {
	w, h = cfg.RescaledSize(w, h)
	return (h + cfg.Patch - 1) / cfg.Patch, w/cfg.Patch + 1
}

// Tiles cuts a picture into tiles, row by row, and normalises them; every frame
// of a tile is the same.
func Tiles(im *Image, cfg TileConfig) (*TileSet, error) {
	t, err := Tile(im, cfg)
	if err != nil {
		return nil, err
	}
	return t.all(), nil
}

// TilesPair cuts two video frames of the same size into one set of tiles whose
// first frame is a and whose second is b.
func TilesPair(a, b *Image, cfg TileConfig) (*TileSet, error) {
	t, err := TilePair(a, b, cfg)
	if err != nil {
		return nil, err
	}
	return t.all(), nil
}

// Tile lays out what Tiles cuts.
func Tile(im *Image, cfg TileConfig) (*Tiling, error) { return tile([]*Image{im}, cfg) }

// TilePair lays out what TilesPair cuts.
func TilePair(a, b *Image, cfg TileConfig) (*Tiling, error) {
	if cfg.Temporal != 2 {
		return nil, fmt.Errorf("frame pairs need 2 frames a tile, the configuration has %d", cfg.Temporal)
	}
	if a.W != b.W || a.H != b.H {
		return nil, fmt.Errorf("frame pair of %d x %d and %d x %d pixels", a.W, a.H, b.W, b.H)
	}
	return tile([]*Image{a, b}, cfg)
}

func (c TileConfig) validate() error {
	if c.Patch < 1 || c.Temporal < 1 {
		return fmt.Errorf("tile of %d pixels and %d frames", c.Patch, c.Temporal)
	}
	for ch, s := range c.Std {
		if s == 0 {
			return fmt.Errorf("standard deviation of channel %d is zero", ch)
		}
	}
	return nil
}

// tile lays out frames of one size.
func tile(frames []*Image, cfg TileConfig) (*Tiling, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w, h := frames[0].W, frames[0].H
	if w < 1 || h < 1 {
		return nil, fmt.Errorf("empty picture, %d x %d pixels", w, h)
	}
	rows, cols := TileCount(w, h, cfg)
	w, h = cfg.RescaledSize(w, h)
	if n := int64(w) * int64(h); n > DefaultMaxPixels {
		return nil, fmt.Errorf("rescaling to %d x %d gives %d pixels, at most %d are allowed", w, h, n, int64(DefaultMaxPixels))
	}
	t := &Tiling{N: rows * cols, Rows: rows, Cols: cols, Temporal: cfg.Temporal, Patch: cfg.Patch, levels: cfg.levels()}
	for _, im := range frames {
		t.frames = append(t.frames, resize(im, w, h, lanczos))
	}
	return t, nil
}

// Values is the number of values of a tile.
func (t *Tiling) Values() int { return t.Temporal * t.Patch * t.Patch * 3 }

// tileParts is the values that are worth a goroutine: 0.1 ms.
const tileParts = 1 << 17

// Cut writes the tiles from first on to dst, which has room for as many as are
// wanted. If there are fewer frames than a tile has, the last one is repeated.
//
//	dst: [n, Temporal, Patch, Patch, 3] row-major
func (t *Tiling) Cut(dst []float32, first int) {
	size, frame := t.Values(), t.Patch*t.Patch*3
	inParts(len(dst)/size, max(tileParts/size, 1), func(from, to int) {
		for i := from; i < to; i++ {
			n := first + i
			slots := dst[i*size : (i+1)*size]
			for s, im := range t.frames {
				cutTile(slots[s*frame:(s+1)*frame], im, n%t.Cols*t.Patch, n/t.Cols*t.Patch, t.Patch, t.levels)
			}
			for s := len(t.frames); s < t.Temporal; s++ { // while the one before is in the cache
				copy(slots[s*frame:(s+1)*frame], slots[(s-1)*frame:])
			}
		}
	})
}

// all cuts all tiles.
func (t *Tiling) all() *TileSet {
	set := &TileSet{t.N, t.Rows, t.Cols, t.Temporal, t.Patch, make([]float32, t.N*t.Values())}
	t.Cut(set.Pix, 0)
	return set
}

// cutTile writes one tile whose corner is at x0, y0.
func cutTile(dst []float32, im *Image, x0, y0, patch int, levels *[3][257]float32) {
	r, g, b := &levels[0], &levels[1], &levels[2]
	line := patch * 3
	for y := range patch {
		row := dst[y*line : (y+1)*line]
		var src []uint8 // the part of the row that lies in the picture
		if y0+y < im.H && x0 < im.W {
			from := (y0+y)*im.W + x0
			src = im.Pix[3*from : 3*(from+min(patch, im.W-x0))]
		}
		for i := 0; i+2 < len(src); i += 3 {
			row[i] = r[int(src[i])-padLevel]
			row[i+1] = g[int(src[i+1])-padLevel]
			row[i+2] = b[int(src[i+2])-padLevel]
		}
		for i := len(src); i+2 < len(row); i += 3 {
			row[i], row[i+1], row[i+2] = r[0], g[0], b[0]
		}
	}
}

// levels tabulates (v/255 - mean) / std for every raw value from padLevel to
// 255, at index v-padLevel.
func (c TileConfig) levels() *[3][257]float32 {
	var t [3][257]float32
	for ch := range t {
		for i := range t[ch] {
			v := float64(i + padLevel)
			t[ch][i] = float32((v/255 - float64(c.Mean[ch])) / float64(c.Std[ch]))
		}
	}
	return &t
}
