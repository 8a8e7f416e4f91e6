package media

import (
	"bytes"
	"image"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

func bmpSize(data []byte) (w, h int, err error) {
	c, err := bmp.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

func decodeBMP(data []byte) (*Image, error) {
	src, err := bmp.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return fromStd(src)
}

func tiffSize(data []byte) (w, h int, err error) {
	c, err := tiff.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

func decodeTIFF(data []byte) (*Image, error) {
	// The decoder does not look at the planar configuration and would read
	// separate planes as interleaved samples.
	if v, ok := tiffTag(data, tagPlanarConfig); ok && v == 2 {
		return nil, unsupportedFeature("storage of samples in separate planes")
	}
	src, err := tiff.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	im, err := fromStd(src)
	if err != nil {
		return nil, err
	}
	if v, _ := tiffTag(data, tagExtraSamples); v == 1 { // associated alpha
		unpremultiply(im, src)
	}
	return im, nil
}

func tiffEXIF(data []byte) []byte { return data }

// unpremultiply divides the colours by alpha, with Pillow's rounding (down)
// and its black for alpha 0 (libImaging/Unpack.c, unpackRGBa).
func unpremultiply(im *Image, src image.Image) {
	alpha := func(int) uint8 { return 255 }
	switch m := src.(type) {
	case *image.RGBA:
		alpha = func(i int) uint8 { return m.Pix[4*i+3] }
	case *image.RGBA64:
		alpha = func(i int) uint8 { return m.Pix[8*i+6] }
	}
	for i := range im.W * im.H {
		a := int(alpha(i))
		for c := range 3 {
			v := &im.Pix[3*i+c]
			switch a {
			case 255:
			case 0:
				*v = 0
			default:
				*v = clamp8(int(*v) * 255 / a)
			}
		}
	}
}
