package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The canvas has four pixels in a row; each frame paints some of them, "." is
// transparent. What is left for the next frame depends on the disposal.
func TestGIF(t *testing.T) {
	palette := color.Palette{color.RGBA{9, 0, 0, 255}, color.RGBA{1, 0, 0, 255}, color.RGBA{2, 0, 0, 255}, color.RGBA{3, 0, 0, 255}, color.RGBA{}}
	type frame struct {
		x       int
		pixels  string
		dispose byte
	}
	for _, c := range []struct {
		name   string
		frames []frame
		want   [][]uint8
	}{
		{
			"keep",
			[]frame{{0, "1111", gif.DisposalNone}, {1, "2.", gif.DisposalNone}, {2, "33", 0}},
			[][]uint8{{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 2, 3, 3}},
		},
		{
			"background",
			[]frame{{0, "1111", gif.DisposalNone}, {1, "2.", gif.DisposalBackground}, {3, "3", 0}},
			[][]uint8{{1, 1, 1, 1}, {1, 2, 1, 1}, {1, 0, 0, 3}},
		},
		{
			"opaque background",
			[]frame{{0, "1111", gif.DisposalNone}, {1, "22", gif.DisposalBackground}, {3, "3", 0}},
			[][]uint8{{1, 1, 1, 1}, {1, 2, 2, 1}, {1, 9, 9, 3}},
		},
		{
			"previous",
			[]frame{{0, "1111", gif.DisposalNone}, {1, "22", gif.DisposalPrevious}, {3, "3", 0}},
			[][]uint8{{1, 1, 1, 1}, {1, 2, 2, 1}, {1, 1, 1, 3}},
		},
		{
			"empty canvas",
			[]frame{{2, "1", gif.DisposalPrevious}, {1, "2", 0}},
			[][]uint8{{0, 0, 1, 0}, {0, 2, 0, 0}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &gif.GIF{Config: image.Config{Width: 4, Height: 1, ColorModel: palette}}
			for i, f := range c.frames {
				p := palette
				if !strings.Contains(f.pixels, ".") {
					p = palette[:4] // no transparent colour, so no flag for one
				}
				m := image.NewPaletted(image.Rect(f.x, 0, f.x+len(f.pixels), 1), p)
				for x, v := range f.pixels {
					m.Pix[x] = uint8(v - '0')
					if v == '.' {
						m.Pix[x] = 4
					}
				}
				g.Image = append(g.Image, m)
				g.Delay = append(g.Delay, []int{50, 0, 20}[i])
				g.Disposal = append(g.Disposal, f.dispose)
			}
			var b bytes.Buffer
			if err := gif.EncodeAll(&b, g); err != nil {
				t.Fatal(err)
			}
			path := writeFile(t, filepath.Join(t.TempDir(), "a.gif"), b.Bytes())
			clip, err := DecodeVideo(context.Background(), path, VideoOptions{Sample: all})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, reds(clip)); diff != "" {
				t.Errorf("pixels (-want +got):\n%s", diff)
			}
			// No delay counts as 0.1 s.
			if diff := cmp.Diff([]float64{0, 0.5, 0.6}[:len(c.frames)], clip.Times, times); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

// testAPNGFrame is one frame control and its pixels.
type testAPNGFrame struct {
	x              uint8
	pixels         []color.NRGBA
	dispose, blend uint8
}

// buildAPNG writes a canvas of four pixels in a row. A still picture comes
// first if hidden is set.
func buildAPNG(t *testing.T, frames []testAPNGFrame, hidden bool) []byte {
	t.Helper()
	idat := func(px []color.NRGBA) []byte {
		m := image.NewNRGBA(image.Rect(0, 0, len(px), 1))
		for i, c := range px {
			m.SetNRGBA(i, 0, c)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b.Bytes(), []byte("IDAT"))
		return b.Bytes()[at+4 : b.Len()-16]
	}
	file := append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", []byte{0, 0, 0, 4, 0, 0, 0, 1, 8, 6, 0, 0, 0})...)
	file = append(file, pngChunk("acTL", []byte{0, 0, 0, byte(len(frames)), 0, 0, 0, 0})...)
	if hidden {
		file = append(file, pngChunk("IDAT", idat(make([]color.NRGBA, 4)))...)
	}
	for i, f := range frames {
		control := []byte{
			0, 0, 0, 0, 0, 0, 0, byte(len(f.pixels)), 0, 0, 0, 1, 0, 0, 0, f.x, 0, 0, 0, 0,
			0, 1, 0, 4, f.dispose, f.blend, // a quarter of a second
		}
		file = append(file, pngChunk("fcTL", control)...)
		if i == 0 && !hidden {
			file = append(file, pngChunk("IDAT", idat(f.pixels))...)
		} else {
			file = append(file, pngChunk("fdAT", append(make([]byte, 4), idat(f.pixels)...))...)
		}
	}
	return append(file, pngChunk("IEND", nil)...)
}

func TestAPNG(t *testing.T) {
	opaque := func(r uint8) color.NRGBA { return color.NRGBA{r, 0, 0, 255} }
	half := func(r uint8) color.NRGBA { return color.NRGBA{r, 0, 0, 128} }
	base := testAPNGFrame{pixels: []color.NRGBA{opaque(100), opaque(100), opaque(100), half(50)}}
	// Each frame has a pixel that is not opaque: Go's encoder would drop the
	// alpha channel that the header announces otherwise.
	over := []color.NRGBA{opaque(200), half(200), {}, half(200)}
	for _, c := range []struct {
		name   string
		frames []testAPNGFrame
		hidden bool
		want   [][]uint8
	}{
		{
			"source",
			[]testAPNGFrame{base, {pixels: over}},
			false,
			[][]uint8{{100, 100, 100, 50}, {200, 200, 0, 200}},
		},
		// 200*128/255 + 100*127/255 = 150.2; over half-transparent 50:
		// (200*128*255 + 50*128*127) / (128*255 + 128*127) = 150.1.
		{
			"over",
			[]testAPNGFrame{base, {pixels: over, blend: 1}},
			false,
			[][]uint8{{100, 100, 100, 50}, {200, 150, 100, 150}},
		},
		{
			"clear",
			[]testAPNGFrame{base, {x: 1, pixels: []color.NRGBA{half(7), half(8)}, dispose: 1}, {x: 3, pixels: []color.NRGBA{half(9)}}},
			false,
			[][]uint8{{100, 100, 100, 50}, {100, 7, 8, 50}, {100, 0, 0, 9}},
		},
		{
			"restore",
			[]testAPNGFrame{base, {x: 1, pixels: []color.NRGBA{half(7), half(8)}, dispose: 2}, {x: 3, pixels: []color.NRGBA{half(9)}}},
			false,
			[][]uint8{{100, 100, 100, 50}, {100, 7, 8, 50}, {100, 100, 100, 9}},
		},
		{
			"still first",
			[]testAPNGFrame{base, {x: 3, pixels: []color.NRGBA{half(9)}}},
			true,
			[][]uint8{{100, 100, 100, 50}, {100, 100, 100, 9}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "a.png"), buildAPNG(t, c.frames, c.hidden))
			clip, err := DecodeVideo(context.Background(), path, VideoOptions{Sample: all})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, reds(clip)); diff != "" {
				t.Errorf("pixels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]float64{0, 0.25, 0.5}[:len(c.want)], clip.Times, times); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
			if clip.FPS != 4 {
				t.Errorf("%g frames a second, want 4", clip.FPS)
			}
		})
	}
}

func TestAnimatedWebP(t *testing.T) {
	p := openPillow(t)
	for _, name := range []string{"anim-lossless", "anim-lossy"} {
		t.Run(name, func(t *testing.T) {
			clip, err := DecodeVideo(context.Background(), "testdata/images/"+name+".webp", VideoOptions{Sample: all})
			if err != nil {
				t.Fatal(err)
			}
			x, ok := p.Tensor(name + "/frames") // [4, 8, 12, 3]
			if !ok || len(clip.Frames) != 4 {
				t.Fatalf("%d frames, want 4", len(clip.Frames))
			}
			for i, im := range clip.Frames {
				const size = 8 * 12 * 3
				want := &Image{W: 12, H: 8, Pix: p.Bytes(x)[i*size : (i+1)*size]}
				pixelsClose(t, fmt.Sprintf("frame %d", i), im, want, 0)
			}
			if diff := cmp.Diff([]float64{0, 0.1, 0.3, 0.6}, clip.Times, times); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

// Every animation that is cut short is an error, wherever the cut is.
func TestAnimationTruncated(t *testing.T) {
	dir := t.TempDir()
	base := testAPNGFrame{pixels: []color.NRGBA{{1, 2, 3, 4}, {}, {}, {}}}
	for name, data := range map[string][]byte{
		"a.png":  buildAPNG(t, []testAPNGFrame{base, base, base}, false),
		"a.gif":  readFile(t, "testdata/images/plain.gif"),
		"a.webp": readFile(t, "testdata/images/anim-lossy.webp"),
	} {
		for n := 20; n < len(data); n += 7 {
			path := writeFile(t, filepath.Join(dir, name), data[:n])
			_, err := DecodeVideo(context.Background(), path, VideoOptions{Sample: all})
			var format *FormatError
			if !errors.As(err, &format) || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("%s: the first %d of %d bytes: error %v", name, n, len(data), err)
			}
		}
	}
}

func TestAnimationDamaged(t *testing.T) {
	dir := t.TempDir()
	base := testAPNGFrame{pixels: []color.NRGBA{{1, 2, 3, 4}, {}, {}, {}}}
	outside := base
	outside.x = 1
	noFrame := bytes.Clone(readFile(t, "testdata/images/plain.gif"))[:13+3*256]
	for name, data := range map[string][]byte{
		"outside.png": buildAPNG(t, []testAPNGFrame{base, outside}, false),
		"empty.gif":   append(noFrame, 0x3b),
	} {
		path := writeFile(t, filepath.Join(dir, name), data)
		_, err := DecodeVideo(context.Background(), path, VideoOptions{Sample: all})
		var format *FormatError
		if !errors.As(err, &format) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
