package media

import (
	"fmt"
	"math"
	"testing"
)

// Tones below both Nyquist frequencies come out with an error below -120 dB;
// tones that the new rate cannot hold are as far down.
func TestResampleTones(t *testing.T) {
	for _, from := range []int{8000, 11025, 16000, 22050, 24000, 32000, 44100, 44101, 48000, 96000, 192000} {
		for _, hz := range []float64{440, 1000, 3000, 6500, 9000, 15000} {
			if hz > 0.9*float64(from)/2 {
				continue
			}
			t.Run(fmt.Sprintf("%d/%g", from, hz), func(t *testing.T) {
				const amplitude = 0.5
				x := make([]float32, from/2)
				for i := range x {
					x[i] = float32(amplitude * math.Sin(2*math.Pi*hz*float64(i)/float64(from)))
				}
				y, err := Resample(x, from, SampleRate)
				if err != nil {
					t.Fatal(err)
				}
				if want := (len(x)*SampleRate + from - 1) / from; len(y) != want {
					t.Fatalf("%d samples, want %d", len(y), want)
				}
				level := amplitude
				if hz > SampleRate/2 {
					level = 0
				}
				// The ends see the edge of the signal.
				var e, n float64
				for i := 1000; i < len(y)-1000; i++ {
					d := float64(y[i]) - level*math.Sin(2*math.Pi*hz*float64(i)/SampleRate)
					e += d * d
					n++
				}
				if db := 10 * math.Log10(e/n/(amplitude*amplitude/2)); !(db < -120) {
					t.Errorf("error %.1f dB", db)
				}
			})
		}
	}
}

func TestResampleShort(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3} {
		x := make([]float32, n)
		for i := range x {
			x[i] = 1
		}
		y, err := Resample(x, 8000, 16000)
		if err != nil {
			t.Fatal(err)
		}
		if len(y) != 2*n {
			t.Errorf("%d samples from %d", len(y), n)
		}
	}
	// A lone sample gives the filter itself: its peak is the cut-off.
	y, err := Resample([]float32{1}, 48000, 16000)
	if err != nil {
		t.Fatal(err)
	}
	if want := resampleRolloff / 3; math.Abs(float64(y[0])-want) > 1e-6 {
		t.Errorf("peak %g, want %g", y[0], want)
	}
}

func TestResampleRates(t *testing.T) {
	for _, rates := range [][2]int{{0, 16000}, {16000, 0}, {-1, 16000}, {999, 16000}, {384001, 16000}, {16000, 1 << 40}} {
		if _, err := Resample(make([]float32, 10), rates[0], rates[1]); err == nil {
			t.Errorf("rates %d were accepted", rates)
		}
	}
}
