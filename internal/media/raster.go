package media

import (
	"fmt"
	"image"
	"image/color"
)

// newImage takes memory for a w x h picture; the caller has checked the size.
func newImage(w, h int) *Image {
	return &Image{W: w, H: h, Pix: make([]uint8, w*h*3)}
}

// grey16 says what a 16-bit grey sample becomes. Pillow holds such files as
// integers, and its conversion to RGB clips instead of scaling
// (libImaging/Convert.c, i2rgb and I16_RGB).
func grey16(hi, lo uint8) uint8 {
	if hi != 0 {
		return 255
	}
	return lo
}

// fromStd converts what Go's decoders return to RGB, dropping alpha without
// blending. Straight-alpha types give their colour as it is; *image.RGBA and
// *image.RGBA64 must hold opaque pixels or raw, not premultiplied, samples.
func fromStd(src image.Image) (*Image, error) {
	b := src.Bounds()
	im := newImage(b.Dx(), b.Dy())
	// every runs f for each pixel: s is the offset of its samples in the source.
	every := func(stride, size int, f func(dst []uint8, s int)) {
		for y := range im.H {
			for x := range im.W {
				i := (y*im.W + x) * 3
				f(im.Pix[i:i+3:i+3], y*stride+x*size)
			}
		}
	}
	copyRGB := func(pix []uint8, stride int) {
		every(stride, 4, func(dst []uint8, s int) { copy(dst, pix[s:s+3]) })
	}
	highRGB := func(pix []uint8, stride int) {
		every(stride, 8, func(dst []uint8, s int) { dst[0], dst[1], dst[2] = pix[s], pix[s+2], pix[s+4] })
	}
	switch m := src.(type) {
	case *image.Gray:
		every(m.Stride, 1, func(dst []uint8, s int) { dst[0], dst[1], dst[2] = m.Pix[s], m.Pix[s], m.Pix[s] })
	case *image.Gray16:
		every(m.Stride, 2, func(dst []uint8, s int) {
			v := grey16(m.Pix[s], m.Pix[s+1])
			dst[0], dst[1], dst[2] = v, v, v
		})
	case *image.RGBA:
		copyRGB(m.Pix, m.Stride)
	case *image.NRGBA:
		copyRGB(m.Pix, m.Stride)
	case *image.RGBA64:
		highRGB(m.Pix, m.Stride)
	case *image.NRGBA64:
		highRGB(m.Pix, m.Stride)
	case *image.Paletted:
		table := paletteRGB(m.Palette)
		every(m.Stride, 1, func(dst []uint8, s int) { copy(dst, table[m.Pix[s]][:]) })
	default:
		return nil, fmt.Errorf("decoder returned %T", src)
	}
	return im, nil
}

// paletteRGB returns the straight colours of a palette. Indices beyond it are
// black, as in Pillow.
func paletteRGB(p color.Palette) *[256][3]uint8 {
	var t [256][3]uint8
	for i, c := range p[:min(len(p), 256)] {
		switch c := c.(type) {
		case color.NRGBA:
			t[i] = [3]uint8{c.R, c.G, c.B}
		case color.RGBA:
			t[i] = [3]uint8{c.R, c.G, c.B}
		default: // color.RGBA64 in TIFF, always opaque
			r, g, b, _ := c.RGBA()
			t[i] = [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
		}
	}
	return &t
}

// clamp8 limits v to a byte.
func clamp8(v int) uint8 { return uint8(min(max(v, 0), 255)) }

// fill sets every pixel to one colour.
func (im *Image) fill(c [3]uint8) {
	for i := 0; i < len(im.Pix); i += 3 {
		copy(im.Pix[i:i+3], c[:])
	}
}

// paste copies src onto im with its corner at x, y; it must fit.
func (im *Image) paste(src *Image, x, y int) {
	for r := range src.H {
		copy(im.Pix[((y+r)*im.W+x)*3:][:src.W*3], src.Pix[r*src.W*3:])
	}
}
