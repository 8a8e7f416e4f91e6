package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Clip is the sampled part of a video.
type Clip struct {
	Frames []*Image  // of equal size unless a Transform changed it; a frame sampled twice is shared
	Times  []float64 // when each frame appears in the source, in seconds
	Index  []int     // its index in the source
	FPS    float64   // of the source, on average
}

// VideoOptions says which frames to take and what to accept. The zero value
// takes DefaultFPS frames a second.
type VideoOptions struct {
	Sample Sampler // nil means one every 1/FPS seconds
	FPS    float64 // 0 means DefaultFPS

	// FrameRate is the rate of numbered pictures, which carry no times. 0 means
	// that they are sampled already: their rate is FPS.
	FrameRate float64

	// Transform, if set, is applied to each frame as soon as it is decoded, in
	// their order, so that a long clip is held at the size that the model needs.
	// The frames of the file must have one size, those that it returns need not.
	Transform func(*Image) (*Image, error)

	MaxFrames int    // most frames that Sample may choose, 0 means 768
	Limits    Limits // of a single frame, and of the file for animations
}

const (
	// DefaultFPS is the sampling rate of the reference processors.
	DefaultFPS = 2.0
	// defaultMaxFrames is the most frames taken unless the caller says
	// otherwise.
	defaultMaxFrames = 768

	maxClipPixels   = 512 << 20 // of all frames kept
	maxSourceFrames = 1 << 20   // of the timeline
)

func (o VideoOptions) sampler() Sampler {
	if o.Sample != nil {
		return o.Sample
	}
	return sampleFPS(o.fps())
}

func (o VideoOptions) fps() float64 {
	if o.FPS > 0 {
		return o.FPS
	}
	return DefaultFPS
}

// videoSource is an opened clip. frames calls yield for the frames with the
// given distinct, increasing indices, in this order.
type videoSource struct {
	format string
	Timeline
	frames func(ctx context.Context, indices []int, yield func(*Image) error) error
}

// DecodeVideo samples frames from path: an animated GIF, PNG or WebP, a
// directory of numbered pictures or a pattern such as "frame%03d.png" for them,
// a still picture (one frame), or a video file, for which ffmpeg and ffprobe
// must be installed.
//
// Errors are [FormatError], [UnsupportedError] or [LimitError], the context's,
// or the file system's.
func DecodeVideo(ctx context.Context, path string, opts VideoOptions) (*Clip, error) {
	src, err := openVideo(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	return src.sample(ctx, path, opts)
}

// DecodeVideoData is DecodeVideo for a file that is in memory. name appears in
// errors only. For video files data goes through a temporary file.
func DecodeVideoData(ctx context.Context, name string, data []byte, opts VideoOptions) (*Clip, error) {
	if n := int64(len(data)); n > opts.Limits.bytes() {
		return nil, &LimitError{File: name, What: "bytes", Found: n, Max: opts.Limits.bytes()}
	}
	if len(data) == 0 {
		return nil, &FormatError{File: name, Offset: -1, Err: errors.New("empty file")}
	}
	if format, err := sniffImage(name, data); err == nil {
		src, err := openAnimation(name, format.name, data, opts)
		if err != nil {
			return nil, err
		}
		return src.sample(ctx, name, opts)
	}
	path, remove, err := temporaryFile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer remove()
	src, err := openFFmpeg(ctx, name, path, opts)
	if err != nil {
		return nil, err
	}
	return src.sample(ctx, name, opts)
}

// sample chooses and decodes the frames.
func (src videoSource) sample(ctx context.Context, path string, opts VideoOptions) (*Clip, error) {
	if n := len(src.Start); n > maxSourceFrames {
		return nil, &LimitError{File: path, What: "frames", Found: int64(n), Max: maxSourceFrames}
	}
	clip := &Clip{FPS: src.FPS, Index: opts.sampler()(src.Timeline)}
	limit := opts.MaxFrames
	if limit <= 0 {
		limit = defaultMaxFrames
	}
	if n := len(clip.Index); n > limit {
		return nil, &LimitError{File: path, What: "sampled frames", Found: int64(n), Max: int64(limit)}
	}
	var distinct []int
	for i, at := range clip.Index {
		if i > 0 && at < clip.Index[i-1] || at < 0 || at >= len(src.Start) {
			return nil, fmt.Errorf("%s: sampler chose frame %d of %d out of order", path, at, len(src.Start))
		}
		if i == 0 || at != clip.Index[i-1] {
			distinct = append(distinct, at)
		}
		clip.Times = append(clip.Times, src.Start[at])
	}
	if len(distinct) == 0 {
		return nil, fmt.Errorf("%s: sampler chose no frame of %d", path, len(src.Start))
	}
	if err := clip.read(ctx, path, src, distinct, opts); err != nil {
		return nil, err
	}
	return clip, nil
}

// read decodes the distinct frames and fills c.Frames.
func (c *Clip) read(ctx context.Context, path string, src videoSource, distinct []int, opts VideoOptions) error {
	decoded := make(map[int]*Image, len(distinct))
	var w, h int // of the first frame
	var pixels int64
	err := src.frames(ctx, distinct, func(im *Image) error {
		at := distinct[len(decoded)]
		if w == 0 {
			w, h = im.W, im.H
		}
		if im.W != w || im.H != h {
			return &FormatError{File: path, Format: src.format, Offset: -1, Err: fmt.Errorf("frame %d has %d x %d pixels, the first %d x %d", at, im.W, im.H, w, h)}
		}
		if opts.Transform != nil {
			var err error
			if im, err = opts.Transform(im); err != nil {
				return fmt.Errorf("%s: frame %d: %w", path, at, err)
			}
		}
		if pixels += int64(im.W) * int64(im.H); pixels > maxClipPixels {
			return &LimitError{File: path, What: "pixels in all frames", Found: pixels, Max: maxClipPixels}
		}
		decoded[at] = im
		return nil
	})
	if err != nil {
		return err
	}
	if len(decoded) < len(distinct) {
		return &FormatError{File: path, Format: src.format, Offset: -1, Err: fmt.Errorf("%d of %d frames: file is cut short", len(decoded), len(distinct))}
	}
	for _, at := range c.Index {
		c.Frames = append(c.Frames, decoded[at])
	}
	return nil
}

func openVideo(ctx context.Context, path string, opts VideoOptions) (videoSource, error) {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) && strings.ContainsRune(path, '%') {
		return openPattern(path, opts)
	}
	if err != nil {
		return videoSource{}, err
	}
	if st.IsDir() {
		return openDirectory(path, opts)
	}
	if !st.Mode().IsRegular() { // a named pipe may wait for ever to be opened
		return videoSource{}, fmt.Errorf("%s: is neither a file nor a folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return videoSource{}, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return videoSource{}, &FormatError{File: path, Offset: -1, Err: errors.New("empty file")}
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return videoSource{}, err
	}
	for _, format := range imageFormats {
		if !hasMagic(head[:n], format.magic) {
			continue
		}
		limit := opts.Limits.bytes()
		data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head[:n]), f), limit+1))
		if err != nil {
			return videoSource{}, err
		}
		if int64(len(data)) > limit {
			return videoSource{}, &LimitError{File: path, What: "bytes", Found: max(st.Size(), limit+1), Max: limit}
		}
		return openAnimation(path, format.name, data, opts)
	}
	return openFFmpeg(ctx, path, path, opts)
}
