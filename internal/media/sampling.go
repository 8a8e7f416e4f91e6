package media

import (
	"math"
	"sort"
)

// Timeline is what is known of a clip before its frames are decoded.
type Timeline struct {
	Start []float64 // when each frame appears, in seconds; the first at 0
	FPS   float64   // frames a second, on average if they are unevenly spaced

	// Sampled says that somebody has chosen these frames before: numbered
	// pictures, unless VideoOptions.FrameRate says what rate they come at.
	Sampled bool
}

// evenTimeline is a timeline of n frames at a constant rate.
func evenTimeline(n int, fps float64) Timeline {
	t := Timeline{Start: make([]float64, n), FPS: fps}
	for i := range t.Start {
		t.Start[i] = float64(i) / fps
	}
	return t
}

// Duration is the length in seconds, the last frame included.
func (t Timeline) Duration() float64 { return float64(len(t.Start)) / t.FPS }

// at returns the index of the frame that is shown at a time.
func (t Timeline) at(seconds float64) int {
	// A frame that should start just then may start a rounding error later.
	const slack = 1e-6
	return max(sort.SearchFloat64s(t.Start, seconds+slack)-1, 0)
}

// Sampler chooses the frames of a clip by their indices, in order. An index may
// occur more than once.
type Sampler func(Timeline) []int

// sampleFPS takes the frames shown at 0, 1/fps, 2/fps, … seconds, each once.
func sampleFPS(fps float64) Sampler {
	return func(t Timeline) []int {
		var indices []int
		for i := 0; ; i++ {
			seconds := float64(i) / fps
			if seconds >= t.Duration() && i > 0 {
				return indices
			}
			if at := t.at(seconds); len(indices) == 0 || at > indices[len(indices)-1] {
				indices = append(indices, at)
			}
		}
	}
}

// MaxPairs is the number of frame pairs that one request may hold.
const MaxPairs = 16

// pairAnchors returns the first frame of each pair for n sampled frames, n at least
// 1; the second is the next frame. An odd count is made even by repeating the
// last frame, so an anchor may be the last index n-1.
//
// There are n/2 pairs, at least two (one if there are only two frames) and at
// most limit, spread evenly over the clip.
//
// Inkling's vendor has no video path; this is what other runtimes do.
func pairAnchors(n, limit int) []int {
	n += n % 2
	pairs := max(n/2, 1)
	if n > 2 {
		pairs = max(pairs, 2)
	}
	pairs = max(min(pairs, limit), 1)
	anchors := make([]int, pairs)
	for i := range anchors {
		// Halves are rounded to even as in the reference language.
		a := math.RoundToEven(float64(i*(n-2)) / float64(max(pairs-1, 1)))
		anchors[i] = min(int(a), n-2)
	}
	return anchors
}

// SamplePairs samples at fps and keeps only the frames of at most limit pairs:
// entries 2i and 2i+1 of the result are pair i.
func SamplePairs(fps float64, limit int) Sampler {
	return func(t Timeline) []int {
		sampled := sampleFPS(fps)(t)
		var indices []int
		for _, a := range pairAnchors(len(sampled), limit) {
			indices = append(indices, sampled[a], sampled[min(a+1, len(sampled)-1)])
		}
		return indices
	}
}
