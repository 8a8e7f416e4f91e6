package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// VideoSampling says which frames of clips to take, and how the model gets them.
type VideoSampling struct {
	FPS float64 // frames a second, and the rate of numbered pictures, where a part does not say; 0: the model's
	// Frames is a number of frames, where a part does not say: of pairs the most
	// that are taken, else what is taken of a clip that has as many. 0: as many
	// as the rate and the model want.
	Frames int
	Layout media.ClipLayout // of models that know several; empty: the checkpoint's
}

func (s VideoSampling) validate() error {
	if !(s.FPS >= 0) || math.IsInf(s.FPS, 0) {
		return fmt.Errorf("video: %v frames a second", s.FPS)
	}
	if s.Frames < 0 {
		return fmt.Errorf("video: %d frames, want at least 1", s.Frames)
	}
	switch s.Layout {
	case "", media.LayoutClip, media.LayoutChunks:
		return nil
	}
	return fmt.Errorf("video layout %q, want %s or %s", s.Layout, media.LayoutClip, media.LayoutChunks)
}

// of returns the settings for one clip, which may have its own.
func (s VideoSampling) of(p chat.Part) VideoSampling {
	if p.FPS > 0 {
		s.FPS = p.FPS
	}
	if p.Frames > 0 {
		s.Frames = p.Frames
	}
	return s
}

// clip returns the parts that stand in the prompt for a clip, which the kind of
// projector decides.
func (g *gathering) clip(ctx context.Context, p chat.Part) ([]chat.Part, error) {
	if err := g.r.Video.validate(); err != nil {
		return nil, err
	}
	if tower, ok := g.e.proj.(models.ClipProjector); ok {
		return g.items(ctx, p, tower)
	}
	return g.pairs(ctx, p, g.e.proj.(models.PairProjector)) // as takes has seen
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

// framesHash tells runs of frames apart that are encoded in the same way.
func framesHash(way string, frames ...*media.Image) (sum [sha256.Size]byte) {
	h := sha256.New() // takes everything without an error
	_, _ = io.WriteString(h, way)
	for _, im := range frames {
		_ = binary.Write(h, binary.LittleEndian, [2]int64{int64(im.W), int64(im.H)})
		h.Write(im.Pix)
	}
	h.Sum(sum[:0])
	return sum
}
