package media

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// noise is so many samples, drawn.
func noise(n int) []float32 {
	rng := rand.New(rand.NewPCG(1, 1))
	samples := make([]float32, n)
	for i := range samples {
		samples[i] = rng.Float32() - 0.5
	}
	return samples
}

// BenchmarkMel finds the features of sounds, from a frame to a minute.
func BenchmarkMel(b *testing.B) {
	for _, frames := range []int{1, 20, 1200} {
		b.Run(fmt.Sprintf("frames=%d", frames), func(b *testing.B) {
			samples := noise(frames * melHop)
			for b.Loop() {
				if _, err := Mel(samples); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSpectrogram finds the features of a minute with a plan that has served.
func BenchmarkSpectrogram(b *testing.B) {
	plan, samples, levels := NewMelPlan(), noise(60*SampleRate), make([]int32, 1200*MelBins)
	for b.Loop() {
		s, err := plan.Spectrogram(samples)
		if err != nil {
			b.Fatal(err)
		}
		s.Levels(levels, 0)
	}
}

// BenchmarkDMel rounds the features of a minute.
func BenchmarkDMel(b *testing.B) {
	mel, err := Mel(noise(60 * SampleRate))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		DMel(mel)
	}
}

// BenchmarkTiles cuts pictures of one tile, of 100 and of 1000.
func BenchmarkTiles(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, side := range []int{39, 399, 1270} {
		im := newImage(side, side)
		for i := range im.Pix {
			im.Pix[i] = uint8(rng.Uint32())
		}
		b.Run(fmt.Sprintf("side=%d", side), func(b *testing.B) {
			for b.Loop() {
				if _, err := Tiles(im, published); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
