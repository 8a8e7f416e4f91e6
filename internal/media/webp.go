package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// webpBody returns the chunks of a WebP file.
func webpBody(data []byte) ([]byte, error) {
	if len(data) < 12 {
		return nil, cutShort(len(data))
	}
	n := int64(binary.LittleEndian.Uint32(data[4:]))
	if n < 4 {
		return nil, &FormatError{Offset: 4, Err: fmt.Errorf("file of %d bytes", n)}
	}
	if n+8 > int64(len(data)) {
		return nil, cutShort(len(data))
	}
	return data[12 : n+8], nil
}

// webpChunks calls f for each chunk of a RIFF body, without its padding, until
// f returns false. It returns how far it came: less than the length of the body
// if f stopped it or if a chunk is cut short.
func webpChunks(body []byte, f func(id string, data []byte) bool) int {
	p := 0
	for len(body)-p >= 8 {
		n := int64(binary.LittleEndian.Uint32(body[p+4:]))
		if n+8 > int64(len(body)-p) {
			return p
		}
		data := body[p+8 : p+8+int(n)]
		if !f(string(body[p:p+4]), data) {
			return p
		}
		p = min(p+8+int(n+n&1), len(body))
	}
	return p
}

// webpStill locates the picture of a WebP file: the bitstream, and for the
// extended format the canvas and the place of the first frame on it.
type webpStill struct {
	lossless bool
	bits     []byte
	w, h     int // of the canvas
	x, y     int // of the frame
}

// findWebP searches the chunks of a file, or of one frame.
func findWebP(body []byte) (webpStill, error) {
	var s webpStill
	bitstream := func(id string, c []byte) bool {
		if id == "VP8 " || id == "VP8L" {
			s.bits, s.lossless = c, id == "VP8L"
		}
		return s.bits == nil
	}
	webpChunks(body, func(id string, c []byte) bool {
		switch {
		case id == "VP8X" && len(c) >= 10:
			s.w, s.h = uint24(c[4:])+1, uint24(c[7:])+1
		case id == "ANMF" && len(c) >= 16:
			s.x, s.y = 2*uint24(c), 2*uint24(c[3:])
			webpChunks(c[16:], bitstream)
			return s.bits == nil
		}
		return bitstream(id, c)
	})
	if s.bits == nil {
		return s, errors.New("no picture data")
	}
	w, h, err := s.frameSize()
	if err != nil {
		return s, err
	}
	if s.w == 0 {
		s.w, s.h = w, h
	}
	if s.x+w > s.w || s.y+h > s.h {
		return s, fmt.Errorf("frame of %d x %d at %d, %d on a canvas of %d x %d", w, h, s.x, s.y, s.w, s.h)
	}
	return s, nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// frameSize reads the size from the bitstream's own header.
func (s webpStill) frameSize() (w, h int, err error) {
	if s.lossless {
		c, err := vp8l.DecodeConfig(bytes.NewReader(s.bits))
		return c.Width, c.Height, err
	}
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(s.bits), len(s.bits))
	fh, err := d.DecodeFrameHeader()
	return fh.Width, fh.Height, err
}

func webpSize(data []byte) (w, h int, err error) {
	body, err := webpBody(data)
	if err != nil {
		return 0, 0, err
	}
	s, err := findWebP(body)
	return s.w, s.h, err
}

// decodeWebP decodes a still, or the first frame of an animation. Alpha is not
// even read: it does not touch the colours.
func decodeWebP(data []byte) (*Image, error) {
	body, err := webpBody(data)
	if err != nil {
		return nil, err
	}
	s, err := findWebP(body)
	if err != nil {
		return nil, err
	}
	frame, err := s.decodeFrame()
	if err != nil {
		return nil, err
	}
	if frame.W == s.w && frame.H == s.h {
		return frame, nil
	}
	im := newImage(s.w, s.h) // libwebp's background is transparent black
	im.paste(frame, s.x, s.y)
	return im, nil
}

func (s webpStill) decodeFrame() (*Image, error) {
	if s.lossless {
		m, err := vp8l.Decode(bytes.NewReader(s.bits))
		if err != nil {
			return nil, err
		}
		return fromStd(m)
	}
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(s.bits), len(s.bits))
	if _, err := d.DecodeFrameHeader(); err != nil {
		return nil, err
	}
	m, err := d.DecodeFrame()
	if err != nil {
		return nil, err
	}
	return webpRGB(m), nil
}

// webpEXIF returns the body of the EXIF chunk, without the JPEG-style prefix
// that some writers put before it.
func webpEXIF(data []byte) []byte {
	var exif []byte
	body, _ := webpBody(data) // the file has been decoded, so this cannot fail
	webpChunks(body, func(id string, c []byte) bool {
		if id == "EXIF" {
			exif = bytes.TrimPrefix(c, []byte("Exif\x00\x00"))
		}
		return exif == nil
	})
	return exif
}

// webpRGB converts a VP8 frame as libwebp does: chroma interpolated with
// weights 9, 3, 3, 1 (dsp/upsampling.c), then limited-range BT.601 in fixed
// point (dsp/yuv.h). Go's colour model would read it as full-range JFIF.
func webpRGB(m *image.YCbCr) *Image {
	im := newImage(m.Rect.Dx(), m.Rect.Dy())
	cw, ch := (im.W+1)/2, (im.H+1)/2
	level := func(v int) uint8 { return clamp8(v >> 6) }
	i := 0
	for y := range im.H {
		near, far := y/2*m.CStride, neighbour(y, ch)*m.CStride
		for x := range im.W {
			nx, fx := x/2, neighbour(x, cw)
			chroma := func(p []uint8) int {
				return (9*int(p[near+nx]) + 3*int(p[near+fx]) + 3*int(p[far+nx]) + int(p[far+fx]) + 8) >> 4
			}
			l := int(m.Y[y*m.YStride+x]) * 19077 >> 8
			u, v := chroma(m.Cb), chroma(m.Cr)
			im.Pix[i] = level(l + v*26149>>8 - 14234)
			im.Pix[i+1] = level(l - u*6419>>8 - v*13320>>8 + 8708)
			im.Pix[i+2] = level(l + u*33050>>8 - 17685)
			i += 3
		}
	}
	return im
}
