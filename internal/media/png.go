package media

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
)

func pngSize(data []byte) (w, h int, err error) {
	c, err := png.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

func decodePNG(data []byte) (*Image, error) {
	src, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return pngRGB(src, data)
}

// pngRGB converts what Go's decoder made of a file.
func pngRGB(src image.Image, data []byte) (*Image, error) {
	// Go widens 16-bit grey with a transparent value to NRGBA64, which would
	// be read as 16-bit colour. IHDR has depth and colour type at 24 and 25;
	// the decoder has checked that it is there.
	if m, ok := src.(*image.NRGBA64); ok && data[24] == 16 && data[25] == 0 {
		im := newImage(m.Rect.Dx(), m.Rect.Dy())
		for i := range im.W * im.H {
			v := grey16(m.Pix[8*i], m.Pix[8*i+1])
			im.Pix[3*i], im.Pix[3*i+1], im.Pix[3*i+2] = v, v, v
		}
		return im, nil
	}
	return fromStd(src)
}

// pngEXIF returns the body of the eXIf chunk.
func pngEXIF(data []byte) []byte {
	for p := data[8:]; len(p) >= 12; {
		n := binary.BigEndian.Uint32(p)
		if uint64(n)+12 > uint64(len(p)) {
			return nil
		}
		if string(p[4:8]) == "eXIf" {
			return p[8 : 8+n]
		}
		p = p[12+n:]
	}
	return nil
}
