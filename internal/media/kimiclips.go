package media

import (
	"fmt"
	"math"
)

// ClipLayout is how the frames of a clip become items of a prompt.
type ClipLayout string

const (
	// LayoutClip makes one item of all frames. They are at least 4 and an even
	// number if the clip has as many. (Specification of the model's video path.)
	LayoutClip ClipLayout = "clip"
	// LayoutChunks makes an item of each few frames, with a time before it.
	// (Published processor of Kimi-K2.5.)
	LayoutChunks ClipLayout = "chunks"
)

// ClipRule is the video part of a checkpoint's processor configuration.
type ClipRule struct {
	Layout      ClipLayout
	FPS         float64 // frames a second that are taken
	MaxFrames   int     // 0: no limit but that of the layout
	ChunkFrames int     // frames of an item, in chunks
	Timestamps  string  // how the time before a chunk is written: hh:mm:ss.fff, mm:ss.fff or mm:ss
	Untrained   bool    // the model has learned pictures alone
}

// Bounds of the sampler of LayoutClip, and the number that its counts are
// multiples of.
const (
	clipMinFrames   = 4
	clipMaxFrames   = 768
	clipGranularity = 2
)

// Sampler chooses frames spread evenly from the first to the last one. frames
// is the number that the user wants, 0 to go by the rate. Frames that were
// sampled before are taken as they are, up to the limit, if no number is wanted.
func (r ClipRule) Sampler(frames int) Sampler {
	return func(t Timeline) []int {
		return spread(len(t.Start), r.count(t, frames))
	}
}

// count is the number of frames taken of a clip.
func (r ClipRule) count(t Timeline, want int) int {
	total, fps := len(t.Start), t.FPS
	limit := total
	if r.MaxFrames > 0 {
		limit = min(limit, r.MaxFrames)
	}
	if r.Layout == LayoutClip {
		limit = min(limit, clipMaxFrames)
	}
	if t.Sampled && want <= 0 {
		return limit
	}
	if r.Layout == LayoutChunks {
		n := want
		if n <= 0 {
			n = int(math.RoundToEven(float64(total) * min(r.FPS, fps) / fps))
		}
		return max(min(n, limit), 1)
	}
	n := float64(total) / fps * r.FPS
	if want > 0 {
		n = clipGranularity * math.RoundToEven(float64(want)/clipGranularity)
	}
	n = min(max(n, clipMinFrames), float64(limit)) // a short clip has fewer than the minimum
	return max(int(n)/clipGranularity*clipGranularity, 1)
}

// spread returns round(linspace(0, total-1, n)), ties to even.
func spread(total, n int) []int {
	indices := make([]int, n)
	for i := 1; i < n; i++ {
		indices[i] = int(math.RoundToEven(float64(i) * (float64(total-1) / float64(n-1))))
	}
	if n > 1 {
		indices[n-1] = total - 1
	}
	return indices
}

// ClipItem is a run of a clip's frames that becomes one item of a prompt.
type ClipItem struct {
	First, N int    // frames First to First+N-1 of the sampled ones
	Time     string // what stands before the item in the prompt; empty in LayoutClip
}

// ItemFrames is the number of frames in the item that frame i of n sampled ones
// is in.
func (r ClipRule) ItemFrames(i, n int) int {
	if r.Layout == LayoutClip || r.ChunkFrames < 1 {
		return n
	}
	return min(r.ChunkFrames, n-i/r.ChunkFrames*r.ChunkFrames)
}

// Items divides a sampled clip.
func (r ClipRule) Items(c *Clip) ([]ClipItem, error) {
	if len(c.Index) == 0 || len(c.Index) != len(c.Frames) {
		return nil, fmt.Errorf("a clip of %d frames with %d indices", len(c.Frames), len(c.Index))
	}
	if r.Layout == LayoutClip {
		return []ClipItem{{N: len(c.Frames)}}, nil
	}
	if r.ChunkFrames < 1 {
		return nil, fmt.Errorf("chunks of %d frames", r.ChunkFrames)
	}
	var items []ClipItem
	for i := 0; i < len(c.Frames); i += r.ChunkFrames {
		time, err := Timestamp(float64(c.Index[i])/c.FPS, r.Timestamps)
		if err != nil {
			return nil, err
		}
		items = append(items, ClipItem{First: i, N: r.ItemFrames(i, len(c.Frames)), Time: time})
	}
	return items, nil
}

// Timestamp writes a time in seconds; hours begin again after a day, fractions
// are cut off.
func Timestamp(seconds float64, mode string) (string, error) {
	if !(seconds >= 0 && seconds < 1<<40) {
		return "", fmt.Errorf("time of %g seconds", seconds)
	}
	whole := int64(seconds)
	s := fmt.Sprintf("%02d:%02d", whole/60%60, whole%60)
	ms := fmt.Sprintf(".%03d", int(math.Mod(seconds, 1)*1000))
	switch mode {
	case "hh:mm:ss.fff":
		return fmt.Sprintf("%02d:", whole/3600%24) + s + ms, nil
	case "mm:ss.fff":
		return s + ms, nil
	case "mm:ss":
		return s, nil
	}
	return "", fmt.Errorf("timestamps %q, want hh:mm:ss.fff, mm:ss.fff or mm:ss", mode)
}

// FrameBudget is the most patches of a frame of an item of n frames, if all of
// its frames have no more than video together (0: no such limit) and each no
// more than frame.
func FrameBudget(n, frame, video int) int {
	if video <= 0 {
		return frame
	}
	return max(min(int(math.RoundToEven(float64(video)/float64(n))), frame), 1)
}
