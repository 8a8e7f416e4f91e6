package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"slices"
)

// jpegHeader is what the markers before the first scan say.
type jpegHeader struct {
	w, h       int
	components []jpegComponent
	adobe      int    // offset of the transform byte of the Adobe marker, or 0
	exif       []byte // body of the first EXIF segment
}

type jpegComponent struct{ id, h, v uint8 }

// readJPEGHeader walks the marker segments up to the first scan.
func readJPEGHeader(data []byte) (jpegHeader, error) {
	var hd jpegHeader
	p := 2
	for {
		// Stray bytes between segments are skipped, as libjpeg and Go do.
		i := bytes.IndexByte(data[min(p, len(data)):], 0xff)
		if i < 0 || p+i+1 >= len(data) {
			return hd, errors.New("no picture data")
		}
		p += i + 1
		marker := data[p]
		if marker == 0xff { // fill byte
			continue
		}
		p++
		if marker == 0 || marker >= 0xd0 && marker <= 0xd8 { // no segment
			continue
		}
		if marker == 0xd9 { // end of image
			return hd, errors.New("no picture data")
		}
		if p+2 > len(data) {
			return hd, errors.New("no picture data")
		}
		n := int(binary.BigEndian.Uint16(data[p:]))
		if n < 2 || p+n > len(data) {
			return hd, errors.New("no picture data")
		}
		hd.segment(marker, data[p+2:p+n], p+2)
		if marker == 0xda { // start of scan
			return hd, nil
		}
		p += n
	}
}

// segment notes one marker segment; at is the offset of its body.
func (hd *jpegHeader) segment(marker byte, body []byte, at int) {
	switch {
	case marker == 0xc0 || marker == 0xc1 || marker == 0xc2: // start of frame
		if len(body) < 6 || len(body) < 6+3*int(body[5]) {
			return
		}
		hd.h, hd.w = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
		for c := range int(body[5]) {
			b := body[6+3*c:]
			hd.components = append(hd.components, jpegComponent{b[0], b[1] >> 4, b[1] & 15})
		}
	case marker == 0xe1 && hd.exif == nil && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
		hd.exif = body[6:]
	case marker == 0xee && len(body) >= 12 && bytes.HasPrefix(body, []byte("Adobe")):
		hd.adobe = at + 11
	}
}

func jpegSize(data []byte) (w, h int, err error) {
	c, err := jpeg.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

func jpegEXIF(data []byte) []byte {
	hd, err := readJPEGHeader(data)
	if err != nil {
		return nil
	}
	return hd.exif
}

// maxScans bounds the work that a small progressive file can ask for: each
// scan visits every block. Encoders write about ten.
const maxScans = 1000

// decodeJPEG decodes as libjpeg does by default, up to the rounding of the
// inverse DCT (at most 2 levels apart): interpolated chroma and the integer
// YCbCr conversion.
func decodeJPEG(data []byte) (*Image, error) {
	hd, err := readJPEGHeader(data)
	if err != nil {
		return nil, err
	}
	if bytes.Count(data, []byte{0xff, 0xda}) > maxScans {
		return nil, errors.New("too many scans")
	}
	if len(hd.components) == 4 {
		return decodeJPEG4(data, hd)
	}
	src, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m, ok := src.(*image.YCbCr)
	if !ok {
		return fromStd(src)
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	y0 := hd.components[0]
	c0 := hd.components[1]
	rh, rv := int(y0.h/c0.h), int(y0.v/c0.v) // the decoder has checked that these divide
	cb := upsample(plane{m.Cb, m.CStride}, w, h, rh, rv)
	cr := upsample(plane{m.Cr, m.CStride}, w, h, rh, rv)
	im := newImage(w, h)
	for y := range h {
		for x := range w {
			i := y*w + x
			jfifRGB(im.Pix[3*i:3*i+3], m.Y[y*m.YStride+x], cb[i], cr[i])
		}
	}
	return im, nil
}

// decodeJPEG4 decodes CMYK and YCCK files. Pillow takes both as Adobe writes
// them, inverted, with or without the Adobe marker.
//
// Go's decoder would convert YCCK with replicated chroma, and refuses a file
// without the marker. With a marker that says "no transform" it hands out the
// four planes as they are (inverted), so that is what it gets to see.
func decodeJPEG4(data []byte, hd jpegHeader) (*Image, error) {
	ycck := hd.adobe > 0 && data[hd.adobe] == 2
	raw := slices.Concat(data[:2], []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"), data[2:])
	if hd.adobe > 0 {
		raw = slices.Clone(data)
		raw[hd.adobe] = 0
	}
	src, err := jpeg.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	m, ok := src.(*image.CMYK)
	if !ok {
		return nil, errors.New("four components do not decode to CMYK")
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	r := int(hd.components[0].h / hd.components[1].h) // 1, or 2 both ways
	// The planes as stored: components 1 and 2 at their own resolution.
	chroma := func(c int) []uint8 {
		cw, ch := (w+r-1)/r, (h+r-1)/r
		p := make([]uint8, cw*ch)
		for y := range ch {
			for x := range cw {
				p[y*cw+x] = 255 - m.Pix[y*r*m.Stride+x*r*4+c]
			}
		}
		return upsample(plane{p, cw}, w, h, r, r)
	}
	p1, p2 := chroma(1), chroma(2)
	im := newImage(w, h)
	for i := range w * h {
		dst, px := im.Pix[3*i:3*i+3], m.Pix[i/w*m.Stride+i%w*4:]
		k := 255 - px[3]
		if ycck {
			// libjpeg's YCCK to CMYK gives 255-RGB, which Adobe's inversion
			// turns back into RGB.
			jfifRGB(dst, 255-px[0], p1[i], p2[i])
		} else {
			dst[0], dst[1], dst[2] = 255-px[0], p1[i], p2[i]
			for c := range dst {
				dst[c] = 255 - dst[c]
			}
		}
		for c := range dst {
			dst[c] = cmykLevel(dst[c], k)
		}
	}
	return im, nil
}

// cmykLevel is Pillow's CMYK to RGB (libImaging/Convert.c, cmyk2rgb) for an ink
// level of 0 to 255 and white, which is 255 minus the level of black.
func cmykLevel(ink, white uint8) uint8 {
	t := int(ink)*int(white) + 128
	return clamp8(int(white) - (t>>8+t)>>8)
}

// jfifRGB is libjpeg's fixed-point conversion (jdcolor.c): 16 fractional bits,
// the rounding constant of green in one term only.
func jfifRGB(dst []uint8, y, cb, cr uint8) {
	l, b, r := int(y), int(cb)-128, int(cr)-128
	dst[0] = clamp8(l + (91881*r+1<<15)>>16)
	dst[1] = clamp8(l + (-22554*b-46802*r+1<<15)>>16)
	dst[2] = clamp8(l + (116130*b+1<<15)>>16)
}
