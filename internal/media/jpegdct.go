package media

// The constants of the inverse DCT by Loeffler, Ligtenberg and Moschytz with 13
// fractional bits, as libjpeg names them (jidctint.c).
const (
	dctBits  = 13
	passBits = 2 // kept between the passes

	fix0298631336 = 2446
	fix0390180644 = 3196
	fix0541196100 = 4433
	fix0765366865 = 6270
	fix0899976223 = 7373
	fix1175875602 = 9633
	fix1501321110 = 12299
	fix1847759065 = 15137
	fix1961570560 = 16069
	fix2053119869 = 16819
	fix2562915447 = 20995
	fix3072711026 = 25172
)

// inverse dequantises a block and writes its samples at block x, y. The result
// equals libjpeg's "islow" method, its default, in every bit.
func (c *jpegComponent) inverse(b *[64]int16, x, y int) {
	var ws [64]int32
	for i := range 8 {
		var in [8]int32
		for j := range in {
			in[j] = int32(b[8*j+i]) * int32(c.quant[8*j+i])
		}
		for j, v := range idct8(&in) {
			ws[8*j+i] = descale(v, dctBits-passBits)
		}
	}
	stride := 8 * c.stride
	for j := range 8 {
		row := c.pix[(8*y+j)*stride+8*x:][:8]
		for i, v := range idct8((*[8]int32)(ws[8*j:])) {
			row[i] = clamp8(int(descale(v, dctBits+passBits+3)) + 128)
		}
	}
}

// descale divides by a power of two, rounding to nearest.
func descale(v int32, bits uint) int32 { return (v + 1<<(bits-1)) >> bits }

// idct8 is the one-dimensional transform, scaled up by 2^dctBits * sqrt(8).
func idct8(in *[8]int32) [8]int32 {
	z1 := (in[2] + in[6]) * fix0541196100
	t2 := z1 - in[6]*fix1847759065
	t3 := z1 + in[2]*fix0765366865
	t0 := (in[0] + in[4]) << dctBits
	t1 := (in[0] - in[4]) << dctBits
	e0, e3 := t0+t3, t0-t3
	e1, e2 := t1+t2, t1-t2

	t0, t1, t2, t3 = in[7], in[5], in[3], in[1]
	z1 = -(t0 + t3) * fix0899976223
	z2 := -(t1 + t2) * fix2562915447
	z3 := -(t0 + t2) * fix1961570560
	z4 := -(t1 + t3) * fix0390180644
	z5 := (t0 + t1 + t2 + t3) * fix1175875602
	z3 += z5
	z4 += z5
	t0 = t0*fix0298631336 + z1 + z3
	t1 = t1*fix2053119869 + z2 + z4
	t2 = t2*fix3072711026 + z2 + z3
	t3 = t3*fix1501321110 + z1 + z4
	return [8]int32{e0 + t3, e1 + t2, e2 + t1, e3 + t0, e3 - t0, e2 - t1, e1 - t2, e0 - t3}
}
