package media

// rgb brings the planes to full size and converts them, as libjpeg and Pillow
// do together.
func (d *jpegDecoder) rgb() *Image {
	var planes [4][]uint8
	for i, c := range d.components {
		planes[i] = upsample(plane{c.pix, 8 * c.stride}, d.w, d.h, d.hMax/c.h, d.vMax/c.v)
	}
	im := newImage(d.w, d.h)
	transformed := d.transformed()
	for i := range d.w * d.h {
		dst := im.Pix[3*i : 3*i+3]
		switch {
		case len(d.components) == 1:
			dst[0], dst[1], dst[2] = planes[0][i], planes[0][i], planes[0][i]
			continue
		case transformed:
			jfifRGB(dst, planes[0][i], planes[1][i], planes[2][i])
		default:
			dst[0], dst[1], dst[2] = planes[0][i], planes[1][i], planes[2][i]
		}
		if len(d.components) == 4 {
			// Pillow takes all four-component files as Adobe writes them, with
			// inverted inks. For YCCK libjpeg gives 255-RGB, which the
			// inversion turns back into RGB: dst is the level of each ink then.
			if !transformed {
				dst[0], dst[1], dst[2] = 255-dst[0], 255-dst[1], 255-dst[2]
			}
			for c := range dst {
				dst[c] = cmykLevel(dst[c], planes[3][i])
			}
		}
	}
	return im
}

// transformed tells luma and chroma from plain colours by libjpeg's rules
// (jdapimin.c, default_decompress_parms).
func (d *jpegDecoder) transformed() bool {
	switch len(d.components) {
	case 1:
		return false
	case 4:
		return d.adobe > 0
	}
	if d.jfif {
		return true
	}
	if d.adobe >= 0 {
		return d.adobe != 0
	}
	c := d.components
	return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B')
}

// cmykLevel is Pillow's CMYK to RGB (libImaging/Convert.c, cmyk2rgb) for one
// ink; white is 255 minus the level of black.
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
