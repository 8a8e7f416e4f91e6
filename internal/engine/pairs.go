package engine

import (
	"context"
	"fmt"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

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
	s := g.r.Video.of(p)
	switch {
	case g.clips > maxPairClips:
		return nil, fmt.Errorf("the conversation has %d clips, at most %d are allowed", g.clips, maxPairClips)
	case s.Frames == 1:
		return nil, fmt.Errorf("video: 1 frames, want at least 2")
	case s.Layout != "":
		return nil, fmt.Errorf("video layout %q: this model takes clips as pairs of frames, and in no other way", s.Layout)
	}
	limit := media.MaxPairs / g.clips
	if s.Frames > 0 {
		limit = min(limit, s.Frames/2)
	}
	opts := media.VideoOptions{FPS: s.FPS, Limits: g.r.Limits.Image}
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
			name: fmt.Sprintf("%s at %.1f s", name, at), rows: g.e.proj.ImageRows(a.W, a.H), hash: framesHash("pair", a, b),
			encode: func(dst []float32) ([]float32, error) { return tower.EncodePair(dst, a, b) },
		}
		label := chat.Part{Kind: chat.Text, Text: fmt.Sprintf("frame at t=%.1fs:", at)}
		parts = append(parts, label, g.bind(chat.Image, m))
	}
	return parts, nil
}
