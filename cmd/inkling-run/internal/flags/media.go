package flags

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/media"
)

// Attach returns the options that put media before the prompt. They share
// one list, so that the order of the command line is that of the message.
func Attach() []cli.Flag {
	var list []chat.Part
	return []cli.Flag{
		&cli.GenericFlag{Name: "image", Value: &attachment{chat.Image, &list}, Usage: "picture `FILE` or URL, put before the prompt; may be given several times"},
		&cli.GenericFlag{Name: "audio", Value: &attachment{chat.Audio, &list}, Usage: "sound `FILE` or URL, likewise"},
		&cli.GenericFlag{Name: "video", Value: &attachment{chat.Video, &list}, Usage: "video `FILE`, folder or pattern (f%03d.png) of numbered pictures, or URL, likewise; FILE:fps=F:frames=N has its own rate or number of frames"},
	}
}

// Media returns the options that say how media are prepared.
func Media() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "video-fps", Usage: "take `F` frames of a video a second; the rate of numbered pictures", DefaultText: "the model's, mostly 2"},
		&cli.IntFlag{Name: "video-frames", Usage: "take `N` frames of a video, where the model's layout has room for them", DefaultText: "by the rate"},
		&cli.Float64Flag{Name: "image-rescale", Usage: "scale pictures by `F` first; some other programs always do by 2", DefaultText: "as the model's file says"},
		&cli.Int64Flag{Name: "max-image-pixels", Value: media.DefaultMaxPixels, Usage: "refuse pictures of more than `N` pixels"},
		&cli.IntFlag{Name: "max-audio-seconds", Value: media.DefaultMaxSeconds, Usage: "refuse sound of more than `N` seconds"},
	}
}

// Layout returns the options about how a model gets a video, for models that
// know several ways.
func Layout() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "video-layout", Usage: "give a video as `LAYOUT`: clip, all frames at once, or chunks of a few with their times (Kimi)", DefaultText: "the model's"},
		&cli.IntFlag{Name: "max-clip-patches", Usage: "refuse a video of which the model's tower sees more than `N` patches at once (Kimi)", DefaultText: "65536"},
	}
}

// attachment is the value of an option that adds a medium to the list.
type attachment struct {
	kind chat.Kind
	list *[]chat.Part
}

// Set takes the value of one more option.
func (a *attachment) Set(value string) error {
	p, err := MediaPart(a.kind, value)
	if err != nil {
		return err
	}
	*a.list = append(*a.list, p)
	return nil
}

// String is the default that the help shows: none.
func (a *attachment) String() string { return "" }

// Attached are the media of a command line, in its order.
func Attached(c *cli.Context) []chat.Part {
	return *c.Generic("image").(*attachment).list
}

// videoOption is a setting at the end of the name of a video.
var videoOption = regexp.MustCompile(`^(.*):(fps|frames)=([^:]*)$`)

// MediaPart is a medium as a user names it. A video may end in :fps=F and
// :frames=N, in any order.
func MediaPart(kind chat.Kind, source string) (chat.Part, error) {
	p := chat.Part{Kind: kind, Source: source}
	for kind == chat.Video {
		m := videoOption.FindStringSubmatch(p.Source)
		if m == nil || m[2] == "fps" && p.FPS > 0 || m[2] == "frames" && p.Frames > 0 { // twice: the first is of the name
			break
		}
		name, value := m[1], m[3]
		var err error
		if m[2] == "fps" {
			if p.FPS, err = strconv.ParseFloat(value, 64); err != nil || !validRate(p.FPS) {
				return p, fmt.Errorf("%s: fps %q, want %s", name, value, rateRange)
			}
		} else if p.Frames, err = strconv.Atoi(value); err != nil || p.Frames < 1 {
			return p, fmt.Errorf("%s: frames %q, want a number of at least 1", name, value)
		}
		p.Source = name
	}
	if p.Source == "" {
		return p, fmt.Errorf("%s: no file", kind)
	}
	return p, nil
}

// Frames a second that make sense: above 0 and up to what any camera takes.
const (
	maxRate   = 1e6
	rateRange = "a number above 0 and at most 1e6"
)

func validRate(fps float64) bool { return fps > 0 && fps <= maxRate }

// MediaSettings are the values of Media.
type MediaSettings struct {
	Limits  engine.MediaLimits
	Video   engine.VideoSampling
	Rescale float64 // 0: the model's
}

// MediaFrom checks the options of Media.
func MediaFrom(c *cli.Context) (s MediaSettings, err error) {
	fps, frames := c.Float64("video-fps"), c.Int("video-frames")
	pixels, seconds := c.Int64("max-image-pixels"), c.Int("max-audio-seconds")
	rescale := c.Float64("image-rescale")
	switch {
	case c.IsSet("video-fps") && !validRate(fps):
		return s, usage.Errorf("--video-fps %v: want %s", fps, rateRange)
	case c.IsSet("video-frames") && frames < 1:
		return s, usage.Errorf("--video-frames %d: want at least 1", frames)
	case pixels < 1:
		return s, usage.Errorf("--max-image-pixels %d: want at least 1", pixels)
	case seconds < 1:
		return s, usage.Errorf("--max-audio-seconds %d: want at least 1", seconds)
	case c.IsSet("image-rescale") && !(rescale > 0 && rescale <= maxRescale):
		return s, usage.Errorf("--image-rescale %v: want a number above 0 and at most %d", rescale, maxRescale)
	}
	s.Limits.Image.MaxPixels = pixels
	s.Limits.Audio.MaxSeconds = float64(seconds)
	s.Video = engine.VideoSampling{FPS: fps, Frames: frames}
	s.Rescale = rescale
	return s, nil
}

// maxRescale is far above what any model takes.
const maxRescale = 100

// ClipFrom are how a tower of patches sees clips: the layout, empty for the
// model's, and the patches at once, 0 for the projector's limit.
func ClipFrom(c *cli.Context) (layout media.ClipLayout, patches int, err error) {
	layout, patches = media.ClipLayout(c.String("video-layout")), c.Int("max-clip-patches")
	switch {
	case c.IsSet("video-layout") && layout != media.LayoutClip && layout != media.LayoutChunks:
		return "", 0, usage.Errorf("--video-layout %q: want %s or %s", layout, media.LayoutClip, media.LayoutChunks)
	case c.IsSet("max-clip-patches") && patches < 1:
		return "", 0, usage.Errorf("--max-clip-patches %d: want at least 1", patches)
	}
	return layout, patches, nil
}
