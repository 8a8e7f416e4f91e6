package media

// plane is one colour channel of a JPEG, at its own resolution.
type plane struct {
	pix    []uint8
	stride int
}

func (p plane) at(x, y int) int { return int(p.pix[y*p.stride+x]) }

// upsample brings a chroma plane to w x h, as libjpeg does by default
// (jdsample.c): triangle filter for ratios of 2, replication for all others.
// rh and rv are the horizontal and vertical ratios.
//
//	res: [h, w]
func upsample(p plane, w, h, rh, rv int) []uint8 {
	cw, ch := (w+rh-1)/rh, (h+rv-1)/rv
	out := make([]uint8, w*h)
	switch {
	case rh == 2 && rv == 1 && cw > 2:
		upsampleH2V1(out, p, w, h, cw)
	case rh == 2 && rv == 2 && cw > 2:
		upsampleH2V2(out, p, w, h, cw, ch)
	case rh == 1 && rv == 2:
		upsampleH1V2(out, p, w, h, ch)
	default:
		for y := range h {
			for x := range w {
				out[y*w+x] = p.pix[y/rv*p.stride+x/rh]
			}
		}
	}
	return out
}

// neighbour returns the sample that shares an output sample at position i with
// sample i/2: the previous one for even i, the next for odd i, within 0..n-1.
func neighbour(i, n int) int {
	if i&1 == 0 {
		return max(i/2-1, 0)
	}
	return min(i/2+1, n-1)
}

// upsampleH2V1 weighs 3/4 the nearer sample and 1/4 the further one. The
// rounding constant alternates so that there is no bias.
func upsampleH2V1(out []uint8, p plane, w, h, cw int) {
	for y := range h {
		for x := range w {
			out[y*w+x] = uint8((3*p.at(x/2, y) + p.at(neighbour(x, cw), y) + 1 + x&1) >> 2)
		}
	}
}

// upsampleH1V2 is the same between rows.
func upsampleH1V2(out []uint8, p plane, w, h, ch int) {
	for y := range h {
		for x := range w {
			out[y*w+x] = uint8((3*p.at(x, y/2) + p.at(x, neighbour(y, ch)) + 1 + y&1) >> 2)
		}
	}
}

// upsampleH2V2 applies the triangle in both directions and rounds once.
func upsampleH2V2(out []uint8, p plane, w, h, cw, ch int) {
	for y := range h {
		near, far := y/2, neighbour(y, ch)
		column := func(x int) int { return 3*p.at(x, near) + p.at(x, far) }
		for x := range w {
			out[y*w+x] = uint8((3*column(x/2) + column(neighbour(x, cw)) + 8 - x&1) >> 4)
		}
	}
}
