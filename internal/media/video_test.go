package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// all takes every frame.
func all(t Timeline) []int {
	indices := make([]int, len(t.Start))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reds lists the red level of every pixel, frame by frame.
func reds(c *Clip) [][]uint8 {
	var out [][]uint8
	for _, im := range c.Frames {
		var px []uint8
		for i := 0; i < len(im.Pix); i += 3 {
			px = append(px, im.Pix[i])
		}
		out = append(out, px)
	}
	return out
}

// times compares times but for rounding.
var times = cmpopts.EquateApprox(0, 1e-9)

// numbered writes n pictures whose red level is their number from 1 on.
func numbered(t *testing.T, dir, pattern string, from, n int) {
	t.Helper()
	for i := range n {
		m := image.NewNRGBA(image.Rect(0, 0, 2, 1))
		m.SetNRGBA(0, 0, color.NRGBA{uint8(i + 1), 0, 0, 255})
		m.SetNRGBA(1, 0, color.NRGBA{0, 0, 0, 255})
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, fmt.Sprintf(pattern, from+i)), b.Bytes())
	}
}

func TestNumberedFrames(t *testing.T) {
	for _, c := range []struct {
		name    string
		pattern string
		from, n int
		opts    VideoOptions
		path    string // in the directory
		want    []uint8
		times   []float64
	}{
		{"directory", "f%d.png", 8, 4, VideoOptions{}, "", []uint8{1, 2, 3, 4}, []float64{0, 0.5, 1, 1.5}},
		{"at 24 a second", "f%d.png", 0, 30, VideoOptions{FrameRate: 24}, "", []uint8{1, 13, 25}, []float64{0, 0.5, 1}},
		{"at 1 a second", "f%d.png", 0, 2, VideoOptions{FPS: 1}, "", []uint8{1, 2}, []float64{0, 1}},
		{"pattern from 1", "f%03d.png", 1, 3, VideoOptions{}, "f%03d.png", []uint8{1, 2, 3}, []float64{0, 0.5, 1}},
		{"pattern from 0", "f%d.png", 0, 3, VideoOptions{}, "f%d.png", []uint8{1, 2, 3}, []float64{0, 0.5, 1}},
		{"one frame as a pair", "f%d.png", 0, 1, VideoOptions{Sample: SamplePairs(2, 16)}, "", []uint8{1, 1}, []float64{0, 0}},
		{"two frames as a pair", "f%d.png", 0, 2, VideoOptions{Sample: SamplePairs(2, 16)}, "", []uint8{1, 2}, []float64{0, 0.5}},
		{"three frames as pairs", "f%d.png", 0, 3, VideoOptions{Sample: SamplePairs(2, 16)}, "", []uint8{1, 2, 3, 3}, []float64{0, 0.5, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			numbered(t, dir, c.pattern, c.from, c.n)
			writeFile(t, filepath.Join(dir, "notes.txt"), []byte("not a frame"))
			clip, err := DecodeVideo(context.Background(), filepath.Join(dir, c.path), c.opts)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint8
			for _, im := range clip.Frames {
				got = append(got, im.Pix[0])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.times, clip.Times, times); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeVideoRefusals(t *testing.T) {
	t.Setenv("PATH", "")
	dir := t.TempDir()
	numbered(t, dir, "f%d.png", 0, 3)
	sizes := t.TempDir()
	numbered(t, sizes, "f%d.png", 0, 1)
	writeFile(t, filepath.Join(sizes, "f1.png"), readFile(t, "testdata/images/rgba.png"))
	empty := t.TempDir()
	writeFile(t, filepath.Join(empty, "zero"), nil)
	writeFile(t, filepath.Join(empty, "a.mp4"), []byte("\x00\x00\x00\x20ftypisom"))
	for _, c := range []struct {
		name, path string
		opts       VideoOptions
		want       string
	}{
		{"no such file", filepath.Join(dir, "none"), VideoOptions{}, "no such file"},
		{"no frame of a pattern", filepath.Join(dir, "g%d.png"), VideoOptions{}, "g0.png nor"},
		{"two numbers", filepath.Join(dir, "%d-%d.png"), VideoOptions{}, "one number"},
		{"text pattern", filepath.Join(dir, "%s.png"), VideoOptions{}, "one number"},
		{"empty file", filepath.Join(empty, "zero"), VideoOptions{}, "empty file"},
		{"directory without pictures", empty, VideoOptions{}, "no pictures"},
		{"video without ffmpeg", filepath.Join(empty, "a.mp4"), VideoOptions{}, "not installed"},
		{"frames of two sizes", sizes, VideoOptions{}, "frame 1 has 23 x 17 pixels, the first 2 x 1"},
		{"too many frames", dir, VideoOptions{MaxFrames: 2}, "3 sampled frames, at most 2"},
		{"frames too large", dir, VideoOptions{Limits: Limits{MaxPixels: 1}}, "2 pixels, at most 1"},
		{"file too large", "testdata/images/plain.gif", VideoOptions{Limits: Limits{MaxBytes: 10}}, "at most 10"},
		{"animation too large", "testdata/images/anim-lossy.webp", VideoOptions{Limits: Limits{MaxPixels: 10}}, "96 pixels, at most 10"},
		{"sampler out of range", dir, VideoOptions{Sample: func(Timeline) []int { return []int{3} }}, "frame 3 of 3"},
		{"sampler backwards", dir, VideoOptions{Sample: func(Timeline) []int { return []int{1, 0} }}, "frame 0 of 3"},
		{"sampler of nothing", dir, VideoOptions{Sample: func(Timeline) []int { return nil }}, "no frame"},
		{"transform", dir, VideoOptions{Transform: func(*Image) (*Image, error) { return nil, errors.New("too dark") }}, "frame 0: too dark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeVideo(context.Background(), c.path, c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %v, want %q with the path", err, c.want)
			}
		})
	}
}

func TestDecodeVideoData(t *testing.T) {
	clip, err := DecodeVideoData(context.Background(), "x", readFile(t, "testdata/images/anim-lossless.webp"), VideoOptions{FPS: 5})
	if err != nil {
		t.Fatal(err)
	}
	// Frames start at 0, 0.1, 0.3 and 0.6 s; the clip lasts 1 s.
	if diff := cmp.Diff([]int{0, 1, 2, 3}, clip.Index); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	still, err := DecodeVideoData(context.Background(), "x", readFile(t, "testdata/images/rgba.png"), VideoOptions{Sample: SamplePairs(2, 16)})
	if err != nil {
		t.Fatal(err)
	}
	if len(still.Frames) != 2 || still.Frames[0] != still.Frames[1] {
		t.Errorf("%d frames of a still picture, want one twice", len(still.Frames))
	}
	t.Setenv("PATH", "")
	for want, data := range map[string][]byte{
		"empty file":     nil,
		"not installed":  []byte("\x00\x00\x00\x20ftypisom"),
		"at most 64 are": make([]byte, 65),
		"file is cut":    readFile(t, "testdata/images/anim-lossless.webp")[:60],
	} {
		_, err := DecodeVideoData(context.Background(), "x", data, VideoOptions{Limits: Limits{MaxBytes: 64}})
		if err == nil || !strings.HasPrefix(err.Error(), "x: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestDecodeVideoTransform(t *testing.T) {
	dir := t.TempDir()
	numbered(t, dir, "f%d.png", 0, 3)
	clip, err := DecodeVideo(context.Background(), dir, VideoOptions{
		Transform: func(im *Image) (*Image, error) { return resize(im, 6, 4, bicubic), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, im := range clip.Frames {
		if im.W != 6 || im.H != 4 {
			t.Errorf("frame %d: %d x %d", i, im.W, im.H)
		}
	}
	// Frames of two sizes stay an error when the transform makes them equal.
	sizes := t.TempDir()
	numbered(t, sizes, "f%d.png", 0, 1)
	writeFile(t, filepath.Join(sizes, "f1.png"), readFile(t, "testdata/images/rgba.png"))
	_, err = DecodeVideo(context.Background(), sizes, VideoOptions{
		Transform: func(im *Image) (*Image, error) { return resize(im, 6, 4, bicubic), nil },
	})
	if err == nil || !strings.Contains(err.Error(), "frame 1 has 23 x 17 pixels, the first 2 x 1") {
		t.Errorf("frames of two sizes: error %v", err)
	}
}

// The two programs are replaced by scripts: three frames of 2 x 1 pixels.
func TestFFmpegVideo(t *testing.T) {
	const (
		probe = `echo '{"streams": [{"width": 2, "height": 1, "avg_frame_rate": "2/1", "nb_read_packets": "3"}]}'`
		ppm   = `printf 'P6\n2 1\n255\n\001\000\000\000\000\000P6\n2 1\n255\n \n\000\000\000\000P6\n2 1\n255\n\003\000\000\000\000\000'`
	)
	for _, c := range []struct {
		name, probe, ffmpeg, want string
	}{
		{"frames", probe, ppm, ""},
		{"too few frames", probe, `printf 'P6\n2 1\n255\n\001\000\000\000\000\000'`, "1 of 3 frames"},
		{"half a frame", probe, `printf 'P6\n2 1\n255\n\001'`, "cut short"},
		{"no pixmap", probe, `printf 'P5\n2 1\n255\n\001\000'`, "want an 8-bit pixmap"},
		{"huge frame", probe, `printf 'P6\n200000 100000\n255\n\001'`, "pixels, at most"},
		{"failure", probe, ppm + "; echo 'corrupt input packet' >&2; exit 1", "ffmpeg: corrupt input packet"},
		{"probe fails", "echo 'invalid data' >&2; exit 1", ppm, "ffprobe: invalid data"},
		{"cut short", "echo '[matroska] File ended prematurely' >&2; " + probe, ppm, "file is cut short"},
		{"probe talks", "echo hello", ppm, "ffprobe: "},
		{"no picture track", `echo '{"streams": []}'`, ppm, "no picture track"},
		{"no rate", strings.Replace(probe, "2/1", "0/0", 1), ppm, `rate of "0/0"`},
		{"no frames", strings.Replace(probe, `"3"`, `"0"`, 1), ppm, `counts "0" frames`},
		{"too many frames", strings.Replace(probe, `"3"`, `"2000000"`, 1), ppm, "frames, at most"},
		{"huge", strings.Replace(probe, `"width": 2,`, `"width": 2000000000,`, 1), ppm, "pixels, at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeTool(t, "ffprobe", c.probe)
			fakeTool(t, "ffmpeg", c.ffmpeg)
			path := writeFile(t, filepath.Join(t.TempDir(), "a.mp4"), []byte("\x00\x00\x00\x20ftypisom"))
			clip, err := DecodeVideo(context.Background(), path, VideoOptions{})
			if c.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := DecodeVideoData(context.Background(), "x", readFile(t, path), VideoOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(reds(clip), reds(data)); diff != "" {
				t.Errorf("from memory (-file +memory):\n%s", diff)
			}
			if diff := cmp.Diff([][]uint8{{1, 0}, {' ', 0}, {3, 0}}, reds(clip)); diff != "" {
				t.Errorf("pixels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]float64{0, 0.5, 1}, clip.Times, times); diff != "" || clip.FPS != 2 {
				t.Errorf("%g frames a second, times (-want +got):\n%s", clip.FPS, diff)
			}
		})
	}
}

// With the real programs: a test picture that ffmpeg makes itself, whose frames
// are grey of a rising level.
func TestFFmpegVideoInstalled(t *testing.T) {
	for _, tool := range []string{"ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	path := filepath.Join(t.TempDir(), "a.mkv")
	out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=black:s=32x16:r=10:d=2,geq=lum=16+N*10:cb=128:cr=128",
		"-c:v", "ffv1", "-pix_fmt", "yuv444p", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ffmpeg: %v: %s", err, out)
	}
	clip, err := DecodeVideo(context.Background(), path, VideoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 5, 10, 15}, clip.Index); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	for i, im := range clip.Frames {
		// Limited range: 16 is black, a step of 219 is white.
		want := float64(clip.Index[i]) * 10 * 255 / 219
		if math.Abs(float64(im.Pix[0])-want) > 2 || im.W != 32 || im.H != 16 {
			t.Errorf("frame %d: %d x %d of level %d, want 32 x 16 of %.0f", i, im.W, im.H, im.Pix[0], want)
		}
	}
	data := readFile(t, path)
	cut := writeFile(t, filepath.Join(t.TempDir(), "cut.mkv"), data[:len(data)*2/3])
	if _, err := DecodeVideo(context.Background(), cut, VideoOptions{}); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("a file cut short: error %v", err)
	}
}
