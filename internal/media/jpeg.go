package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The JPEG decoder is our own because the result has to equal libjpeg's, which
// the reference uses: its inverse DCT, interpolated chroma and fixed-point
// colour, bit for bit. Go's image/jpeg is up to three levels away in the DCT,
// hides the planes of four-component files, and rejects restart markers in the
// non-interleaved scans of subsampled files.

// jpegDecoder holds what the segments of a file have said so far.
// Names and rules: ITU-T T.81 (1992).
type jpegDecoder struct {
	data []byte
	w, h int

	progressive bool
	components  []jpegComponent
	hMax, vMax  int // largest sampling factors

	quant   [4]*[64]uint16 // in natural order
	dc, ac  [4]*huffman
	restart int // MCUs between restart markers, 0 for none
	scans   int

	jfif  bool
	adobe int    // colour transform of the Adobe marker, -1 without one
	exif  []byte // TIFF structure of the first EXIF segment
}

// jpegComponent is one colour channel.
type jpegComponent struct {
	id, table     uint8
	h, v          int         // sampling factors
	cols, rows    int         // blocks that hold picture
	stride        int         // blocks in a row, padded to whole MCUs
	quant         *[64]uint16 // as it was at the component's first scan
	coefficients  []int16     // [rows padded, stride, 64], progressive only
	pix           []uint8     // [8*rows padded, 8*stride]
	predictor     int         // of the DC coefficient
	width, height int         // in samples
}

// Markers.
const (
	jpegSOF0 = 0xc0 // baseline
	jpegSOF1 = 0xc1 // extended sequential
	jpegSOF2 = 0xc2 // progressive
	jpegDHT  = 0xc4
	jpegRST0 = 0xd0
	jpegSOI  = 0xd8
	jpegEOI  = 0xd9
	jpegSOS  = 0xda
	jpegDQT  = 0xdb
	jpegDRI  = 0xdd
	jpegAPP0 = 0xe0
)

func jpegSize(data []byte) (w, h int, err error) {
	d := jpegDecoder{data: data, adobe: -1}
	err = d.walk(true)
	return d.w, d.h, err
}

func jpegEXIF(data []byte) []byte {
	d := jpegDecoder{data: data, adobe: -1}
	_ = d.walk(true) // the file has been decoded, so this cannot fail
	return d.exif
}

// decodeJPEG decodes sequential and progressive Huffman-coded files of 8 bits.
func decodeJPEG(data []byte) (*Image, error) {
	d := jpegDecoder{data: data, adobe: -1}
	if err := d.walk(false); err != nil {
		return nil, err
	}
	if d.progressive {
		for i := range d.components {
			d.components[i].transform()
		}
	}
	return d.rgb(), nil
}

// walk reads the segments: to the first scan, or decoding all scans to the end.
func (d *jpegDecoder) walk(headerOnly bool) error {
	for p := 2; ; {
		marker, at := nextMarker(d.data, p)
		if marker == 0 {
			return cutShort(len(d.data))
		}
		p = at
		if marker == jpegEOI {
			return d.finish(at - 2)
		}
		if marker == 1 || marker >= jpegRST0 && marker <= jpegSOI { // no segment
			continue
		}
		if p+2 > len(d.data) {
			return cutShort(p)
		}
		n := int(binary.BigEndian.Uint16(d.data[p:]))
		if n < 2 {
			return &FormatError{Offset: int64(p), Err: errors.New("segment shorter than its length field")}
		}
		if p+n > len(d.data) {
			return cutShort(p)
		}
		body := d.data[p+2 : p+n]
		err := d.segment(marker, body)
		p += n
		if err == nil && marker == jpegSOS {
			if len(d.components) == 0 {
				return &FormatError{Offset: int64(at), Err: errors.New("scan before the frame header")}
			}
			if headerOnly {
				return nil
			}
			p, err = d.scan(body, p)
		}
		var unsupported unsupportedFeature
		var placed *FormatError
		if err != nil && !errors.As(err, &unsupported) && !errors.As(err, &placed) {
			err = &FormatError{Offset: int64(at), Err: err}
		}
		if err != nil {
			return err
		}
	}
}

// nextMarker finds the next marker from p on, and the offset behind it. Stray
// bytes before it are skipped, as libjpeg does. The marker is 0 at the end.
func nextMarker(data []byte, p int) (marker uint8, at int) {
	for {
		i := bytes.IndexByte(data[min(p, len(data)):], 0xff)
		if i < 0 {
			return 0, len(data)
		}
		for p += i + 1; p < len(data) && data[p] == 0xff; { // fill bytes
			p++
		}
		if p >= len(data) {
			return 0, len(data)
		}
		if p++; data[p-1] != 0 {
			return data[p-1], p
		}
	}
}

// segment takes one marker segment other than the scan header's data.
func (d *jpegDecoder) segment(marker uint8, body []byte) error {
	switch marker {
	case jpegSOF0, jpegSOF1, jpegSOF2:
		d.progressive = marker == jpegSOF2
		return d.frameHeader(body)
	case jpegDHT:
		return d.huffmanTables(body)
	case jpegDQT:
		return d.quantTables(body)
	case jpegDRI:
		if len(body) != 2 {
			return fmt.Errorf("restart interval of %d bytes, want 2", len(body))
		}
		d.restart = int(binary.BigEndian.Uint16(body))
	case jpegAPP0:
		d.jfif = d.jfif || bytes.HasPrefix(body, []byte("JFIF\x00"))
	case jpegAPP0 + 1:
		if tiff, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && d.exif == nil {
			d.exif = tiff
		}
	case jpegAPP0 + 14:
		if len(body) >= 12 && bytes.HasPrefix(body, []byte("Adobe")) {
			d.adobe = int(body[11])
		}
	case 0xc3, 0xc5, 0xc6, 0xc7, 0xcb, 0xcd, 0xce, 0xcf:
		return unsupportedFeature("lossless or hierarchical coding")
	case 0xc9, 0xca, 0xcc:
		return unsupportedFeature("arithmetic coding")
	}
	return nil
}

// frameHeader reads the size and the components. Memory is taken at the first
// scan, after the size has been checked.
func (d *jpegDecoder) frameHeader(b []byte) error {
	if d.components != nil {
		return errors.New("second frame header")
	}
	if len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return fmt.Errorf("frame header of %d bytes", len(b))
	}
	if b[0] != 8 {
		return unsupportedFeature(fmt.Sprintf("%d-bit samples", b[0]))
	}
	d.h, d.w = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	if n := b[5]; n != 1 && n != 3 && n != 4 {
		return unsupportedFeature(fmt.Sprintf("%d components", n))
	}
	for b := b[6:]; len(b) > 0; b = b[3:] {
		c := jpegComponent{id: b[0], h: int(b[1] >> 4), v: int(b[1] & 15), table: b[2]}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.table > 3 {
			return fmt.Errorf("component %d: sampling %d x %d, table %d", c.id, c.h, c.v, c.table)
		}
		if d.component(c.id) != nil {
			return fmt.Errorf("component %d twice", c.id)
		}
		d.components = append(d.components, c)
		d.hMax, d.vMax = max(d.hMax, c.h), max(d.vMax, c.v)
	}
	for i := range d.components {
		c := &d.components[i]
		if d.hMax%c.h != 0 || d.vMax%c.v != 0 {
			return unsupportedFeature("fractional sampling ratio")
		}
		c.width, c.height = ceilDiv(d.w*c.h, d.hMax), ceilDiv(d.h*c.v, d.vMax)
		c.cols, c.rows = ceilDiv(c.width, 8), ceilDiv(c.height, 8)
		c.stride = ceilDiv(d.w, 8*d.hMax) * c.h
	}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (d *jpegDecoder) component(id uint8) *jpegComponent {
	for i := range d.components {
		if d.components[i].id == id {
			return &d.components[i]
		}
	}
	return nil
}

func (d *jpegDecoder) quantTables(b []byte) error {
	for len(b) > 0 {
		size, table := 64*(1+int(b[0]>>4)), b[0]&15
		if b[0]>>4 > 1 || table > 3 || len(b) < 1+size {
			return fmt.Errorf("quantisation table %#x of %d bytes", b[0], len(b)-1)
		}
		t := new([64]uint16)
		for i, at := range zigzag {
			if size == 64 {
				t[at] = uint16(b[1+i])
			} else {
				t[at] = binary.BigEndian.Uint16(b[1+2*i:])
			}
		}
		d.quant[table] = t
		b = b[1+size:]
	}
	return nil
}

// finish checks at the end marker that every component has been scanned.
func (d *jpegDecoder) finish(offset int) error {
	if len(d.components) == 0 {
		return &FormatError{Offset: int64(offset), Err: errors.New("no picture")}
	}
	for _, c := range d.components {
		if c.quant == nil {
			return &FormatError{Offset: int64(offset), Err: fmt.Errorf("no scan of component %d", c.id)}
		}
	}
	return nil
}
