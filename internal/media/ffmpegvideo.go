package media

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// openFFmpeg asks ffprobe for the length and rate of the first picture track of
// the file at path, which errors call name.
func openFFmpeg(ctx context.Context, name, path string, opts VideoOptions) (videoSource, error) {
	ffmpeg, err := lookTool("ffmpeg", name, "")
	if err != nil {
		return videoSource{}, err
	}
	track, err := probeVideo(ctx, name, path)
	if err != nil {
		return videoSource{}, err
	}
	if err := opts.Limits.check(name, "video", track.w, track.h); err != nil {
		return videoSource{}, err
	}
	if track.frames > maxSourceFrames {
		return videoSource{}, &LimitError{File: name, What: "frames", Found: int64(track.frames), Max: maxSourceFrames}
	}
	return videoSource{
		format:   "video",
		Timeline: evenTimeline(track.frames, track.rate),
		frames: func(ctx context.Context, indices []int, yield func(*Image) error) error {
			return readFrames(ctx, ffmpeg, name, path, indices, opts.Limits, yield)
		},
	}, nil
}

// videoTrack is what ffprobe says of a picture track.
type videoTrack struct {
	w, h   int
	frames int
	rate   float64
}

func probeVideo(ctx context.Context, name, path string) (videoTrack, error) {
	ffprobe, err := lookTool("ffprobe", name, "")
	if err != nil {
		return videoTrack{}, err
	}
	args := append([]string{"-v", "error"}, ffmpegInput(path)...)
	args = append(args, "-select_streams", "v:0", "-count_packets",
		"-show_entries", "stream=width,height,avg_frame_rate,nb_read_packets", "-of", "json")
	cmd := newTool(ctx, ffprobe, args...)
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return videoTrack{}, ctx.Err()
		}
		return videoTrack{}, formatErr(name, "video", cmd.explain(err))
	}
	if cmd.cutShort() { // ffprobe counts what is there
		return videoTrack{}, formatErr(name, "video", io.ErrUnexpectedEOF)
	}
	var probe struct {
		Streams []struct {
			Width, Height int
			Rate          string `json:"avg_frame_rate"`
			Packets       string `json:"nb_read_packets"`
		}
	}
	if err := json.Unmarshal(out, &probe); err != nil {
		return videoTrack{}, formatErr(name, "video", fmt.Errorf("ffprobe: %w", err))
	}
	if len(probe.Streams) == 0 {
		return videoTrack{}, &UnsupportedError{File: name, Format: "video", Reason: "no picture track"}
	}
	s := probe.Streams[0]
	n, err := strconv.Atoi(s.Packets)
	if err != nil || n < 1 {
		return videoTrack{}, formatErr(name, "video", fmt.Errorf("ffprobe counts %q frames", s.Packets))
	}
	rate := parseRatio(s.Rate)
	if !(rate > 0 && rate <= 1000) {
		return videoTrack{}, formatErr(name, "video", fmt.Errorf("ffprobe gives a rate of %q", s.Rate))
	}
	return videoTrack{s.Width, s.Height, n, rate}, nil
}

// parseRatio reads "30000/1001"; anything else gives 0.
func parseRatio(s string) float64 {
	num, den, _ := strings.Cut(s, "/")
	a, err1 := strconv.ParseFloat(num, 64)
	b, err2 := strconv.ParseFloat(den, 64)
	if err1 != nil || err2 != nil || b == 0 {
		return 0
	}
	return a / b
}

// readFrames has ffmpeg write the wanted frames as one PPM picture after the
// other: unlike raw video they say their size, which the track's rotation may
// have changed.
func readFrames(ctx context.Context, ffmpeg, name, path string, indices []int, lim Limits, yield func(*Image) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wanted := make([]string, len(indices))
	for i, n := range indices {
		wanted[i] = fmt.Sprintf("eq(n,%d)", n)
	}
	// The frames are given consecutive times at a made-up rate, so that no
	// version of ffmpeg drops or repeats any to keep a rate.
	filter := "select='" + strings.Join(wanted, "+") + "',settb=1/25,setpts=N"
	args := append([]string{"-v", "error", "-xerror", "-nostdin"}, ffmpegInput(path)...)
	args = append(args, "-map", "0:v:0", "-vf", filter, "-r", "25", "-frames:v", strconv.Itoa(len(indices)),
		"-sws_flags", "bicubic+accurate_rnd+full_chroma_int", "-c:v", "ppm", "-pix_fmt", "rgb24", "-f", "image2pipe", "pipe:1")
	cmd := newTool(ctx, ffmpeg, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("%s: ffmpeg: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: ffmpeg: %w", name, err)
	}
	b := bufio.NewReaderSize(out, 1<<20)
	var readErr error
	for readErr == nil {
		var im *Image
		if im, readErr = readPPM(name, b, lim); readErr == nil {
			readErr = yield(im)
		}
	}
	if !errors.Is(readErr, io.EOF) {
		cancel()
		_ = cmd.Wait() // killed
		return readErr
	}
	if err := cmd.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return formatErr(name, "video", cmd.explain(err))
	}
	return nil
}

// readPPM reads one binary pixmap as ffmpeg writes it; io.EOF at the end.
func readPPM(name string, r *bufio.Reader, lim Limits) (*Image, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	var lines [3]string // "P6", "width height", "255"
	for i := range lines {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, formatErr(name, "video", err)
		}
		lines[i] = strings.TrimSuffix(line, "\n")
	}
	var w, h int
	if _, err := fmt.Sscanf(lines[1], "%d %d", &w, &h); err != nil || lines[0] != "P6" || lines[2] != "255" {
		return nil, formatErr(name, "video", fmt.Errorf("ffmpeg wrote %q, want an 8-bit pixmap", lines))
	}
	if err := lim.check(name, "video", w, h); err != nil {
		return nil, err
	}
	im := newImage(w, h)
	if _, err := io.ReadFull(r, im.Pix); err != nil {
		return nil, formatErr(name, "video", err)
	}
	return im, nil
}
