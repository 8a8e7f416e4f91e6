package media

import "encoding/binary"

// TIFF tags that are read here; EXIF metadata is a TIFF directory too.
const (
	tagOrientation  = 0x0112
	tagExtraSamples = 0x0152
	tagPlanarConfig = 0x011c
)

// noEXIF serves the formats that cannot hold an orientation.
func noEXIF([]byte) []byte { return nil }

// tiffTag returns the first value of a tag of byte, short or long type in the
// first directory of a TIFF structure. Structures that are damaged before the
// tag count as lacking it.
func tiffTag(tiff []byte, tag uint16) (v uint32, ok bool) {
	if len(tiff) < 8 {
		return 0, false
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 0, false
	}
	off := int64(order.Uint32(tiff[4:]))
	if off+2 > int64(len(tiff)) {
		return 0, false
	}
	entries := tiff[off+2:]
	for n := int(order.Uint16(tiff[off:])); n > 0 && len(entries) >= 12; n, entries = n-1, entries[12:] {
		if order.Uint16(entries) != tag {
			continue
		}
		// Values of up to four bytes are stored in the entry itself. The tags
		// above never need more.
		switch order.Uint16(entries[2:]) {
		case 1: // byte
			return uint32(entries[8]), true
		case 3: // short
			return uint32(order.Uint16(entries[8:])), true
		case 4: // long
			return order.Uint32(entries[8:]), true
		}
		return 0, false
	}
	return 0, false
}

// exifOrientation returns 1 (upright) to 8. Absent, damaged or unknown values
// give 1.
func exifOrientation(tiff []byte) int {
	if v, ok := tiffTag(tiff, tagOrientation); ok && v >= 1 && v <= 8 {
		return int(v)
	}
	return 1
}

// orient returns the picture turned and mirrored to stand upright.
// o is the EXIF orientation, 1 to 8; 1 returns im itself.
func (im *Image) orient(o int) *Image {
	w, h := im.W, im.H
	var from func(x, y int) (int, int) // source of the pixel at x, y of the result
	switch o {
	case 2:
		from = func(x, y int) (int, int) { return w - 1 - x, y }
	case 3:
		from = func(x, y int) (int, int) { return w - 1 - x, h - 1 - y }
	case 4:
		from = func(x, y int) (int, int) { return x, h - 1 - y }
	case 5:
		from = func(x, y int) (int, int) { return y, x }
	case 6:
		from = func(x, y int) (int, int) { return y, h - 1 - x }
	case 7:
		from = func(x, y int) (int, int) { return w - 1 - y, h - 1 - x }
	case 8:
		from = func(x, y int) (int, int) { return w - 1 - y, x }
	default:
		return im
	}
	if o >= 5 {
		w, h = h, w
	}
	out := newImage(w, h)
	w, h = im.W, im.H
	i := 0
	for y := range out.H {
		for x := range out.W {
			sx, sy := from(x, y)
			s := (sy*w + sx) * 3
			copy(out.Pix[i:i+3], im.Pix[s:s+3])
			i += 3
		}
	}
	return out
}
