package media

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/testutil"
)

func fixtureAudio(t *testing.T, name string) []float32 {
	t.Helper()
	path := testutil.Testdata(t, model, "media", name)
	a, err := DecodeAudio(context.Background(), path, readFile(t, path), AudioLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Rate != SampleRate {
		t.Fatalf("%s: rate %d", name, a.Rate)
	}
	return a.Samples
}

func TestMelGolden(t *testing.T) {
	g := testutil.OpenGolden(t, model, "audio")
	for name, samples := range map[string][]float32{
		"audio0":  fixtureAudio(t, "audio0_12345.wav"),
		"audio1":  fixtureAudio(t, "audio1_30011.wav"),
		"silence": make([]float32, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			mel, err := Mel(samples)
			if err != nil {
				t.Fatal(err)
			}
			testutil.Close(t, "log mel", mel, g.Floats(name+".log_mel"), testutil.Tol{Abs: 1e-4})
			if diff := cmp.Diff(g.Ints(name+".dmel_ids"), widen(DMel(mel))); diff != "" {
				t.Errorf("dMel ids (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLevels: levels of any pieces are those of the whole, bit for bit.
func TestLevels(t *testing.T) {
	samples := noise(100*melHop + 1)
	samples[40*melHop] = float32(math.NaN()) // the lowest level, whatever was there before
	mel, err := Mel(samples)
	if err != nil {
		t.Fatal(err)
	}
	want := DMel(mel)
	s, err := NewMelPlan().Spectrogram(samples)
	if err != nil {
		t.Fatal(err)
	}
	if s.Frames != 101 {
		t.Fatalf("%d frames, want 101", s.Frames)
	}
	for _, size := range []int{1, 17, 50, 101} {
		got := slices.Repeat([]int32{-1}, s.Frames*MelBins)
		for first := 0; first < s.Frames; first += size {
			s.Levels(got[first*MelBins:min(first+size, s.Frames)*MelBins], first)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pieces of %d frames (-want +got):\n%s", size, d)
		}
	}
	if _, err := NewMelPlan().Spectrogram(nil); err == nil {
		t.Error("no samples: no error")
	}
}

func widen(ids []int32) []int64 {
	out := make([]int64, len(ids))
	for i, v := range ids {
		out[i] = int64(v)
	}
	return out
}

func TestMelTablesGolden(t *testing.T) {
	g := testutil.OpenGolden(t, model, "audio")
	centres := dmelCentres()
	testutil.Close(t, "centres", centres[:], g.Floats("bin_centers"), testutil.Tol{})
	testutil.Close(t, "window", hannWindow(), g.Floats("window"), testutil.Tol{Abs: 5e-7}) // the reference takes the cosine in float32
	dense := make([]float32, MelBins*melSpectrum)
	for m, f := range melFilters() {
		copy(dense[m*melSpectrum+f.first:], f.weights)
	}
	testutil.Close(t, "filters", dense, g.Floats("mel_filters"), testutil.Tol{Abs: 1e-8})
}

func TestMelFrames(t *testing.T) {
	for n, want := range map[int]int{1: 1, 799: 1, 800: 1, 801: 2, 1600: 2, 1601: 3, 600 * SampleRate: 12000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if got := MelFrames(n); got != want {
				t.Fatalf("%d frames, want %d", got, want)
			}
			if n > 2000 {
				return
			}
			mel, err := Mel(make([]float32, n))
			if err != nil {
				t.Fatal(err)
			}
			if len(mel) != want*MelBins {
				t.Errorf("%d values, want %d", len(mel), want*MelBins)
			}
		})
	}
	if _, err := Mel(nil); err == nil {
		t.Error("no samples were accepted")
	}
}

// A sine of 1 kHz and amplitude A on a bin of the spectrum has, under a Hann
// window of length N, magnitude A*N/4 there and A*N/8 at both neighbours. Bin
// 100 and its neighbours meet known filters, so m follows by hand. A power
// spectrum or a natural logarithm would be far off.
func TestMelSine(t *testing.T) {
	const amplitude = 0.5
	samples := make([]float32, 4*melHop)
	for i := range samples {
		samples[i] = float32(amplitude * math.Sin(2*math.Pi*1000*float64(i)/SampleRate))
	}
	mel, err := Mel(samples)
	if err != nil {
		t.Fatal(err)
	}
	row := mel[2*MelBins : 3*MelBins] // a frame without padding
	for m, f := range melFilters() {
		var sum float64
		for i, w := range f.weights {
			switch f.first + i {
			case 100:
				sum += float64(w) * amplitude * melWindow / 4
			case 99, 101:
				sum += float64(w) * amplitude * melWindow / 8
			}
		}
		if sum == 0 {
			continue
		}
		want := math.Log10(sum)
		if d := math.Abs(float64(row[m]) - want); d > 1e-4 {
			t.Errorf("filter %d: %g, want %g", m, row[m], want)
		}
	}
}

// Three points of the Slaney scale: linear, at the break, and logarithmic.
func TestMelScale(t *testing.T) {
	for hz, mel := range map[float64]float64{0: 0, 500: 7.5, 1000: 15, 6400: 42, 8000: 45.24564} {
		if got := hzToMel(hz); math.Abs(got-mel) > 1e-5 {
			t.Errorf("%g Hz: %g mel, want %g", hz, got, mel)
		}
		if got := melToHz(mel); math.Abs(got-hz) > 1e-2 {
			t.Errorf("%g mel: %g Hz, want %g", mel, got, hz)
		}
	}
}

// Values exactly midway between two centres go to the lower one.
func TestDMelTies(t *testing.T) {
	c := dmelCentres()
	ties := 0
	for b := range DMelLevels - 1 {
		for _, step := range []int{-2, -1, 0, 1, 2} {
			v := (c[b] + c[b+1]) / 2
			for range max(step, -step) {
				v = math.Nextafter32(v, float32(math.Inf(step)))
			}
			want := int32(b)
			if lo, hi := v-c[b], c[b+1]-v; lo > hi {
				want = int32(b + 1)
			} else if lo == hi {
				ties++
			}
			if got := DMel([]float32{v}); got[0] != want {
				t.Errorf("%g between %g and %g: level %d, want %d", v, c[b], c[b+1], got[0], want)
			}
		}
	}
	if ties == 0 {
		t.Error("no value was midway: the test shows nothing")
	}
}

func TestDMelClamps(t *testing.T) {
	got := DMel([]float32{-100, -7, -6.4, 1.4, 2, 100, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())})
	if diff := cmp.Diff([]int32{0, 0, 1, 14, 15, 15, 0, 15, 0}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}
