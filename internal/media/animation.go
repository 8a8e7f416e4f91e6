package media

import (
	"context"
	"fmt"
	"image"
	"image/color"
)

// maxAnimationFrames and maxAnimationPixels bound the work on an animation: every
// frame up to the last one sampled has to be decoded, and a frame of one colour
// takes next to no bytes. The pixels are those of all frames; 1000 frames of
// 1920 x 1080 have half as many.
const (
	maxAnimationFrames = 10000
	maxAnimationPixels = 4 << 30
)

// animation is a picture file with several frames, each a layer on a canvas.
type animation struct {
	w, h   int
	delays []float64 // seconds that each frame is shown
	// layer decodes one frame.
	layer func(i int) (layer, error)
}

// layer is what one frame changes on the canvas.
type layer struct {
	*Image
	alpha   []uint8 // [H, W], nil if opaque
	x, y    int
	over    bool // blend over the canvas instead of replacing it
	dispose disposal
	clear   *[3]uint8 // what disposeClear leaves, nil for transparent black
}

// disposal is what happens to a frame's area before the next frame.
type disposal int

const (
	disposeKeep disposal = iota
	disposeClear
	disposeRestore
)

// canvas is a picture with straight alpha.
type canvas struct {
	*Image
	alpha []uint8 // [H, W]
}

// openAnimation reads an animated GIF, PNG or WebP, or a still picture as a
// clip of one frame.
func openAnimation(path, format string, data []byte, opts VideoOptions) (videoSource, error) {
	var a *animation
	err := guard(func() (err error) {
		switch format {
		case "gif":
			a, err = parseGIF(data)
		case "png":
			a, err = parseAPNG(data)
		case "webp":
			a, err = parseWebPAnimation(data)
		}
		return err
	})
	if err != nil {
		return videoSource{}, imageErr(path, format, err)
	}
	if a == nil || len(a.delays) == 1 {
		im, err := DecodeImage(path, data, opts.Limits)
		if err != nil {
			return videoSource{}, err
		}
		return stillSource(format, im, opts), nil
	}
	if err := opts.Limits.check(path, format, a.w, a.h); err != nil {
		return videoSource{}, err
	}
	if n := len(a.delays); n > maxAnimationFrames {
		return videoSource{}, &LimitError{File: path, What: "frames", Found: int64(n), Max: maxAnimationFrames}
	}
	return videoSource{
		format:   format,
		Timeline: a.timeline(),
		frames: func(ctx context.Context, indices []int, yield func(*Image) error) error {
			return a.play(ctx, path, format, maxAnimationPixels, indices, yield)
		},
	}, nil
}

func stillSource(format string, im *Image, opts VideoOptions) videoSource {
	return videoSource{
		format:   format,
		Timeline: evenTimeline(1, opts.fps()),
		frames: func(_ context.Context, _ []int, yield func(*Image) error) error {
			return yield(im)
		},
	}
}

func (a *animation) timeline() Timeline {
	t := Timeline{Start: make([]float64, len(a.delays))}
	now := 0.0
	for i, d := range a.delays {
		t.Start[i] = now
		// Files that ask for no delay, or 10 ms, are shown at 100 ms a frame by
		// every browser.
		if d < 0.011 {
			d = 0.1
		}
		now += d
	}
	t.FPS = float64(len(a.delays)) / now
	return t
}

// play composes the frames up to the last one wanted, of maxPixels altogether.
func (a *animation) play(ctx context.Context, path, format string, maxPixels int64, indices []int, yield func(*Image) error) error {
	c := canvas{newImage(a.w, a.h), make([]uint8, a.w*a.h)}
	pixels := int64(0)
	for i := 0; len(indices) > 0; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if pixels > maxPixels {
			return &LimitError{File: path, What: "pixels in the frames", Found: pixels, Max: maxPixels}
		}
		var l layer
		err := guard(func() (err error) {
			l, err = a.layer(i)
			return err
		})
		if err == nil && (l.x < 0 || l.y < 0 || l.x+l.W > a.w || l.y+l.H > a.h) {
			err = fmt.Errorf("%d x %d pixels at %d, %d on a canvas of %d x %d", l.W, l.H, l.x, l.y, a.w, a.h)
		}
		if err != nil {
			return imageErr(path, format, fmt.Errorf("frame %d: %w", i, err))
		}
		pixels += int64(l.W) * int64(l.H)
		var before canvas
		if l.dispose == disposeRestore {
			before = c.cut(l)
		}
		c.draw(l)
		if i == indices[0] {
			indices = indices[1:]
			if err := yield(c.Image.clone()); err != nil {
				return err
			}
		}
		switch l.dispose {
		case disposeClear:
			blank := layer{Image: newImage(l.W, l.H), x: l.x, y: l.y}
			if l.clear != nil {
				blank.fill(*l.clear)
			} else {
				blank.alpha = make([]uint8, l.W*l.H)
			}
			c.draw(blank)
		case disposeRestore:
			c.draw(layer{Image: before.Image, alpha: before.alpha, x: l.x, y: l.y})
		}
	}
	return nil
}

func (im *Image) clone() *Image {
	out := newImage(im.W, im.H)
	copy(out.Pix, im.Pix)
	return out
}

// cut copies the area that a layer covers.
func (c canvas) cut(l layer) canvas {
	out := canvas{newImage(l.W, l.H), make([]uint8, l.W*l.H)}
	for y := range l.H {
		from := (l.y+y)*c.W + l.x
		copy(out.Pix[y*l.W*3:(y+1)*l.W*3], c.Pix[from*3:])
		copy(out.alpha[y*l.W:(y+1)*l.W], c.alpha[from:])
	}
	return out
}

// draw puts a layer on the canvas.
func (c canvas) draw(l layer) {
	for y := range l.H {
		for x := range l.W {
			s, d := y*l.W+x, (l.y+y)*c.W+l.x+x
			a := 255
			if l.alpha != nil {
				a = int(l.alpha[s])
			}
			src, dst := l.Pix[3*s:3*s+3], c.Pix[3*d:3*d+3]
			switch {
			case !l.over || a == 255:
				copy(dst, src)
				c.alpha[d] = uint8(a)
			case a > 0:
				// Porter-Duff "over" on straight alpha, in units of 1/255^2.
				under := int(c.alpha[d]) * (255 - a)
				sum := 255*a + under
				for i := range dst {
					dst[i] = uint8((int(src[i])*255*a + int(dst[i])*under + sum/2) / sum)
				}
				c.alpha[d] = uint8((sum + 127) / 255)
			}
		}
	}
}

// alphaOf returns the alpha of what Go's decoders return, nil if it is opaque.
func alphaOf(src image.Image) []uint8 {
	b := src.Bounds()
	w, h := b.Dx(), b.Dy()
	out := make([]uint8, w*h)
	var at func(x, y int) uint8
	switch m := src.(type) {
	case *image.NRGBA:
		at = func(x, y int) uint8 { return m.Pix[y*m.Stride+4*x+3] }
	case *image.NRGBA64:
		at = func(x, y int) uint8 { return m.Pix[y*m.Stride+8*x+6] }
	case *image.NYCbCrA:
		at = func(x, y int) uint8 { return m.A[y*m.AStride+x] }
	case *image.Paletted:
		at = func(x, y int) uint8 {
			i := int(m.Pix[y*m.Stride+x])
			if i >= len(m.Palette) {
				return 255
			}
			if c, ok := m.Palette[i].(color.NRGBA); ok {
				return c.A
			}
			return 255
		}
	default:
		return nil
	}
	for i := range out {
		out[i] = at(i%w, i/w)
	}
	return out
}
