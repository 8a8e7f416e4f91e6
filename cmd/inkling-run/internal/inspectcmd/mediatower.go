package inspectcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	arch "github.com/inkling-go/inkling/models"
)

// tower is a projector that sees pictures as patches and clips as items, as Kimi's
// does. It is laid out on a planner: it says what media become and computes nothing.
type tower struct {
	arch.Projector
	clips arch.ClipProjector

	file *arch.File
	be   *binding.Backend
}

// openTower opens an mmproj file; nil if it is none of such a tower.
func openTower(path string, maxPatches int) (_ *tower, err error) {
	t := new(tower)
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.file, err = arch.OpenFile(path); err != nil {
		return nil, err
	}
	if t.be, err = binding.NewPlanner(binding.CPU()); err != nil {
		return nil, err
	}
	if t.Projector, err = arch.OpenProjector(t.file, arch.Params{Backend: t.be, MaxClipPatches: maxPatches}); err != nil {
		return nil, err
	}
	clips, ok := t.Projector.(arch.ClipProjector)
	if !ok {
		t.close()
		return nil, nil
	}
	t.clips = clips
	return t, nil
}

func (t *tower) close() {
	if t.Projector != nil {
		t.Projector.Close()
	}
	if t.be != nil {
		t.be.Close()
	}
	if t.file != nil {
		t.file.Close() // it was only read
	}
}

// towerShow describes one medium as a tower of patches sees it.
func (v *viewer) towerShow(ctx context.Context, p chat.Part) error {
	switch p.Kind {
	case chat.Audio:
		return fmt.Errorf("%s: the projector has no tower for sounds", flags.MediumName(p))
	case chat.Video:
		return v.towerVideo(ctx, p)
	}
	name, im, err := v.image(ctx, p.Source)
	if err != nil {
		return err
	}
	v.line("size", "%d x %d pixels", im.W, im.H)
	fitted, err := v.tower.clips.FitFrame(im, media.LayoutClip, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if fitted.W != im.W || fitted.H != im.H {
		v.line("fitted", "%d x %d pixels", fitted.W, fitted.H)
	}
	v.line("tokens", "%d", v.tower.ImageRows(im.W, im.H))
	return nil
}

// towerVideo lists the items that a clip becomes. Frames are fitted as they are
// decoded, as the engine does it.
func (v *viewer) towerVideo(ctx context.Context, p chat.Part) error {
	rule := v.tower.clips.ClipRule()
	if v.layout != "" {
		rule.Layout = v.layout
	}
	if fps := cmp.Or(p.FPS, v.MediaSettings.Video.FPS); fps > 0 {
		rule.FPS = fps
	}
	clip, whole, err := v.towerFrames(ctx, p, rule)
	if err != nil {
		return err
	}
	items, err := rule.Items(clip)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.MediumName(p), err)
	}
	v.line("length", "%s s, %d frames, %s a second", seconds(whole.Duration()), len(whole.Start), seconds(whole.FPS))
	v.line("layout", "%s, %d of the frames at %s a second", rule.Layout, len(clip.Frames), seconds(rule.FPS))
	total := 0
	for _, item := range items {
		first, last := clip.Frames[item.First], item.First+item.N-1
		rows := v.tower.clips.ClipRows(first.W, first.H)
		total += rows
		at := ""
		if item.Time != "" {
			at = " behind the text " + item.Time
		}
		v.line("item", "frames %d to %d, %d x %d pixels, %d tokens%s", clip.Index[item.First], clip.Index[last], first.W, first.H, rows, at)
	}
	besides := ""
	if len(items) > 0 && items[0].Time != "" {
		besides = ", besides those of the times"
	}
	v.line("tokens", "%d in %d items%s", total, len(items), besides)
	if rule.Untrained {
		v.line("note", "the model was not trained on video")
	}
	return nil
}

// towerFrames samples a clip.
func (v *viewer) towerFrames(ctx context.Context, p chat.Part, rule media.ClipRule) (*media.Clip, media.Timeline, error) {
	var whole media.Timeline
	sampled, fitted := 0, 0
	sample := rule.Sampler(cmp.Or(p.Frames, v.MediaSettings.Video.Frames))
	clip, err := v.decode(ctx, p.Source, media.VideoOptions{
		FPS: rule.FPS, Limits: v.Limits.Image,
		Sample: func(t media.Timeline) []int {
			whole = t
			indices := sample(t)
			sampled = len(indices)
			return indices
		},
		Transform: func(im *media.Image) (*media.Image, error) {
			n := rule.ItemFrames(fitted, sampled)
			fitted++
			im, err := v.tower.clips.FitFrame(im, rule.Layout, n)
			if err == nil {
				err = v.tower.clips.CheckClip(n, im.W, im.H)
			}
			return im, err
		},
	})
	return clip, whole, err
}
