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

// openFFmpeg asks ffprobe for the length and rate of a video file's first
// picture track.
func openFFmpeg(ctx context.Context, path string, opts VideoOptions) (videoSource, error) {
	ffmpeg, err := lookTool("ffmpeg", path, "")
	if err != nil {
		return videoSource{}, err
	}
	ffprobe, err := lookTool("ffprobe", path, "")
	if err != nil {
		return videoSource{}, err
	}
	args := append([]string{"-v", "error"}, ffmpegInput(path)...)
	args = append(args, "-select_streams", "v:0", "-count_packets",
		"-show_entries", "stream=width,height,avg_frame_rate,nb_read_packets", "-of", "json")
	cmd := newTool(ctx, ffprobe, args...)
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return videoSource{}, ctx.Err()
		}
		return videoSource{}, formatErr(path, "video", cmd.explain(err))
	}
	// ffprobe counts what is there and says in passing that there should be more.
	for _, complaint := range []string{"File ended prematurely", "partial file"} { // Matroska, MP4
		if strings.Contains(cmd.stderr.String(), complaint) {
			return videoSource{}, formatErr(path, "video", io.ErrUnexpectedEOF)
		}
	}
	var probe struct {
		Streams []struct {
			Width, Height int
			Rate          string `json:"avg_frame_rate"`
			Packets       string `json:"nb_read_packets"`
		}
	}
	if err := json.Unmarshal(out, &probe); err != nil {
		return videoSource{}, formatErr(path, "video", fmt.Errorf("ffprobe: %w", err))
	}
	if len(probe.Streams) == 0 {
		return videoSource{}, &UnsupportedError{File: path, Format: "video", Reason: "no picture track"}
	}
	s := probe.Streams[0]
	if err := opts.Limits.check(path, "video", s.Width, s.Height); err != nil {
		return videoSource{}, err
	}
	n, err := strconv.Atoi(s.Packets)
	if err != nil || n < 1 {
		return videoSource{}, formatErr(path, "video", fmt.Errorf("ffprobe counts %q frames", s.Packets))
	}
	if n > maxSourceFrames {
		return videoSource{}, &LimitError{File: path, What: "frames", Found: int64(n), Max: maxSourceFrames}
	}
	rate := parseRatio(s.Rate)
	if rate <= 0 || rate > 1000 {
		return videoSource{}, formatErr(path, "video", fmt.Errorf("ffprobe gives a rate of %q", s.Rate))
	}
	return videoSource{
		format:   "video",
		Timeline: evenTimeline(n, rate),
		frames: func(ctx context.Context, indices []int, yield func(*Image) error) error {
			return readFrames(ctx, ffmpeg, path, indices, opts.Limits, yield)
		},
	}, nil
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
func readFrames(ctx context.Context, ffmpeg, path string, indices []int, lim Limits, yield func(*Image) error) error {
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
		return fmt.Errorf("%s: ffmpeg: %w", path, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: ffmpeg: %w", path, err)
	}
	b := bufio.NewReaderSize(out, 1<<20)
	var readErr error
	for readErr == nil {
		var im *Image
		if im, readErr = readPPM(path, b, lim); readErr == nil {
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
		return formatErr(path, "video", cmd.explain(err))
	}
	return nil
}

// readPPM reads one binary pixmap as ffmpeg writes it; io.EOF at the end.
func readPPM(path string, r *bufio.Reader, lim Limits) (*Image, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	var lines [3]string // "P6", "width height", "255"
	for i := range lines {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, formatErr(path, "video", err)
		}
		lines[i] = strings.TrimSuffix(line, "\n")
	}
	var w, h int
	if _, err := fmt.Sscanf(lines[1], "%d %d", &w, &h); err != nil || lines[0] != "P6" || lines[2] != "255" {
		return nil, formatErr(path, "video", fmt.Errorf("ffmpeg wrote %q, want an 8-bit pixmap", lines))
	}
	if err := lim.check(path, "video", w, h); err != nil {
		return nil, err
	}
	im := newImage(w, h)
	if _, err := io.ReadFull(r, im.Pix); err != nil {
		return nil, formatErr(path, "video", err)
	}
	return im, nil
}
