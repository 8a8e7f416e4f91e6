package engine

import (
	"context"
	"fmt"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// maxChunkFrames bounds the frames of a clip in chunks, for which the model has
// no limit of its own: half an hour at 2 frames a second.
const maxChunkFrames = 4096

// untrainedNote is what the user of a clip should know of a model whose tower
// has learned pictures alone.
const untrainedNote = "this model was not trained on video: its picture tower takes the mean of the frames"

// items turns a clip into the items that the tower sees at once: the whole clip,
// or chunks of it, each with a block of its own in the prompt.
func (g *gathering) items(ctx context.Context, p chat.Part, tower models.ClipProjector) ([]chat.Part, error) {
	rule, s := tower.ClipRule(), g.r.Video.of(p)
	if s.Layout != "" {
		rule.Layout = s.Layout
	}
	if s.FPS > 0 {
		rule.FPS = s.FPS
	}
	name, clip, err := g.decode(ctx, p.Source, g.itemOptions(rule, s.Frames, tower))
	if err != nil {
		return nil, err
	}
	items, err := rule.Items(clip)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var out chat.Part
	for i, item := range items {
		frames := clip.Frames[item.First : item.First+item.N]
		m := &medium{
			name: name, rows: tower.ClipRows(frames[0].W, frames[0].H), hash: framesHash(string(rule.Layout), frames...),
			encode: func(dst []float32) ([]float32, error) { return tower.EncodeClip(dst, frames, rule.Layout) },
		}
		if item.Time != "" {
			m.name = name + " at " + item.Time
		}
		if rule.Untrained {
			m.note = untrainedNote
		}
		if part := g.bind(chat.Video, m); i == 0 {
			out = part // the blocks' media follow this one
		}
		out.Blocks = append(out.Blocks, chat.Block{Label: item.Time, Rows: m.rows})
	}
	return []chat.Part{out}, nil
}

// itemOptions says how a clip is sampled. Frames are fitted to the tower as they
// come, and a clip that is too much for it ends at the first one.
func (g *gathering) itemOptions(rule media.ClipRule, frames int, tower models.ClipProjector) media.VideoOptions {
	opts := media.VideoOptions{FPS: rule.FPS, Limits: g.r.Limits.Image}
	if rule.Layout == media.LayoutChunks {
		opts.MaxFrames = maxChunkFrames
	}
	var sampled, fitted int
	sample := rule.Sampler(frames)
	opts.Sample = func(t media.Timeline) []int {
		indices := sample(t)
		sampled = len(indices)
		return indices
	}
	// The sampler repeats no frame, so that the calls count them.
	opts.Transform = func(im *media.Image) (*media.Image, error) {
		n := rule.ItemFrames(fitted, sampled)
		fitted++
		im, err := tower.FitFrame(im, rule.Layout, n)
		if err == nil {
			err = tower.CheckClip(n, im.W, im.H)
		}
		return im, err
	}
	return opts
}
