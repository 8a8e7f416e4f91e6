package media

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		frames, limit int
		want          []int
	}{
		{1, 16, []int{0}},              // doubled
		{2, 16, []int{0}},              //
		{3, 16, []int{0, 2}},           // the last frame is repeated
		{4, 16, []int{0, 2}},           //
		{5, 16, []int{0, 2, 4}},        // 6 frames, 3 pairs: 0, 2, 4
		{6, 2, []int{0, 4}},            // the ends
		{7, 3, []int{0, 3, 6}},         // 8 frames
		{9, 4, []int{0, 3, 5, 8}},      // 10 frames: 0, 2.67, 5.33, 8
		{9, 1, []int{0}},               //
		{12, 5, []int{0, 2, 5, 8, 10}}, // 0, 2.5, 5, 7.5, 10: halves to even
	} {
		t.Run(fmt.Sprintf("%d/%d", c.frames, c.limit), func(t *testing.T) {
			if diff := cmp.Diff(c.want, pairAnchors(c.frames, c.limit)); diff != "" {
				t.Errorf("anchors (-want +got):\n%s", diff)
			}
		})
	}
	long := pairAnchors(1000, MaxPairs)
	if len(long) != 16 || long[0] != 0 || long[15] != 998 {
		t.Errorf("1000 frames: %d", long)
	}
}

func TestSample(t *testing.T) {
	uneven := Timeline{Start: []float64{0, 0.2, 1.1, 3}, FPS: 4 / 3.5}
	for _, c := range []struct {
		name   string
		sample Sampler
		t      Timeline
		want   []int
	}{
		{"24 to 2", sampleFPS(2), evenTimeline(60, 24), []int{0, 12, 24, 36, 48}},
		{"29.97 to 2", sampleFPS(2), evenTimeline(60, 30000.0/1001), []int{0, 14, 29, 44, 59}},
		{"2 to 2", sampleFPS(2), evenTimeline(3, 2), []int{0, 1, 2}},
		{"1 to 2", sampleFPS(2), evenTimeline(3, 1), []int{0, 1, 2}},
		{"one frame", sampleFPS(2), evenTimeline(1, 30), []int{0}},
		{"under half a second", sampleFPS(2), evenTimeline(10, 30), []int{0}},
		{"uneven", sampleFPS(1), uneven, []int{0, 1, 2, 3}},
		{"pairs of one frame", SamplePairs(2, 16), evenTimeline(1, 2), []int{0, 0}},
		{"pairs of two frames", SamplePairs(2, 16), evenTimeline(2, 2), []int{0, 1}},
		{"pairs of three frames", SamplePairs(2, 16), evenTimeline(3, 2), []int{0, 1, 2, 2}},
		{"pairs of 5 s at 24", SamplePairs(2, 3), evenTimeline(120, 24), []int{0, 12, 48, 60, 96, 108}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.sample(c.t)); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
		})
	}
}
