package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"slices"
)

// gifFrame is one frame of a GIF file, not yet decoded.
type gifFrame struct {
	from, to    int // image descriptor and data
	w, h        int
	transparent int // colour index, -1 if none
	delay       float64
	dispose     disposal
}

// gifFile is the structure of a GIF file.
type gifFile struct {
	data   []byte
	w, h   int
	header int // length of header, screen descriptor and global palette
	frames []gifFrame
}

// scanGIF walks the blocks of a file up to its end, or up to the end of the
// first frame.
func scanGIF(data []byte, firstOnly bool) (gifFile, error) {
	le := binary.LittleEndian
	if len(data) < 13 {
		return gifFile{}, cutShort(len(data))
	}
	g := gifFile{data: data, w: int(le.Uint16(data[6:])), h: int(le.Uint16(data[8:]))}
	g.header = 13 + gifPalette(data[10])
	next := gifFrame{transparent: -1}
	for p := g.header; p < len(data); {
		switch data[p] {
		case 0x3b: // end
			return g, nil
		case 0x21: // extension
			if p+8 <= len(data) && data[p+1] == 0xf9 && data[p+2] == 4 {
				next.control(data[p+3 : p+7])
			}
			p = gifSubBlocks(data, p+2)
		case 0x2c: // image
			if p+10 > len(data) {
				return g, cutShort(p)
			}
			next.from = p
			next.w, next.h = int(le.Uint16(data[p+5:])), int(le.Uint16(data[p+7:]))
			p = gifSubBlocks(data, p+10+gifPalette(data[p+9])+1)
			if p > len(data) {
				return g, cutShort(next.from)
			}
			next.to = p
			g.frames = append(g.frames, next)
			if firstOnly {
				return g, nil
			}
			next = gifFrame{transparent: -1}
		default:
			return g, &FormatError{Offset: int64(p), Err: errors.New("unknown block")}
		}
	}
	return g, cutShort(len(data))
}

// gifPalette is the size of the palette that a flags byte announces.
func gifPalette(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// gifSubBlocks returns the offset behind a chain of sub-blocks, beyond the end
// of data if it is cut short.
func gifSubBlocks(data []byte, p int) int {
	for p < len(data) && data[p] != 0 {
		p += int(data[p]) + 1
	}
	return p + 1
}

// control takes the body of a graphic control extension.
func (f *gifFrame) control(b []byte) {
	switch b[0] >> 2 & 7 {
	case 2:
		f.dispose = disposeClear
	case 3:
		f.dispose = disposeRestore
	}
	f.delay = float64(binary.LittleEndian.Uint16(b[1:])) / 100
	if b[0]&1 != 0 {
		f.transparent = int(b[3])
	}
}

// decode decodes one frame. The control extension is left out: Go's decoder
// would replace the transparent colour by black, but Pillow keeps it.
func (g gifFile) decode(f gifFrame) (*image.Paletted, error) {
	m, err := gif.Decode(bytes.NewReader(slices.Concat(g.data[:g.header], g.data[f.from:f.to], []byte{0x3b})))
	if err != nil {
		return nil, err
	}
	p, ok := m.(*image.Paletted)
	if !ok {
		return nil, errors.New("frame has no palette")
	}
	return p, nil
}

func gifSize(data []byte) (w, h int, err error) {
	c, err := gif.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

// decodeGIF returns the first frame on its canvas. Around a smaller frame
// Pillow fills the canvas with the transparent colour, or the palette's first.
func decodeGIF(data []byte) (*Image, error) {
	g, err := scanGIF(data, true)
	if err != nil {
		return nil, err
	}
	if len(g.frames) == 0 {
		return nil, errors.New("no frame")
	}
	m, err := g.decode(g.frames[0])
	if err != nil {
		return nil, err
	}
	frame, err := fromStd(m)
	if err != nil {
		return nil, err
	}
	at := m.Rect.Min
	if frame.W == g.w && frame.H == g.h {
		return frame, nil
	}
	im := newImage(g.w, g.h)
	im.fill(paletteRGB(m.Palette)[max(g.frames[0].transparent, 0)])
	im.paste(frame, at.X, at.Y)
	return im, nil
}

// parseGIF reads a file as an animation.
func parseGIF(data []byte) (*animation, error) {
	g, err := scanGIF(data, false)
	if err != nil {
		return nil, err
	}
	if len(g.frames) == 0 {
		return nil, errors.New("no frame")
	}
	a := &animation{w: g.w, h: g.h, layer: g.layer}
	for _, f := range g.frames {
		a.delays = append(a.delays, f.delay)
	}
	return a, nil
}

func (g gifFile) layer(i int) (layer, error) {
	f := g.frames[i]
	m, err := g.decode(f)
	if err != nil {
		return layer{}, err
	}
	im, err := fromStd(m)
	if err != nil {
		return layer{}, err
	}
	l := layer{Image: im, x: m.Rect.Min.X, y: m.Rect.Min.Y, over: true, dispose: f.dispose}
	if f.transparent >= 0 {
		l.alpha = make([]uint8, im.W*im.H)
		for i := range l.alpha {
			if int(m.Pix[i/im.W*m.Stride+i%im.W]) != f.transparent {
				l.alpha[i] = 255
			}
		}
	} else if f.dispose == disposeClear {
		l.clear = g.background()
	}
	return l, nil
}

// background is the colour to which an opaque frame is cleared. Browsers clear
// to transparent, but Pillow and ffmpeg do as the format says.
func (g gifFile) background() *[3]uint8 {
	at := 13 + 3*int(g.data[11])
	if at+3 > g.header {
		return nil // no global palette, or an index beyond it
	}
	return (*[3]uint8)(g.data[at : at+3])
}
