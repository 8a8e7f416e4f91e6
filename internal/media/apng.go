package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image/png"
)

// apngFrame is one frame of an animated PNG.
type apngFrame struct {
	w, h, x, y int
	delay      float64
	dispose    disposal
	over       bool
	data       [][]byte // its compressed pixels, in pieces
}

// apngFile is the structure of an animated PNG.
type apngFile struct {
	ihdr   []byte
	shared [][]byte // whole chunks that every frame needs: palette, transparency
	frames []apngFrame
}

// parseAPNG reads a file as an animation; nil if it is a still picture.
// Source: https://wiki.mozilla.org/APNG_Specification.
func parseAPNG(data []byte) (*animation, error) {
	var f apngFile
	animated, ended := false, false
	for p := 8; !ended; {
		if len(data)-p < 12 {
			return nil, cutShort(p)
		}
		n := int64(binary.BigEndian.Uint32(data[p:]))
		if n+12 > int64(len(data)-p) {
			return nil, cutShort(p)
		}
		chunk := data[p : p+int(n)+12]
		id, body := string(chunk[4:8]), chunk[8:8+n]
		switch id {
		case "IHDR":
			f.ihdr = body
		case "PLTE", "tRNS":
			f.shared = append(f.shared, chunk)
		case "acTL":
			animated = true
		case "fcTL":
			if err := f.addFrame(body); err != nil {
				return nil, &FormatError{Offset: int64(p), Err: err}
			}
		case "IDAT", "fdAT":
			if id == "fdAT" {
				if len(body) < 4 || len(f.frames) == 0 {
					return nil, &FormatError{Offset: int64(p), Err: errors.New("frame data without a frame")}
				}
				body = body[4:] // sequence number
			}
			// A picture before the first frame control is for viewers that do
			// not animate.
			if len(f.frames) > 0 {
				last := &f.frames[len(f.frames)-1]
				last.data = append(last.data, body)
			}
		case "IEND":
			ended = true
		}
		p += len(chunk)
	}
	if !animated || len(f.frames) == 0 {
		return nil, nil
	}
	if len(f.ihdr) != 13 {
		return nil, errors.New("bad header")
	}
	a := &animation{
		w:     int(binary.BigEndian.Uint32(f.ihdr)),
		h:     int(binary.BigEndian.Uint32(f.ihdr[4:])),
		layer: f.layer,
	}
	for _, fr := range f.frames {
		a.delays = append(a.delays, fr.delay)
	}
	return a, nil
}

// addFrame reads a frame control chunk.
func (f *apngFile) addFrame(b []byte) error {
	if len(b) != 26 {
		return fmt.Errorf("frame control of %d bytes, want 26", len(b))
	}
	be := binary.BigEndian
	fr := apngFrame{w: int(be.Uint32(b[4:])), h: int(be.Uint32(b[8:])), x: int(be.Uint32(b[12:])), y: int(be.Uint32(b[16:]))}
	den := be.Uint16(b[22:])
	if den == 0 {
		den = 100
	}
	fr.delay = float64(be.Uint16(b[20:])) / float64(den)
	switch b[24] {
	case 1:
		fr.dispose = disposeClear
	case 2:
		fr.dispose = disposeRestore
	}
	fr.over = b[25] == 1
	f.frames = append(f.frames, fr)
	return nil
}

// layer decodes a frame by giving it the form of a PNG file of its own.
func (f apngFile) layer(i int) (layer, error) {
	fr := f.frames[i]
	w, h := int(binary.BigEndian.Uint32(f.ihdr)), int(binary.BigEndian.Uint32(f.ihdr[4:]))
	if fr.w < 1 || fr.h < 1 || fr.w > w || fr.h > h {
		return layer{}, fmt.Errorf("%d x %d pixels on a canvas of %d x %d", fr.w, fr.h, w, h)
	}
	file := []byte("\x89PNG\r\n\x1a\n")
	ihdr := binary.BigEndian.AppendUint32(nil, uint32(fr.w))
	ihdr = binary.BigEndian.AppendUint32(ihdr, uint32(fr.h))
	file = appendPNGChunk(file, "IHDR", append(ihdr, f.ihdr[8:]...))
	for _, c := range f.shared {
		file = append(file, c...)
	}
	for _, d := range fr.data {
		file = appendPNGChunk(file, "IDAT", d)
	}
	file = appendPNGChunk(file, "IEND", nil)
	m, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return layer{}, err
	}
	im, err := pngRGB(m, file)
	if err != nil {
		return layer{}, err
	}
	return layer{Image: im, alpha: alphaOf(m), x: fr.x, y: fr.y, over: fr.over, dispose: fr.dispose}, nil
}

func appendPNGChunk(dst []byte, id string, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	at := len(dst)
	dst = append(append(dst, id...), body...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}
