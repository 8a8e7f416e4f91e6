package media

import (
	"bytes"
	"errors"
	"fmt"
)

// Image is a decoded picture: 8-bit RGB, row-major, three bytes a pixel,
// upright (EXIF orientation applied).
type Image struct {
	W, H int
	Pix  []uint8 // [H, W, 3]
}

// Limits bounds what DecodeImage accepts. A zero field means the default.
type Limits struct {
	MaxPixels int64 // width x height; default DefaultMaxPixels
	MaxBytes  int64 // size of the file; default 256 MiB
}

const (
	// DefaultMaxPixels is the largest picture decoded unless the caller says
	// otherwise. The costliest format, progressive JPEG, takes about 16 bytes a
	// pixel while it is decoded.
	DefaultMaxPixels = 64 << 20
	// defaultMaxBytes is the largest image file read unless the caller says
	// otherwise.
	defaultMaxBytes = 256 << 20
)

func (l Limits) pixels() int64 {
	if l.MaxPixels > 0 {
		return l.MaxPixels
	}
	return DefaultMaxPixels
}

func (l Limits) bytes() int64 {
	if l.MaxBytes > 0 {
		return l.MaxBytes
	}
	return defaultMaxBytes
}

// check returns an error unless w x h is a picture within the limits.
func (l Limits) check(file, format string, w, h int) error {
	if w <= 0 || h <= 0 {
		return &FormatError{File: file, Format: format, Offset: -1, Err: fmt.Errorf("empty picture, %d x %d pixels", w, h)}
	}
	// Neither side can exceed 2^32, so the product fits.
	if n := int64(w) * int64(h); n > l.pixels() || n/int64(w) != int64(h) {
		return &LimitError{File: file, What: "pixels", Found: n, Max: l.pixels()}
	}
	return nil
}

// imageFormat is one image container.
type imageFormat struct {
	name  string
	magic string // '?' matches any byte
	// size reads the dimensions without decoding.
	size func(data []byte) (w, h int, err error)
	// decode returns the picture as stored, before orientation.
	decode func(data []byte) (*Image, error)
	// exif returns the TIFF structure with the metadata, or nil.
	exif func(data []byte) []byte
}

var imageFormats = []imageFormat{
	{"png", "\x89PNG\r\n\x1a\n", pngSize, decodePNG, pngEXIF},
	{"jpeg", "\xff\xd8", jpegSize, decodeJPEG, jpegEXIF},
	{"webp", "RIFF????WEBP", webpSize, decodeWebP, webpEXIF},
	{"gif", "GIF87a", gifSize, decodeGIF, noEXIF},
	{"gif", "GIF89a", gifSize, decodeGIF, noEXIF},
	{"bmp", "BM", bmpSize, decodeBMP, noEXIF},
	{"tiff", "II*\x00", tiffSize, decodeTIFF, tiffEXIF},
	{"tiff", "MM\x00*", tiffSize, decodeTIFF, tiffEXIF},
}

// foreignImages are formats that people do send; naming them makes a better
// error than "unknown".
var foreignImages = []struct{ name, magic string }{
	{"heic", "????ftyphei"},
	{"heic", "????ftypmif1"},
	{"avif", "????ftypavi"},
	{"jpeg xl", "\xff\x0a"},
	{"jpeg xl", "\x00\x00\x00\x0cJXL "},
	{"jpeg 2000", "\x00\x00\x00\x0cjP  "},
	{"psd", "8BPS"},
	{"ico", "\x00\x00\x01\x00"},
	{"svg", "<svg"},
	{"svg", "<?xml"},
	{"pdf", "%PDF-"},
}

func hasMagic(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && data[i] != magic[i] {
			return false
		}
	}
	return true
}

// DecodeImage decodes a PNG, JPEG, WebP, GIF, BMP or TIFF file to RGB as
// Pillow's open, exif_transpose and convert("RGB") do: alpha is dropped without
// blending, palettes are looked up, 16-bit colour keeps its high byte, 16-bit
// grey is clipped at 255, colour profiles are ignored. Of several frames the
// first is taken. name appears in errors only.
//
// Errors are [FormatError], [UnsupportedError] or [LimitError].
func DecodeImage(name string, data []byte, lim Limits) (*Image, error) {
	if n := int64(len(data)); n > lim.bytes() {
		return nil, &LimitError{File: name, What: "bytes", Found: n, Max: lim.bytes()}
	}
	f, err := sniffImage(name, data)
	if err != nil {
		return nil, err
	}
	var w, h int
	err = guard(func() (err error) {
		w, h, err = f.size(data)
		return err
	})
	if err != nil {
		return nil, imageErr(name, f.name, err)
	}
	if err := lim.check(name, f.name, w, h); err != nil {
		return nil, err
	}
	var im *Image
	err = guard(func() (err error) {
		im, err = f.decode(data)
		return err
	})
	if err != nil {
		return nil, imageErr(name, f.name, err)
	}
	return im.orient(exifOrientation(f.exif(data))), nil
}

func sniffImage(name string, data []byte) (imageFormat, error) {
	if len(data) == 0 {
		return imageFormat{}, &FormatError{File: name, Offset: -1, Err: errors.New("empty file")}
	}
	for _, f := range imageFormats {
		if hasMagic(data, f.magic) {
			return f, nil
		}
	}
	for _, f := range foreignImages {
		if hasMagic(bytes.TrimLeft(data[:min(len(data), 64)], "\ufeff \t\r\n"), f.magic) || hasMagic(data, f.magic) {
			return imageFormat{}, &UnsupportedError{File: name, Format: f.name, Reason: "image format is not supported; use png, jpeg, webp, gif, bmp or tiff"}
		}
	}
	return imageFormat{}, &UnsupportedError{File: name, Reason: "not an image in a known format (png, jpeg, webp, gif, bmp, tiff)"}
}

// imageErr sorts a decoder's error into damaged and unsupported.
func imageErr(name, format string, err error) error {
	if isUnsupported(err) {
		return &UnsupportedError{File: name, Format: format, Reason: err.Error()}
	}
	return formatErr(name, format, err)
}
