package media

import (
	"bytes"
	"image"
	"image/gif"
	"slices"
)

func gifSize(data []byte) (w, h int, err error) {
	c, err := gif.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

// decodeGIF returns the first frame on its canvas.
//
// Go's decoder replaces the transparent palette entry by transparent black,
// but Pillow keeps its colour, and fills the canvas around a smaller frame
// with it. So the transparency flag is taken out of the data first.
func decodeGIF(data []byte) (*Image, error) {
	background := uint8(0)
	if at, index, ok := gifTransparency(data); ok {
		data = slices.Clone(data)
		data[at] &^= 1
		background = index
	}
	w, h, err := gifSize(data)
	if err != nil {
		return nil, err
	}
	m, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	frame, err := fromStd(m)
	if err != nil {
		return nil, err
	}
	at := m.Bounds().Min
	if frame.W == w && frame.H == h {
		return frame, nil
	}
	im := newImage(w, h)
	if p, ok := m.(*image.Paletted); ok {
		im.fill(paletteRGB(p.Palette)[background])
	}
	im.paste(frame, at.X, at.Y)
	return im, nil
}

// gifTransparency finds the graphic control extension that rules the first
// frame: the offset of its flags byte and the transparent colour index. ok is
// false if the frame has no transparent colour.
func gifTransparency(data []byte) (at int, index uint8, ok bool) {
	if len(data) < 13 {
		return 0, 0, false
	}
	p := 13
	if data[10]&0x80 != 0 { // global colour table
		p += 3 << (data[10]&7 + 1)
	}
	for p+2 <= len(data) && data[p] == 0x21 { // extension
		if data[p+1] == 0xf9 && p+7 <= len(data) && data[p+2] == 4 {
			at, index, ok = p+3, data[p+6], data[p+3]&1 != 0
		}
		for p += 2; p < len(data) && data[p] != 0; { // sub-blocks
			p += int(data[p]) + 1
		}
		p++
	}
	return at, index, ok
}
