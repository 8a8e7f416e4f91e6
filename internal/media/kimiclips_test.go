package media

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/testutil"
)

var (
	clipRule  = ClipRule{Layout: LayoutClip, FPS: 2}
	chunkRule = ClipRule{Layout: LayoutChunks, FPS: 2, ChunkFrames: 4, Timestamps: "hh:mm:ss.fff"}
)

func TestClipRuleCounts(t *testing.T) {
	for _, c := range []struct {
		total        int
		fps          float64
		want         int // by the user
		clip, chunks int // frames
	}{
		{1, 30, 0, 1, 1},
		{2, 30, 0, 2, 1},
		{3, 30, 0, 2, 1},
		{5, 30, 0, 4, 1},
		{8, 2, 0, 8, 8},
		{9, 2, 0, 8, 9},
		{300, 30, 0, 20, 20},
		{10, 1, 0, 10, 10}, // asked for 2 frames a second: clip wants 20 of 10, chunks take what there is
		{100000, 30, 0, 768, 6667},
		{300, 30, 7, 8, 7}, // 3.5 pairs: half to even
		{300, 30, 5, 4, 5},
		{300, 30, 1, 4, 1},
		{5, 30, 100, 4, 5},
	} {
		t.Run(fmt.Sprintf("%d at %g, %d", c.total, c.fps, c.want), func(t *testing.T) {
			tl := evenTimeline(c.total, c.fps)
			if got := len(clipRule.Sampler(c.want)(tl)); got != c.clip {
				t.Errorf("clip: %d frames, want %d", got, c.clip)
			}
			if got := len(chunkRule.Sampler(c.want)(tl)); got != c.chunks {
				t.Errorf("chunks: %d frames, want %d", got, c.chunks)
			}
		})
	}
}

// TestFrameSamplingGolden: the reference takes as many frames as the published
// rule, but steps from frame 0 where that rule goes from the first to the last.
func TestFrameSamplingGolden(t *testing.T) {
	var golden struct {
		Cases []struct {
			Total   int `json:"total_frames"`
			FPS     float64
			Indices []int
			Error   string
		}
	}
	testutil.GoldenJSON(t, kimi, "frame_sampling", &golden)
	published := map[int][]int{
		10:  {0}, // where the reference divides by zero
		48:  {0, 16, 31, 47},
		60:  {0, 15, 30, 44, 59}, // 14.75, 29.5, 44.25: halves to even
		61:  {0, 15, 30, 45, 60},
		5:   {0, 1, 2, 3, 4},
		300: {0, 16, 31, 47, 63, 79, 94, 110, 126, 142, 157, 173, 189, 205, 220, 236, 252, 268, 283, 299},
	}
	if len(golden.Cases) != len(published) {
		t.Fatalf("%d cases, want %d", len(golden.Cases), len(published))
	}
	for _, c := range golden.Cases {
		got := chunkRule.Sampler(0)(evenTimeline(c.Total, c.FPS))
		if diff := cmp.Diff(published[c.Total], got); diff != "" {
			t.Errorf("%d frames at %g (-want +got):\n%s", c.Total, c.FPS, diff)
		}
		if c.Error == "" && len(got) != len(c.Indices) {
			t.Errorf("%d frames at %g: %d taken, the reference takes %d", c.Total, c.FPS, len(got), len(c.Indices))
		}
	}
}

// TestClipItems: expansion of N frames at 2 a second, and the times of a longer clip.
func TestClipItems(t *testing.T) {
	clip := func(n int, fps float64, rule ClipRule) *Clip {
		c := &Clip{FPS: fps, Index: rule.Sampler(0)(evenTimeline(n, fps))}
		c.Frames = make([]*Image, len(c.Index))
		return c
	}
	for n, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 8: 2, 9: 3} {
		items, err := chunkRule.Items(clip(n, 2, chunkRule))
		if err != nil || len(items) != want {
			t.Errorf("%d frames: %d chunks (%v), want %d", n, len(items), err, want)
		}
		if items, err = clipRule.Items(clip(n, 2, clipRule)); err != nil || len(items) != 1 || items[0].Time != "" {
			t.Errorf("%d frames as one clip: %v (%v)", n, items, err)
		}
	}
	items, err := chunkRule.Items(clip(300, 30, chunkRule))
	if err != nil {
		t.Fatal(err)
	}
	want := []ClipItem{{0, 4, "00:00:00.000"}, {4, 4, "00:00:02.100"}, {8, 4, "00:00:04.200"}, {12, 4, "00:00:06.299"}, {16, 4, "00:00:08.400"}}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// TestSampledBefore: numbered pictures are taken as they are, whatever their
// rate, up to the limits of the layout and the checkpoint.
func TestSampledBefore(t *testing.T) {
	short := chunkRule
	short.MaxFrames = 3
	for _, c := range []struct {
		name    string
		rule    ClipRule
		n, want int
		first   []int
	}{
		{"odd clip", clipRule, 3, 0, []int{0, 1, 2}},
		{"one frame", clipRule, 1, 0, []int{0}},
		{"chunks", chunkRule, 5, 0, []int{0, 1, 2, 3, 4}},
		{"fewer wanted", clipRule, 9, 4, []int{0, 3, 5, 8}}, // 2.67, 5.33
		{"fewer wanted in chunks", chunkRule, 9, 3, []int{0, 4, 8}},
		{"limit of the checkpoint", short, 9, 0, []int{0, 4, 8}},
	} {
		tl := evenTimeline(c.n, 30)
		tl.Sampled = true
		if diff := cmp.Diff(c.first, c.rule.Sampler(c.want)(tl)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	tl := evenTimeline(1000, 2)
	tl.Sampled = true
	if n := len(clipRule.Sampler(0)(tl)); n != 768 {
		t.Errorf("%d of 1000 frames, want 768", n)
	}
}

// TestItemFrames: the last chunk has what is left.
func TestItemFrames(t *testing.T) {
	for i, want := range map[int]int{0: 4, 3: 4, 4: 4, 7: 4, 8: 2, 9: 2} {
		if got := chunkRule.ItemFrames(i, 10); got != want {
			t.Errorf("frame %d of 10 is in a chunk of %d, want %d", i, got, want)
		}
		if got := clipRule.ItemFrames(i, 10); got != 10 {
			t.Errorf("frame %d of 10 is in a clip of %d, want 10", i, got)
		}
	}
}

func TestTimestamp(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		mode    string
		want    string
	}{
		{12.0 / 24, "hh:mm:ss.fff", "00:00:00.500"},
		{3661.5, "hh:mm:ss.fff", "01:01:01.500"},
		{86400 + 59.9999, "hh:mm:ss.fff", "00:00:59.999"}, // cut off, and a day later
		{3661.25, "mm:ss.fff", "01:01.250"},
		{61.9, "mm:ss", "01:01"},
	} {
		if got, err := Timestamp(c.seconds, c.mode); err != nil || got != c.want {
			t.Errorf("%g as %s: %q (%v), want %q", c.seconds, c.mode, got, err, c.want)
		}
	}
	for _, bad := range []struct {
		seconds float64
		mode    string
	}{{-1, "mm:ss"}, {1e15, "mm:ss"}, {1, "ss"}} {
		if got, err := Timestamp(bad.seconds, bad.mode); err == nil {
			t.Errorf("%g as %q: %q, want an error", bad.seconds, bad.mode, got)
		}
	}
}

func TestFrameBudget(t *testing.T) {
	for _, c := range [][4]int{{4, 4096, 0, 4096}, {4, 4096, 100000, 4096}, {4, 4096, 8194, 2048}, {8, 4096, 1, 1}} { // 2048.5: half to even
		if got := FrameBudget(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d frames, %d each, %d in all: %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}
