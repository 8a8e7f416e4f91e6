package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/webp"
)

// webpFrame is one frame of an animated WebP.
type webpFrame struct {
	x, y, w, h int
	delay      float64
	dispose    disposal
	over       bool
	chunks     []byte // alpha and bitstream
}

// parseWebPAnimation reads a file as an animation; nil if it is a still picture.
// Source: https://developers.google.com/speed/webp/docs/riff_container.
func parseWebPAnimation(data []byte) (*animation, error) {
	body, err := webpBody(data)
	if err != nil {
		return nil, err
	}
	a := &animation{}
	var frames []webpFrame
	end := webpChunks(body, func(id string, c []byte) bool {
		switch {
		case id == "VP8X" && len(c) >= 10:
			a.w, a.h = uint24(c[4:])+1, uint24(c[7:])+1
		case id == "ANMF" && len(c) >= 16:
			f := webpFrame{
				x: 2 * uint24(c), y: 2 * uint24(c[3:]), w: uint24(c[6:]) + 1, h: uint24(c[9:]) + 1,
				delay:  float64(uint24(c[12:])) / 1000,
				over:   c[15]&2 == 0,
				chunks: c[16:],
			}
			if c[15]&1 != 0 {
				f.dispose = disposeClear
			}
			frames = append(frames, f)
			a.delays = append(a.delays, f.delay)
		}
		return true
	})
	if len(frames) == 0 {
		return nil, nil
	}
	if a.w == 0 {
		return nil, errors.New("animation without a canvas size")
	}
	if end < len(body) {
		return nil, cutShort(12 + end)
	}
	a.layer = func(i int) (layer, error) {
		if f := frames[i]; f.x+f.w > a.w || f.y+f.h > a.h {
			return layer{}, fmt.Errorf("%d x %d pixels at %d, %d on a canvas of %d x %d", f.w, f.h, f.x, f.y, a.w, a.h)
		}
		return frames[i].decode()
	}
	return a, nil
}

// decode decodes a frame by giving it the form of a WebP file of its own.
func (f webpFrame) decode() (layer, error) {
	s, err := findWebP(f.chunks)
	if err != nil {
		return layer{}, err
	}
	if s.w != f.w || s.h != f.h {
		return layer{}, fmt.Errorf("picture of %d x %d pixels in a frame of %d x %d", s.w, s.h, f.w, f.h)
	}
	l := layer{x: f.x, y: f.y, over: f.over, dispose: f.dispose}
	var alpha []byte
	webpChunks(f.chunks, func(id string, c []byte) bool {
		if id == "ALPH" {
			alpha = c
		}
		return alpha == nil
	})
	if s.lossless || alpha == nil {
		if l.Image, err = s.decodeFrame(); err != nil || !s.lossless {
			return l, err
		}
	}
	m, err := webp.Decode(bytes.NewReader(f.file(alpha, s)))
	if err != nil {
		return layer{}, err
	}
	l.alpha = alphaOf(m)
	if l.Image == nil {
		y, ok := m.(*image.NYCbCrA)
		if !ok {
			return layer{}, fmt.Errorf("decoder returned %T", m)
		}
		l.Image = webpRGB(&y.YCbCr)
	}
	return l, nil
}

// file builds a WebP file of one frame.
func (f webpFrame) file(alpha []byte, s webpStill) []byte {
	le := binary.LittleEndian
	var body []byte
	chunk := func(id string, c []byte) {
		body = le.AppendUint32(append(body, id...), uint32(len(c)))
		body = append(body, c...)
		if len(c)%2 == 1 {
			body = append(body, 0)
		}
	}
	if alpha != nil && !s.lossless {
		const hasAlpha = 1 << 4
		head := []byte{hasAlpha, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		for i := range 3 {
			head[4+i], head[7+i] = byte((f.w-1)>>(8*i)), byte((f.h-1)>>(8*i))
		}
		chunk("VP8X", head)
		chunk("ALPH", alpha)
	}
	if s.lossless {
		chunk("VP8L", s.bits)
	} else {
		chunk("VP8 ", s.bits)
	}
	file := le.AppendUint32([]byte("RIFF"), uint32(4+len(body)))
	return append(append(file, "WEBP"...), body...)
}
