package media

import (
	"errors"
	"math"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Constants of the audio tower's input, fixed by the model's processor.
const (
	// SampleRate is what Mel expects, in samples a second.
	SampleRate = 16000
	// MelBins is the number of mel filters.
	MelBins = 80
	// DMelLevels is the number of levels that DMel rounds to.
	DMelLevels = 16

	melWindow   = 1600 // 100 ms, also the FFT length
	melHop      = 800  // 50 ms: 20 frames a second
	melSpectrum = melWindow/2 + 1

	melFloor = 1e-10 // of the power, and of what the logarithm is taken of

	melParts = 8 // frames that are worth a goroutine: 0.2 ms

	dmelMin, dmelStep = -7.0, 0.6 // centres -7, -6.4, ... 2
)

// MelFrames is the number of frames, and tokens, for n samples at SampleRate.
func MelFrames(n int) int { return (n + melHop - 1) / melHop }

// Mel computes the log mel spectrogram of samples at SampleRate. The signal is
// padded by half a window of zeros before and to a whole hop behind; frames are
// not centred. Per frame: periodic Hann window, magnitude spectrum (not power),
// Slaney mel filters, decimal logarithm.
//
//	res: [MelFrames(len(samples)), MelBins] row-major
//
// Source: the reference's InklingFeatureExtractor. No samples is an error.
func Mel(samples []float32) ([]float32, error) {
	s, err := NewMelPlan().Spectrogram(samples)
	if err != nil {
		return nil, err
	}
	out := make([]float32, s.Frames*MelBins)
	s.each(0, s.Frames, func(f int, mel *[MelBins]float32) { copy(out[f*MelBins:], mel[:]) })
	return out, nil
}

// MelPlan is what Mel needs for any samples: planning a transform takes as long as 20 of them. It
// may be used by several goroutines.
type MelPlan struct {
	window  []float32
	filters []melFilter
	spectra sync.Pool // of *spectrum that nobody uses
}

// NewMelPlan returns a plan.
func NewMelPlan() *MelPlan {
	return &MelPlan{window: hannWindow(), filters: melFilters()}
}

// Spectrogram is what Mel computes, a piece at a time: the first frames can be used while
// the next are computed.
type Spectrogram struct {
	Frames int

	plan    *MelPlan
	samples []float32
}

// Spectrogram prepares what Mel computes. No samples is an error.
func (p *MelPlan) Spectrogram(samples []float32) (*Spectrogram, error) {
	if len(samples) == 0 {
		return nil, errors.New("no audio samples")
	}
	return &Spectrogram{MelFrames(len(samples)), p, samples}, nil
}

// Levels writes DMel of the frames from first on to dst, which has room for as many as are
// wanted.
//
//	dst: [n, MelBins], 0..DMelLevels-1
func (s *Spectrogram) Levels(dst []int32, first int) {
	s.each(first, first+len(dst)/MelBins, func(f int, mel *[MelBins]float32) { dmel(dst[(f-first)*MelBins:], mel[:]) })
}

// each calls do with the log mel spectrum of each frame from first to before end, on several
// goroutines; mel is do's until it returns.
func (s *Spectrogram) each(first, end int, do func(f int, mel *[MelBins]float32)) {
	inParts(end-first, melParts, func(from, to int) {
		spectrum, _ := s.plan.spectra.Get().(*spectrum)
		if spectrum == nil {
			spectrum = newSpectrum(s.plan.window)
		}
		defer s.plan.spectra.Put(spectrum)
		var mel [MelBins]float32
		for f := first + from; f < first+to; f++ {
			magnitude := spectrum.magnitudes(s.samples, f*melHop-(melWindow-melHop))
			for m, filter := range s.plan.filters {
				mel[m] = filter.log(magnitude)
			}
			do(f, &mel)
		}
	})
}

// spectrum finds the frequencies of one frame after the other.
type spectrum struct {
	window       []float32
	fft          *fourier.FFT
	windowed     []float64
	coefficients []complex128
	magnitude    []float64
}

func newSpectrum(window []float32) *spectrum {
	return &spectrum{window, fourier.NewFFT(melWindow), make([]float64, melWindow), make([]complex128, melSpectrum), make([]float64, melSpectrum)}
}

// magnitudes is the magnitude spectrum of the window of samples that begins at first;
// what lies outside of them is zero. It is valid until the next call.
func (s *spectrum) magnitudes(samples []float32, first int) []float64 {
	from, to := max(-first, 0), min(len(samples)-first, melWindow) // of the window, those that there are
	clear(s.windowed[:from])
	clear(s.windowed[to:])
	windowed, window := s.windowed[from:to], s.window[from:to]
	for i, v := range samples[first+from : first+to] {
		windowed[i] = float64(v) * float64(window[i])
	}
	magnitude := s.magnitude
	for i, c := range s.fft.Coefficients(s.coefficients, s.windowed) {
		magnitude[i] = math.Sqrt(max(real(c)*real(c)+imag(c)*imag(c), melFloor))
	}
	return magnitude
}

// DMel rounds each value to the nearest of DMelLevels centres, -7 to 2 in steps
// of 0.6; values midway go down. The comparison is in float32 like the
// reference's, because values can lie exactly between two centres.
//
//	mel: [frames, MelBins]
//	res: [frames, MelBins], 0..DMelLevels-1
func DMel(mel []float32) []int32 {
	ids := make([]int32, len(mel))
	dmel(ids, mel)
	return ids
}

// dmel writes what DMel returns to ids.
func dmel(ids []int32, mel []float32) {
	centres := dmelCentres()
	for i, v := range mel {
		v = min(max(v, centres[0]), centres[DMelLevels-1])
		if v != v { // no number, from samples that are none: the lowest level
			ids[i] = 0
			continue
		}
		// One of the two around it; a v so close to a centre that below takes the wrong
		// side of it is far from midway.
		below := min(int((v-dmelMin)/dmelStep), DMelLevels-2)
		if centres[below+1]-v < v-centres[below] {
			below++
		}
		ids[i] = int32(below)
	}
}

func dmelCentres() (c [DMelLevels]float32) {
	for b := range c {
		c[b] = float32(dmelMin + dmelStep*float64(b))
	}
	return c
}

// hannWindow is the periodic Hann window.
func hannWindow() []float32 {
	w := make([]float32, melWindow)
	for i := range w {
		w[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/melWindow))
	}
	return w
}

// melFilter is one triangle: weights[i] belongs to spectrum bin first+i.
type melFilter struct {
	first   int
	weights []float32
}

// log is the decimal logarithm of what the filter lets through of a magnitude spectrum.
func (f melFilter) log(magnitude []float64) float32 {
	var sum float64
	magnitude = magnitude[f.first:]
	for i, w := range f.weights {
		sum += float64(w) * magnitude[i]
	}
	return float32(math.Log10(max(sum, melFloor)))
}

// melFilters builds the Slaney filter bank from 0 to 8000 Hz: triangles equally
// spaced in mel, of equal area.
func melFilters() []melFilter {
	top := hzToMel(SampleRate / 2)
	edge := func(i int) float64 { return melToHz(top * float64(i) / (MelBins + 1)) }
	filters := make([]melFilter, MelBins)
	for m := range filters {
		lo, mid, hi := edge(m), edge(m+1), edge(m+2)
		filters[m].first = melSpectrum
		const hzPerBin = SampleRate / melWindow
		for bin := int(lo / hzPerBin); bin < min(int(hi/hzPerBin)+1, melSpectrum); bin++ {
			hz := float64(bin * hzPerBin)
			v := min((hz-lo)/(mid-lo), (hi-hz)/(hi-mid))
			if v <= 0 {
				continue
			}
			filters[m].first = min(filters[m].first, bin)
			filters[m].weights = append(filters[m].weights, float32(v*2/(hi-lo)))
		}
	}
	return filters
}

// The Slaney mel scale: linear below 1000 Hz (mel 15), logarithmic above.
const (
	melLinear   = 200.0 / 3 // Hz a mel
	melBreakHz  = 1000.0
	melBreakMel = melBreakHz / melLinear
	melLogSteps = 27.0 // mels for a factor of 6.4
)

func hzToMel(hz float64) float64 {
	if hz < melBreakHz {
		return hz / melLinear
	}
	return melBreakMel + math.Log(hz/melBreakHz)*melLogSteps/math.Log(6.4)
}

func melToHz(mel float64) float64 {
	if mel < melBreakMel {
		return mel * melLinear
	}
	return melBreakHz * math.Exp((mel-melBreakMel)*math.Log(6.4)/melLogSteps)
}
