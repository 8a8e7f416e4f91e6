package media

import "math"

// filter is a resampling kernel.
type filter int

// The kernels of Pillow's Image.resize that antialias.
const (
	bilinear filter = iota // triangle, support 1
	bicubic                // Keys, a = -0.5, support 2
	lanczos                // windowed sinc, a = 3
)

// support is the kernel's radius at a scale of 1.
func (f filter) support() float64 {
	switch f {
	case bilinear:
		return 1
	case bicubic:
		return 2
	}
	return 3
}

// at evaluates the kernel.
func (f filter) at(x float64) float64 {
	switch f {
	case bilinear:
		return max(0, 1-math.Abs(x))
	case bicubic:
		const a = -0.5
		x = math.Abs(x)
		if x < 1 {
			return ((a+2)*x-(a+3))*x*x + 1
		}
		if x < 2 {
			return (((x-5)*x+8)*x - 4) * a
		}
		return 0
	}
	if -3 <= x && x < 3 {
		return sinc(x) * sinc(x/3)
	}
	return 0
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// resize scales the picture to w x h, both at least 1. It equals Pillow's
// Image.resize byte for byte (libImaging/Resample.c): the kernel is widened
// when shrinking, weights are rounded to 22 fractional bits, the horizontal
// pass comes first and is rounded to bytes before the vertical one, and a pass
// that changes nothing is left out. Unlike in Pillow the result may share
// memory with im if the size is the same.
func resize(im *Image, w, h int, f filter) *Image {
	if w < 1 || h < 1 {
		panic("media: Resize to less than one pixel")
	}
	if w != im.W {
		im = resizeRows(im, w, f)
	}
	if h != im.H {
		im = resizeColumns(im, h, f)
	}
	return im
}

const weightBits = 32 - 8 - 2

// taps are the weights of one output sample: w[i] belongs to input first+i.
type taps struct {
	first int
	w     []int32
}

// filterTaps computes the weights for scaling a line of in samples to out.
func filterTaps(in, out int, f filter) []taps {
	scale := float64(in) / float64(out)
	stretch := max(scale, 1)
	radius := f.support() * stretch
	ts := make([]taps, out)
	for i := range ts {
		centre := (float64(i) + 0.5) * scale
		lo := max(int(centre-radius+0.5), 0)
		hi := min(int(centre+radius+0.5), in)
		weights := make([]float64, hi-lo)
		sum := 0.0
		for j := range weights {
			weights[j] = f.at((float64(j+lo) - centre + 0.5) * (1 / stretch))
			sum += weights[j]
		}
		ts[i] = taps{lo, make([]int32, len(weights))}
		for j, v := range weights {
			if sum != 0 {
				v /= sum
			}
			// Half away from zero, by truncation as in C.
			ts[i].w[j] = int32(v*(1<<weightBits) + math.Copysign(0.5, v))
		}
	}
	return ts
}

func clampWeighted(v int32) uint8 { return uint8(min(max(v>>weightBits, 0), 255)) }

const weightHalf = 1 << (weightBits - 1)

func resizeRows(im *Image, w int, f filter) *Image {
	ts := filterTaps(im.W, w, f)
	out := newImage(w, im.H)
	i := 0
	for y := range im.H {
		row := im.Pix[y*im.W*3 : (y+1)*im.W*3]
		for _, t := range ts {
			r, g, b := int32(weightHalf), int32(weightHalf), int32(weightHalf)
			px := row[t.first*3:]
			for j, k := range t.w {
				r += int32(px[3*j]) * k
				g += int32(px[3*j+1]) * k
				b += int32(px[3*j+2]) * k
			}
			out.Pix[i], out.Pix[i+1], out.Pix[i+2] = clampWeighted(r), clampWeighted(g), clampWeighted(b)
			i += 3
		}
	}
	return out
}

func resizeColumns(im *Image, h int, f filter) *Image {
	out := newImage(im.W, h)
	line := im.W * 3
	sum := make([]int32, line)
	for y, t := range filterTaps(im.H, h, f) {
		for i := range sum {
			sum[i] = weightHalf
		}
		for j, k := range t.w {
			for i, v := range im.Pix[(t.first+j)*line : (t.first+j+1)*line] {
				sum[i] += int32(v) * k
			}
		}
		for i, v := range sum {
			out.Pix[y*line+i] = clampWeighted(v)
		}
	}
	return out
}
