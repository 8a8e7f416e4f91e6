package media

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"runtime"
	"strings"
	"testing"
)

// allocated returns the bytes of memory that f takes, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAnimationWork plays an animation whose frames are blank and large, which takes few bytes and much time: it ends at the limit.
func TestAnimationWork(t *testing.T) {
	const side, frames = 100, 30
	palette := color.Palette{color.Black, color.White}
	g := &gif.GIF{Config: image.Config{Width: side, Height: side, ColorModel: palette}}
	for range frames {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, side, side), palette))
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	a, err := parseGIF(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		max    int64
		frames int
		over   bool
	}{{frames * side * side, frames, false}, {10*side*side - 1, 10, true}} {
		played := 0
		err := a.play(context.Background(), "x", "gif", tc.max, all(a.timeline()), func(*Image) error { played++; return nil })
		var limit *LimitError
		if played != tc.frames || errors.As(err, &limit) != tc.over || err != nil && !tc.over {
			t.Errorf("limit of %d pixels: %d frames, %v; want %d", tc.max, played, err, tc.frames)
		}
	}
}

// TestWebPFrameBomb has a frame of 16383 x 16383 pixels on a canvas of 8 x 8.
func TestWebPFrameBomb(t *testing.T) {
	le := binary.LittleEndian
	chunk := func(id string, body []byte) []byte {
		b := append(le.AppendUint32([]byte(id), uint32(len(body))), body...)
		if len(body)%2 == 1 {
			b = append(b, 0)
		}
		return b
	}
	size := []byte{0xfe, 0x3f, 0, 0xfe, 0x3f, 0}
	frame := append(append(make([]byte, 6), size...), 100, 0, 0, 0)
	frame = append(frame, chunk("VP8L", []byte{0x2f, 0xfe, 0xbf, 0xff, 0x0f, 0, 0, 0})...)
	body := append(chunk("VP8X", []byte{2, 0, 0, 0, 7, 0, 0, 7, 0, 0}), chunk("ANIM", make([]byte, 6))...)
	body = append(append(body, chunk("ANMF", frame)...), chunk("ANMF", frame)...)
	file := append(le.AppendUint32([]byte("RIFF"), uint32(4+len(body))), append([]byte("WEBP"), body...)...)

	var err error
	taken := allocated(func() {
		var src videoSource
		if src, err = openAnimation("x", "webp", file, VideoOptions{}); err != nil {
			return
		}
		err = src.frames(context.Background(), []int{0}, func(*Image) error { return nil })
	})
	if err == nil || !strings.Contains(err.Error(), "16383 x 16383 pixels at 0, 0 on a canvas of 8 x 8") {
		t.Errorf("error %v", err)
	}
	if taken > 1<<20 {
		t.Errorf("took %d bytes", taken)
	}
}

// TestPNGTextBomb has 60 MB of compressed text and a profile in a small picture: neither is unpacked.
func TestPNGTextBomb(t *testing.T) {
	data := readFile(t, "testdata/images/rgba.png")
	const afterIHDR = 8 + 25
	var zeros bytes.Buffer
	zeros.WriteString("k\x00\x00")
	zeros.Write(deflated(t, 60<<20))
	var b bytes.Buffer
	b.Write(data[:afterIHDR])
	b.Write(pngChunk("iCCP", zeros.Bytes()))
	b.Write(pngChunk("zTXt", zeros.Bytes()))
	b.Write(data[afterIHDR:])
	var im *Image
	var err error
	if taken := allocated(func() { im, err = DecodeImage("x", b.Bytes(), Limits{}) }); taken > 2<<20 {
		t.Errorf("took %d bytes", taken)
	}
	if err != nil || im.W != 23 || im.H != 17 {
		t.Errorf("%v, %v", im, err)
	}
}

// TestSoundBombs has sounds whose headers promise hours, in a few bytes.
func TestSoundBombs(t *testing.T) {
	for name, data := range map[string][]byte{
		"wav":  (wavSpec{tag: wavPCM, bits: 8, channels: 1, rate: 1000, samples: make([]byte, 8)}).file(),
		"flac": bytes.Clone(readFile(t, "testdata/audio/stereo16.flac")),
		"ogg":  bytes.Clone(readFile(t, "testdata/audio/stereo.ogg"))[:300],
		"mp3":  bytes.Clone(readFile(t, "testdata/audio/cbr.mp3"))[:600],
	} {
		t.Run(name, func(t *testing.T) {
			switch name {
			case "wav":
				i := bytes.Index(data, []byte("data"))
				binary.LittleEndian.PutUint32(data[i+4:], 0xfffffff0)
			case "flac": // the count of samples, 36 bits, in the stream's information
				for i := 22; i < 26; i++ {
					data[i] = 0xff
				}
			}
			taken := allocated(func() { _, _ = DecodeAudio(context.Background(), "x", data, AudioLimits{}) })
			if taken > 16<<20 {
				t.Errorf("took %d bytes for %d", taken, len(data))
			}
		})
	}
}

// deflated returns n zeros in zlib's form.
func deflated(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	for range n >> 20 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
