package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// VideoSampling says which frames of clips to take.
type VideoSampling struct {
	FPS    float64 // frames a second, and the rate of numbered pictures, where a part does not say; 0: media.DefaultFPS
	Frames int     // at most so many of a clip, 0: as many as the model takes
}

func (s VideoSampling) validate() error {
	if !(s.FPS >= 0) || math.IsInf(s.FPS, 0) {
		return fmt.Errorf("video: %v frames a second", s.FPS)
	}
	if s.Frames < 0 || s.Frames == 1 {
		return fmt.Errorf("video: %d frames, want at least 2", s.Frames)
	}
	return nil
}

// clip returns the parts that stand in the prompt for a clip.
func (g *gathering) clip(ctx context.Context, p chat.Part) ([]chat.Part, error) {
	if err := g.r.Video.validate(); err != nil {
		return nil, err
	}
	return g.pairs(ctx, p, g.e.proj.(models.PairProjector)) // as takes has seen
}

// maxPairClips is the number of clips that a request may hold where each becomes
// pairs of frames: two pairs at least are left for each.
const maxPairClips = 8

// clipIntro stands before the frames of a clip.
const clipIntro = "Here is a video as a sequence of frames in chronological order."

// pairs turns a clip into pictures of two neighbouring frames each, with the
// time of the first before it. Inkling's vendor describes no video; the model's
// tiles have room for two frames, and other runtimes use them in this way.
//
// All clips of a request share media.MaxPairs, in equal parts.
func (g *gathering) pairs(ctx context.Context, p chat.Part, tower models.PairProjector) ([]chat.Part, error) {
	if g.clips > maxPairClips {
		return nil, fmt.Errorf("the conversation has %d clips, at most %d are allowed", g.clips, maxPairClips)
	}
	limit := media.MaxPairs / g.clips
	if n := g.r.Video.Frames; n > 0 {
		limit = min(limit, n/2)
	}
	opts := media.VideoOptions{FPS: p.FPS, Limits: g.r.Limits.Image}
	if opts.FPS == 0 {
		opts.FPS = g.r.Video.FPS
	}
	if opts.FPS == 0 {
		opts.FPS = media.DefaultFPS
	}
	opts.Sample = media.SamplePairs(opts.FPS, limit)
	name, clip, err := g.decode(ctx, p.Source, opts)
	if err != nil {
		return nil, err
	}
	parts := []chat.Part{{Kind: chat.Text, Text: clipIntro}}
	for i := 0; i+1 < len(clip.Frames); i += 2 {
		a, b, at := clip.Frames[i], clip.Frames[i+1], clip.Times[i]
		m := &medium{
			name: fmt.Sprintf("%s at %.1f s", name, at), rows: g.e.proj.ImageRows(a.W, a.H), hash: pairHash(a, b),
			encode: func() ([]float32, error) { return tower.EncodePair(a, b) },
		}
		label := chat.Part{Kind: chat.Text, Text: fmt.Sprintf("frame at t=%.1fs:", at)}
		parts = append(parts, label, g.bind(chat.Image, m))
	}
	return parts, nil
}

// decode samples a clip, in place if it is a local file.
func (g *gathering) decode(ctx context.Context, source string, opts media.VideoOptions) (string, *media.Clip, error) {
	if g.r.Local != nil {
		if path, ok := g.r.Local(source); ok {
			clip, err := media.DecodeVideo(ctx, path, opts)
			return path, clip, err
		}
	}
	name, data, err := g.r.Load(ctx, source)
	if err != nil {
		return name, nil, err
	}
	clip, err := media.DecodeVideoData(ctx, name, data, opts)
	return name, clip, err
}

// pairHash tells pairs of frames apart.
func pairHash(a, b *media.Image) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, im := range []*media.Image{a, b} {
		_ = binary.Write(h, binary.LittleEndian, [2]int64{int64(im.W), int64(im.H)}) // a hash takes everything
		h.Write(im.Pix)
	}
	h.Sum(sum[:0])
	return sum
}
