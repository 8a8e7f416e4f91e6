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
	return cutTiles([]*Image{im}, cfg)
}

// TilesPair cuts two video frames of the same size into one set of tiles whose
// first frame is a and whose second is b.
func TilesPair(a, b *Image, cfg TileConfig) (*TileSet, error) {
	if cfg.Temporal != 2 {
		return nil, fmt.Errorf("frame pairs need 2 frames a tile, the configuration has %d", cfg.Temporal)
	}
	if a.W != b.W || a.H != b.H {
		return nil, fmt.Errorf("frame pair of %d x %d and %d x %d pixels", a.W, a.H, b.W, b.H)
	}
	return cutTiles([]*Image{a, b}, cfg)
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

// cutTiles fills frame t of every tile from frames[t], or from the last one if
// there are fewer.
func cutTiles(frames []*Image, cfg TileConfig) (*TileSet, error) {
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
	set := &TileSet{N: rows * cols, Rows: rows, Cols: cols, Temporal: cfg.Temporal, Patch: cfg.Patch}
	tile := cfg.Patch * cfg.Patch * 3
	set.Pix = make([]float32, set.N*cfg.Temporal*tile)
	levels := cfg.levels()
	for t := range cfg.Temporal {
		if t >= len(frames) { // same as the frame before
			for n := range set.N {
				at := (n*cfg.Temporal + t) * tile
				copy(set.Pix[at:at+tile], set.Pix[at-tile:at])
			}
			continue
		}
		src := resize(frames[t], w, h, lanczos)
		for n := range set.N {
			at := (n*cfg.Temporal + t) * tile
			cutTile(set.Pix[at:at+tile], src, n%cols*cfg.Patch, n/cols*cfg.Patch, cfg.Patch, levels)
		}
	}
	return set, nil
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
