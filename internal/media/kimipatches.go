package media

import (
	"fmt"
	"math"
)

// PatchConfig is the image part of the processor configuration of MoonViT
// models: pictures keep their proportions and become a grid of patches, of
// which blocks of Merge x Merge are one soft token.
type PatchConfig struct {
	Patch int        // side of a patch in pixels
	Merge int        // patches along a side of a block
	Mean  [3]float32 // per channel, of pixels in 0..1
	Std   [3]float32

	Budget int // most patches of a picture; larger ones are scaled down
	Side   int // most patches along a side

	// Tokens is the rule of Kimi-VL, whose Budget bounds whole patches and whose
	// Side is out of bounds itself. Without it the rule is that of Kimi-K2.5.
	Tokens bool
	// Crop cuts the picture down to whole blocks instead of filling it up with
	// black. With Tokens only.
	Crop bool
}

// PatchSet is a picture cut into patches.
type PatchSet struct {
	Rows, Cols int       // Rows*Cols patches
	Patch      int       //
	Pix        []float32 // [Rows*Cols, 3, Patch, Patch] row-major, normalised
}

func (c PatchConfig) validate() error {
	if c.Patch < 1 || c.Merge < 1 || c.Budget < 1 || c.Side < c.Merge {
		return fmt.Errorf("patches of %d pixels in blocks of %d, at most %d and %d along a side", c.Patch, c.Merge, c.Budget, c.Side)
	}
	for ch, s := range c.Std {
		if s == 0 {
			return fmt.Errorf("standard deviation of channel %d is zero", ch)
		}
	}
	return nil
}

// Scaled is the size to which a w x h picture is scaled, before it is filled up
// or cut down to whole blocks. Pictures are never enlarged.
func (c PatchConfig) Scaled(w, h int) (int, int) {
	whole := float64(max(w/c.Patch, 1)) * float64(max(h/c.Patch, 1))
	if c.Tokens {
		whole = float64(w/c.Patch) * float64(h/c.Patch)
		if whole <= float64(c.Budget) {
			return w, h
		}
		s := math.Sqrt(float64(c.Budget) / whole)
		return max(int(float64(w)*s), 1), max(int(float64(h)*s), 1)
	}
	limit := c.Side * c.Patch
	s := min(1, math.Sqrt(float64(c.Budget)/whole), float64(limit)/float64(w), float64(limit)/float64(h))
	side := func(n int) int { return min(max(int(float64(n)*s), 1), limit) }
	return side(w), side(h)
}

// Grid is the number of patches that a w x h picture becomes.
func (c PatchConfig) Grid(w, h int) (rows, cols int, err error) {
	if err := c.validate(); err != nil {
		return 0, 0, err
	}
	if w < 1 || h < 1 {
		return 0, 0, fmt.Errorf("empty picture, %d x %d pixels", w, h)
	}
	sw, sh := c.Scaled(w, h)
	block := c.Patch * c.Merge
	count := func(side int) int {
		if c.Crop {
			return side / block * c.Merge
		}
		return (side + block - 1) / block * c.Merge
	}
	rows, cols = count(sh), count(sw)
	most := c.Side
	if c.Tokens {
		most--
	}
	switch {
	case rows == 0 || cols == 0:
		return 0, 0, fmt.Errorf("picture of %d x %d pixels is smaller than a block of %d x %d", w, h, block, block)
	case rows > most || cols > most:
		return 0, 0, fmt.Errorf("picture of %d x %d pixels is %d x %d patches, at most %d fit along a side", w, h, cols, rows, most)
	}
	return rows, cols, nil
}

// Fit scales a picture to the size that the tower sees and fills it up with
// black at the right and the bottom, or crops it around the centre.
func (c PatchConfig) Fit(im *Image) (*Image, error) {
	rows, cols, err := c.Grid(im.W, im.H)
	if err != nil {
		return nil, err
	}
	w, h := c.Scaled(im.W, im.H)
	im = resize(im, w, h, bicubic)
	outW, outH := cols*c.Patch, rows*c.Patch
	if outW == w && outH == h {
		return im, nil
	}
	out := newImage(outW, outH)
	// As torchvision's center_crop does it.
	left, top := int(math.RoundToEven(float64(max(w-outW, 0))/2)), int(math.RoundToEven(float64(max(h-outH, 0))/2))
	for y := range min(h, outH) {
		src := ((top+y)*w + left) * 3
		copy(out.Pix[y*outW*3:], im.Pix[src:src+min(w, outW)*3])
	}
	return out, nil
}

// Patches fits a picture and cuts it into patches, row by row.
func Patches(im *Image, cfg PatchConfig) (*PatchSet, error) {
	im, err := cfg.Fit(im)
	if err != nil {
		return nil, err
	}
	return CutPatches([]*Image{im}, cfg)
}

// CutPatches cuts fitted frames of one size into patches: frame by frame, each
// row by row. The set's Rows and Cols are those of one frame.
func CutPatches(frames []*Image, cfg PatchConfig) (*PatchSet, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(frames) == 0 {
		return nil, fmt.Errorf("a clip without frames")
	}
	first, block := frames[0], cfg.Patch*cfg.Merge
	if first.W%block != 0 || first.H%block != 0 || first.W == 0 || first.H == 0 {
		return nil, fmt.Errorf("frame of %d x %d pixels is not whole blocks of %d x %d", first.W, first.H, block, block)
	}
	set := &PatchSet{Rows: first.H / cfg.Patch, Cols: first.W / cfg.Patch, Patch: cfg.Patch}
	set.Pix = make([]float32, 0, len(frames)*first.W*first.H*3)
	levels := cfg.levels()
	for i, im := range frames {
		if im.W != first.W || im.H != first.H {
			return nil, fmt.Errorf("frame %d has %d x %d pixels, the first %d x %d", i, im.W, im.H, first.W, first.H)
		}
		for n := range set.Rows * set.Cols {
			set.Pix = appendPatch(set.Pix, im, n%set.Cols*cfg.Patch, n/set.Cols*cfg.Patch, cfg.Patch, levels)
		}
	}
	return set, nil
}

// appendPatch appends one patch whose corner is at x0, y0, a channel after another.
func appendPatch(dst []float32, im *Image, x0, y0, patch int, levels *[3][256]float32) []float32 {
	for ch := range 3 {
		for y := range patch {
			row := im.Pix[((y0+y)*im.W+x0)*3:]
			for x := range patch {
				dst = append(dst, levels[ch][row[3*x+ch]])
			}
		}
	}
	return dst
}

// levels tabulates (v/255 - mean) / std.
func (c PatchConfig) levels() *[3][256]float32 {
	var t [3][256]float32
	for ch := range t {
		for v := range t[ch] {
			t[ch][v] = float32((float64(v)/255 - float64(c.Mean[ch])) / float64(c.Std[ch]))
		}
	}
	return &t
}
