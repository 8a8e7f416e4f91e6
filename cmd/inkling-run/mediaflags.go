package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/media"
)

// attachFlags returns the options that put media before the prompt. They share
// one list, so that the order of the command line is that of the message.
func attachFlags() []cli.Flag {
	var list []chat.Part
	return []cli.Flag{
		&cli.GenericFlag{Name: "image", Value: &attachment{chat.Image, &list}, Usage: "picture `FILE` or URL, put before the prompt; may be given several times"},
		&cli.GenericFlag{Name: "audio", Value: &attachment{chat.Audio, &list}, Usage: "sound `FILE` or URL, likewise"},
		&cli.GenericFlag{Name: "video", Value: &attachment{chat.Video, &list}, Usage: "video `FILE`, folder or pattern (f%03d.png) of numbered pictures, or URL, likewise; FILE:fps=F sets its rate (experimental)"},
	}
}

// mediaFlags returns the options that say how media are prepared.
func mediaFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "video-fps", Value: media.DefaultFPS, Usage: "take `F` frames of a video a second; the rate of numbered pictures"},
		&cli.IntFlag{Name: "video-frames", Usage: "take at most `N` frames of a video", DefaultText: "what the model takes"},
		&cli.Float64Flag{Name: "image-rescale", Usage: "scale pictures by `F` first; some other programs always do by 2", DefaultText: "as the model's file says"},
		&cli.Int64Flag{Name: "max-image-pixels", Value: media.DefaultMaxPixels, Usage: "refuse pictures of more than `N` pixels"},
		&cli.IntFlag{Name: "max-audio-seconds", Value: media.DefaultMaxSeconds, Usage: "refuse sound of more than `N` seconds"},
	}
}

// attachment is the value of an option that adds a medium to the list.
type attachment struct {
	kind chat.Kind
	list *[]chat.Part
}

// Set takes the value of one more option.
func (a *attachment) Set(value string) error {
	p, err := mediaPart(a.kind, value)
	if err != nil {
		return err
	}
	*a.list = append(*a.list, p)
	return nil
}

// String is the default that the help shows: none.
func (a *attachment) String() string { return "" }

// attachedParts are the media of a command line, in its order.
func attachedParts(c *cli.Context) []chat.Part {
	return *c.Generic("image").(*attachment).list
}

// mediaPart is a medium as a user names it. A video may end in :fps=F.
func mediaPart(kind chat.Kind, source string) (chat.Part, error) {
	p := chat.Part{Kind: kind, Source: source}
	if i := strings.LastIndex(source, ":fps="); kind == chat.Video && i >= 0 {
		rate := source[i+len(":fps="):]
		fps, err := strconv.ParseFloat(rate, 64)
		if err != nil || !validRate(fps) {
			return p, fmt.Errorf("%s: fps %q, want %s", source[:i], rate, rateRange)
		}
		p.Source, p.FPS = source[:i], fps
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

// mediaSettings are the values of mediaFlags.
type mediaSettings struct {
	limits  engine.MediaLimits
	video   engine.VideoSampling
	rescale float64 // 0: the model's
}

func mediaSettingsFrom(c *cli.Context) (s mediaSettings, err error) {
	fps, frames := c.Float64("video-fps"), c.Int("video-frames")
	pixels, seconds := c.Int64("max-image-pixels"), c.Int("max-audio-seconds")
	rescale := c.Float64("image-rescale")
	switch {
	case !validRate(fps):
		return s, usagef("--video-fps %v: want %s", fps, rateRange)
	case c.IsSet("video-frames") && frames < 2:
		return s, usagef("--video-frames %d: want at least 2", frames)
	case pixels < 1:
		return s, usagef("--max-image-pixels %d: want at least 1", pixels)
	case seconds < 1:
		return s, usagef("--max-audio-seconds %d: want at least 1", seconds)
	case c.IsSet("image-rescale") && !(rescale > 0 && rescale <= maxRescale):
		return s, usagef("--image-rescale %v: want a number above 0 and at most %d", rescale, maxRescale)
	}
	s.limits.Image.MaxPixels = pixels
	s.limits.Audio.MaxSeconds = float64(seconds)
	s.video = engine.VideoSampling{FPS: fps, Frames: frames}
	s.rescale = rescale
	return s, nil
}

// maxRescale is far above what any model takes.
const maxRescale = 100

func (o *runOptions) setMedia(c *cli.Context) error {
	s, err := mediaSettingsFrom(c)
	o.request.Limits, o.request.Video, o.engine.ImageRescale = s.limits, s.video, s.rescale
	return err
}
