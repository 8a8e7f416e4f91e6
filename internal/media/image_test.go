package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// imageFiles lists testdata/images.
func imageFiles(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata/images")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Every container, colour type, chroma ratio and orientation equals Pillow byte
// for byte.
func TestDecodeImagePillow(t *testing.T) {
	p := openPillow(t)
	for _, name := range imageFiles(t) {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeImage(name, readFile(t, filepath.Join("testdata/images", name)), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			pixelsClose(t, name, got, p.image(t, name), 0)
		})
	}
}

// The same picture in all eight orientations gives the same upright pixels.
func TestOrientation(t *testing.T) {
	// 3 x 2 pixels, numbered; what each orientation shows, row by row.
	im := newImage(3, 2)
	for i := range 6 {
		im.Pix[3*i] = uint8(i)
	}
	for o, want := range map[int][]uint8{
		0: {0, 1, 2, 3, 4, 5}, // unknown values change nothing
		1: {0, 1, 2, 3, 4, 5},
		2: {2, 1, 0, 5, 4, 3},
		3: {5, 4, 3, 2, 1, 0},
		4: {3, 4, 5, 0, 1, 2},
		5: {0, 3, 1, 4, 2, 5},
		6: {3, 0, 4, 1, 5, 2},
		7: {5, 2, 4, 1, 3, 0},
		8: {2, 5, 1, 4, 0, 3},
		9: {0, 1, 2, 3, 4, 5},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			got := im.orient(o)
			var px []uint8
			for i := range got.W * got.H {
				px = append(px, got.Pix[3*i])
			}
			if !bytes.Equal(px, want) {
				t.Errorf("pixels %d, want %d", px, want)
			}
			if turned := o >= 5 && o <= 8; turned != (got.W == 2) {
				t.Errorf("%d x %d pixels", got.W, got.H)
			}
		})
	}
}

func TestEXIFOrientation(t *testing.T) {
	entry := func(order binary.AppendByteOrder, magic string, kind uint16, value []byte) []byte {
		b := order.AppendUint32([]byte(magic), 8)
		b = order.AppendUint16(b, 2)
		b = order.AppendUint16(b, 0x0100) // another tag first
		b = append(b, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0)
		b = order.AppendUint16(b, tagOrientation)
		b = order.AppendUint16(b, kind)
		b = order.AppendUint32(b, 1)
		return append(b, value...)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	good := entry(le, "II*\x00", 3, []byte{6, 0, 0, 0})
	for _, c := range []struct {
		name string
		data []byte
		want int
	}{
		{"little endian", good, 6},
		{"big endian", entry(be, "MM\x00*", 3, []byte{0, 8, 0, 0}), 8},
		{"long", entry(be, "MM\x00*", 4, []byte{0, 0, 0, 5}), 5},
		{"byte", entry(le, "II*\x00", 1, []byte{3, 0, 0, 0}), 3},
		{"text", entry(le, "II*\x00", 2, []byte{6, 0, 0, 0}), 1},
		{"zero", entry(le, "II*\x00", 3, []byte{0, 0, 0, 0}), 1},
		{"nine", entry(le, "II*\x00", 3, []byte{9, 0, 0, 0}), 1},
		{"nothing", nil, 1},
		{"cut in the entry", good[:len(good)-1], 1},
		{"cut in the count", good[:9], 1},
		{"directory beyond the end", le.AppendUint32([]byte("II*\x00"), 0xffffffff), 1},
		{"no TIFF", []byte("Exif\x00\x00II*\x00"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exifOrientation(c.data); got != c.want {
				t.Errorf("orientation %d, want %d", got, c.want)
			}
		})
	}
}

// Files cut short at any place give an error that names file and reason.
func TestDecodeImageTruncated(t *testing.T) {
	for _, name := range imageFiles(t) {
		data := readFile(t, filepath.Join("testdata/images", name))
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 3, 13, 30, len(data) / 4, len(data) / 2, len(data) * 3 / 4, len(data) * 7 / 8} {
				if n >= len(data)-4 {
					continue
				}
				_, err := DecodeImage(name, data[:n:n], Limits{})
				if err == nil {
					t.Errorf("the first %d of %d bytes decode", n, len(data))
					continue
				}
				if !strings.HasPrefix(err.Error(), name+": ") || len(err.Error()) < len(name)+8 {
					t.Errorf("%d bytes: error %q does not say what is wrong with which file", n, err)
				}
				if strings.Contains(err.Error(), "decoder stopped") {
					t.Errorf("%d bytes: panic: %v", n, err)
				}
			}
		})
	}
}

// pngChunk is one chunk of a PNG file.
func pngChunk(id string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, id...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// Headers that claim huge pictures are refused before memory is taken.
func TestDecodeImageLimits(t *testing.T) {
	be, le := binary.BigEndian, binary.LittleEndian
	pngHeader := append([]byte("\x89PNG\r\n\x1a\n"),
		pngChunk("IHDR", append(be.AppendUint32(be.AppendUint32(nil, 60000), 50000), 8, 2, 0, 0, 0))...)
	jpegHeader := []byte("\xff\xd8\xff\xc0\x00\x0b\x08\xff\xff\xff\xff\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00")
	gifHeader := []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00;")
	webpHeader := []byte("RIFF\x23\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xffVP8L\x05\x00\x00\x00\x2f\xff\x3f\xff\x0f\x00")
	bmpHeader := make([]byte, 54)
	copy(bmpHeader, "BM")
	le.PutUint32(bmpHeader[10:], 54)
	le.PutUint32(bmpHeader[14:], 40)
	le.PutUint32(bmpHeader[18:], 100000)
	le.PutUint32(bmpHeader[22:], 100000)
	le.PutUint16(bmpHeader[26:], 1)
	le.PutUint16(bmpHeader[28:], 24)
	tiffHeader := le.AppendUint16(le.AppendUint32([]byte("II*\x00"), 8), 4)
	for _, tag := range [][2]uint32{{0x100, 100000}, {0x101, 100000}, {0x102, 8}, {0x106, 1}} {
		tiffHeader = le.AppendUint16(le.AppendUint16(tiffHeader, uint16(tag[0])), 4)
		tiffHeader = le.AppendUint32(le.AppendUint32(tiffHeader, 1), tag[1])
	}
	for name, data := range map[string][]byte{
		"png": pngHeader, "jpeg": jpegHeader, "gif": gifHeader, "webp": webpHeader, "bmp": bmpHeader, "tiff": tiffHeader,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodeImage("huge", data, Limits{})
			runtime.ReadMemStats(&after)
			var limit *LimitError
			if !errors.As(err, &limit) || limit.What != "pixels" {
				t.Fatalf("error %v, want a limit on pixels", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("took %d bytes of memory for the header", n)
			}
		})
	}

	data := readFile(t, "testdata/images/rgba.png") // 23 x 17
	if _, err := DecodeImage("x", data, Limits{MaxPixels: 23 * 17, MaxBytes: int64(len(data))}); err != nil {
		t.Errorf("exactly at the limits: %v", err)
	}
	for name, lim := range map[string]Limits{"pixels": {MaxPixels: 23*17 - 1}, "bytes": {MaxBytes: int64(len(data)) - 1}} {
		var limit *LimitError
		if _, err := DecodeImage("x", data, lim); !errors.As(err, &limit) || limit.What != name {
			t.Errorf("one above the limit: %v, want a limit on %s", err, name)
		}
	}
}

func TestDecodeImageRefusals(t *testing.T) {
	arithmetic := bytes.Clone(readFile(t, "testdata/images/grey.jpg"))
	arithmetic[bytes.Index(arithmetic, []byte{0xff, 0xc0})+1] = 0xc9
	planar := bytes.Clone(readFile(t, "testdata/images/rgb-None.tif"))
	at := bytes.Index(planar, []byte{0x1c, 0x01, 3, 0})
	planar[at+8] = 2
	for _, c := range []struct {
		name, data, want string
	}{
		{"heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "heic"},
		{"avif", "\x00\x00\x00\x18ftypavif\x00\x00\x00\x00", "avif"},
		{"svg", "\n <svg xmlns=''/>", "svg"},
		{"text", "hello", "not an image"},
		{"sound", "RIFF\x00\x00\x00\x00WAVE", "not an image"},
		{"arithmetic jpeg", string(arithmetic), "arithmetic coding"},
		{"planar tiff", string(planar), "separate planes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeImage("file", []byte(c.data), Limits{})
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "file: ") {
				t.Errorf("error %v, want an unsupported file with %q", err, c.want)
			}
		})
	}
	var format *FormatError
	if _, err := DecodeImage("file", nil, Limits{}); !errors.As(err, &format) {
		t.Errorf("empty file: %v", err)
	}
}

// Damage that the file's own check sums or structure show is reported.
func TestDecodeImageDamaged(t *testing.T) {
	for _, c := range []struct {
		name, file string
		change     func([]byte)
	}{
		{"png check sum", "type2-8.png", func(b []byte) { b[len(b)/2] ^= 1 }},
		{"png size 0", "type2-8.png", func(b []byte) { copy(b[8:], pngChunk("IHDR", make([]byte, 13))) }},
		{"jpeg restart marker", "restart-baseline.jpg", func(b []byte) { b[bytes.Index(b, []byte{0xff, 0xd1})+1] = 0xd5 }},
		{"jpeg sampling 0", "ratio-2x2.jpg", func(b []byte) { b[bytes.Index(b, []byte{0xff, 0xc0})+11] = 0 }},
		{"jpeg size 0", "ratio-2x2.jpg", func(b []byte) { copy(b[bytes.Index(b, []byte{0xff, 0xc0})+5:], "\x00\x00") }},
		{"jpeg huffman table", "ratio-2x2.jpg", func(b []byte) { b[bytes.Index(b, []byte{0xff, 0xc4})+5] = 200 }},
		{"jpeg component", "ratio-2x2.jpg", func(b []byte) { b[bytes.Index(b, []byte{0xff, 0xda})+5] = 77 }},
		{"gif block", "plain.gif", func(b []byte) { b[13+3*256] = 0x55 }},
		{"webp frame tag", "lossy.webp", func(b []byte) { b[23] ^= 0xff }},
		{"bmp planes", "rgb.bmp", func(b []byte) { b[26] = 9 }},
		{"tiff strip offset", "rgb-None.tif", func(b []byte) {
			copy(b[bytes.Index(b, []byte{0x11, 0x01, 4, 0})+8:], "\xff\xff\xff\x7f")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytes.Clone(readFile(t, filepath.Join("testdata/images", c.file)))
			c.change(data)
			_, err := DecodeImage("damaged", data, Limits{})
			if err == nil || !strings.HasPrefix(err.Error(), "damaged: ") || strings.Contains(err.Error(), "decoder stopped") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A progressive file of many scans would cost a visit to every block for each.
func TestJPEGScanLimit(t *testing.T) {
	data := readFile(t, "testdata/images/progressive.jpg")
	sos := bytes.Index(data, []byte{0xff, 0xda})
	end := sos + 2 + bytes.IndexByte(data[sos+2:], 0xff)
	bomb := append([]byte{}, data[:end]...)
	for range maxScans {
		bomb = append(bomb, data[sos:end]...)
	}
	bomb = append(bomb, 0xff, 0xd9)
	_, err := DecodeImage("bomb", bomb, Limits{})
	if err == nil || !strings.Contains(err.Error(), "scans") {
		t.Errorf("error %v, want a limit on scans", err)
	}
}
