package media

import (
	"fmt"
	"math"
)

// The anti-alias filter: a sinc over this many zero crossings on each side, cut
// off a little below the lower Nyquist frequency, in a Kaiser window. Tones in
// the pass band come out with an error below -140 dB, tones above the cut-off
// are as far down.
const (
	resampleZeros   = 64
	resampleRolloff = 0.9475937167399596
	resampleBeta    = 14.769656459379492
)

// maxPhases bounds the filter bank. Rates that need more phases interpolate
// between neighbouring ones, which costs less than -120 dB at this number.
const maxPhases = 2048

// Resample changes the sample rate by band-limited interpolation. The result
// has ceil(len(x)*to/from) samples; its first is at the time of x's first. Both
// rates must lie in 1000..384000.
func Resample(x []float32, from, to int) ([]float32, error) {
	for _, r := range []int{from, to} {
		if r < minRate || r > maxRate {
			return nil, fmt.Errorf("resample from %d to %d samples a second: want %d to %d", from, to, minRate, maxRate)
		}
	}
	if from == to {
		return x, nil
	}
	g := gcd(from, to)
	up, down := to/g, from/g
	b := newFilterBank(min(up, maxPhases), min(1, float64(to)/float64(from))*resampleRolloff)
	y := make([]float32, (len(x)*up+down-1)/down)
	for j := range y {
		pos := j * down
		k := pos / up
		// The position between x[k] and x[k+1], in phases.
		num := pos % up * b.phases
		p, frac := num/up, float64(num%up)/float64(up)
		v := b.dot(x, k, p)
		if frac > 0 {
			v += frac * (b.dot(x, k, p+1) - v)
		}
		y[j] = float32(v)
	}
	return y, nil
}

// filterBank holds the filter's taps for each phase: the fraction of an input
// sample by which an output lies behind one.
type filterBank struct {
	phases int
	half   int       // taps on each side
	taps   []float32 // [phases+1, 2*half]; the last phase is a whole sample
}

// newFilterBank tabulates the filter; scale is the cut-off relative to the
// input's Nyquist frequency.
func newFilterBank(phases int, scale float64) *filterBank {
	b := &filterBank{phases: phases, half: int(math.Ceil(resampleZeros/scale)) + 1}
	b.taps = make([]float32, (phases+1)*2*b.half)
	norm := besselI0(resampleBeta)
	for p := range phases + 1 {
		frac := float64(p) / float64(phases)
		for i := range 2 * b.half {
			t := (float64(i-b.half+1) - frac) * scale
			r := t / resampleZeros
			if math.Abs(r) >= 1 {
				continue
			}
			w := besselI0(resampleBeta*math.Sqrt(1-r*r)) / norm
			b.taps[p*2*b.half+i] = float32(sinc(t) * w * scale)
		}
	}
	return b
}

// dot applies the taps of one phase around x[k]; x is zero outside.
func (b *filterBank) dot(x []float32, k, phase int) float64 {
	first := k - b.half + 1
	taps := b.taps[phase*2*b.half : (phase+1)*2*b.half]
	if first < 0 {
		taps, first = taps[-first:], 0
	}
	taps = taps[:max(min(len(taps), len(x)-first), 0)]
	x = x[first : first+len(taps)]
	// Two sums, so that additions need not wait for each other.
	var even, odd float64
	for len(taps) >= 2 && len(x) >= 2 {
		even += float64(taps[0]) * float64(x[0])
		odd += float64(taps[1]) * float64(x[1])
		taps, x = taps[2:], x[2:]
	}
	if len(taps) > 0 {
		even += float64(taps[0]) * float64(x[0])
	}
	return even + odd
}

// besselI0 is the modified Bessel function of order zero, by its power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-18; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
