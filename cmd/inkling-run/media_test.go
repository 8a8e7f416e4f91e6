package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
)

func TestMediaPart(t *testing.T) {
	for _, c := range []struct {
		kind   chat.Kind
		source string
		want   chat.Part
		err    string
	}{
		{chat.Image, "a.png", chat.Part{Kind: chat.Image, Source: "a.png"}, ""},
		{chat.Image, "a.png:fps=2", chat.Part{Kind: chat.Image, Source: "a.png:fps=2"}, ""},
		{chat.Video, "a.mp4", chat.Part{Kind: chat.Video, Source: "a.mp4"}, ""},
		{chat.Video, "a.mp4:fps=0.5", chat.Part{Kind: chat.Video, Source: "a.mp4", FPS: 0.5}, ""},
		{chat.Video, "a:fps=1:fps=30", chat.Part{Kind: chat.Video, Source: "a:fps=1", FPS: 30}, ""},
		{chat.Video, "a.mp4:frames=8", chat.Part{Kind: chat.Video, Source: "a.mp4", Frames: 8}, ""},
		{chat.Video, "a.mp4:frames=8:fps=3", chat.Part{Kind: chat.Video, Source: "a.mp4", FPS: 3, Frames: 8}, ""},
		{chat.Video, "c:/a.mp4:fps=3:frames=8", chat.Part{Kind: chat.Video, Source: "c:/a.mp4", FPS: 3, Frames: 8}, ""},
		{chat.Video, "http://h/a:frames=x", chat.Part{}, `http://h/a: frames "x"`},
		{chat.Video, "a.mp4:frames=0", chat.Part{}, `a.mp4: frames "0"`},
		{chat.Video, "a.mp4:fps=", chat.Part{}, `a.mp4: fps ""`},
		{chat.Video, "a.mp4:fps=NaN", chat.Part{}, `fps "NaN"`},
		{chat.Video, "a.mp4:fps=Inf", chat.Part{}, `fps "Inf"`},
		{chat.Video, ":fps=3", chat.Part{}, "video: no file"},
		{chat.Audio, "", chat.Part{}, "audio: no file"},
	} {
		got, err := mediaPart(c.kind, c.source)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want one with %q", c.source, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%q: %v (-want +got):\n%s", c.source, err, d)
		}
	}
}

func TestFileKind(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("clip/f1.jpg", "")
	write("notes/a.txt", "")
	for _, c := range []struct {
		path   string
		kind   chat.Kind // chat.Text: none
		pasted bool      // alone on a line it is taken for the medium
	}{
		{write("a.PNG", ""), chat.Image, true},
		{write("a.wav", ""), chat.Audio, true},
		{write("a.tar.mkv", ""), chat.Video, true},
		{write("png", "\x89PNG\r\n\x1a\n"), chat.Image, false},
		{write("sound", "RIFF\x00\x00\x00\x00WAVE"), chat.Audio, false},
		{write("ogg", "OggS\x00"), chat.Audio, false},
		{write("video", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), chat.Video, false},
		{write("text", "hello"), chat.Text, false},
		{write("empty", ""), chat.Text, false},
		{filepath.Join(dir, "clip"), chat.Video, true},
		{filepath.Join(dir, "notes"), chat.Video, false},
		{filepath.Join(dir, "f%03d.png"), chat.Video, false},
		{filepath.Join(dir, "nowhere.png"), chat.Text, false},
	} {
		got, err := fileKind(c.path)
		if got != c.kind || (err != nil) != (c.kind == chat.Text) {
			t.Errorf("%s: %v, %v, want %v", c.path, got, err, c.kind)
		}
		if kind, ok := pathKind(c.path); ok != c.pasted || ok && kind != c.kind {
			t.Errorf("%s pasted: %v %v, want %v %v", c.path, kind, ok, c.kind, c.pasted)
		}
	}
	t.Chdir(dir)
	if _, ok := pathKind("clip"); ok {
		t.Error("a word that is the name of a folder was taken for a video")
	}
	if _, ok := pathKind(""); ok {
		t.Error("an empty line was taken for a medium")
	}
}

// TestWriteNPY compares with the bytes of the format: magic, version, length of
// the header, header padded with spaces to a multiple of 64 bytes, values.
func TestWriteNPY(t *testing.T) {
	const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"
	want := "\x93NUMPY\x01\x00\x76\x00" + header + strings.Repeat(" ", 128-10-len(header)-1) + "\n" +
		"\x00\x00\x80\x3f" + "\x00\x00\x00\xc0" + "\x00\x00\x80\x7f"
	var got bytes.Buffer
	if err := writeNPY(&got, "<f4", []int{3, 1}, []float32{1, -2}, []float32{float32(math.Inf(1))}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]byte(want), got.Bytes()); d != "" {
		t.Errorf("floats (-want +got):\n%s", d)
	}
	got.Reset()
	if err := writeNPY(&got, "<i4", []int{2}, []int32{-1, 258}); err != nil {
		t.Fatal(err)
	}
	if s := got.String(); !strings.Contains(s, "'shape': (2,), }") || !strings.HasSuffix(s, "\xff\xff\xff\xff\x02\x01\x00\x00") {
		t.Errorf("integers: %q", s)
	}
}

// TestDrawTiles: a drawing gives the pixels back, in their places.
func TestDrawTiles(t *testing.T) {
	cfg := media.TileConfig{Patch: 2, Temporal: 2, Mean: [3]float32{0.5, 0.4, 0.3}, Std: [3]float32{0.25, 0.5, 0.2}}
	a := &media.Image{W: 3, H: 2, Pix: make([]uint8, 18)}
	b := &media.Image{W: 3, H: 2, Pix: make([]uint8, 18)}
	for i := range a.Pix {
		a.Pix[i], b.Pix[i] = uint8(i*14), uint8(255-i*14)
	}
	ts, err := media.TilesPair(a, b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	im := drawTiles([]*media.TileSet{ts, ts}, 2, cfg) // a grid of 1 x 2 tiles, twice across and twice down
	const w, h = 2*(2+tileGap) + tileGap, 2 + 2*tileGap
	if got := im.Bounds().Size(); got.X != 2*w || got.Y != 2*h {
		t.Fatalf("size %v, want %d x %d", got, 2*w, 2*h)
	}
	seen := 0
	for i, frame := range []*media.Image{a, b} {
		for set := range 2 {
			for y := range 2 {
				for x := range 3 {
					px, py := i*w+tileGap+x/2*(2+tileGap)+x%2, set*h+tileGap+y
					r, g, bl, _ := im.At(px, py).RGBA()
					got := []uint8{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8)}
					if want := frame.Pix[3*(y*3+x):][:3]; !slices.Equal(got, want) {
						t.Errorf("frame %d, set %d, pixel %d,%d: %v, want %v", i, set, x, y, got, want)
					}
					seen++
				}
			}
		}
	}
	drawn := 0
	for y := range 2 * h {
		for x := range 2 * w {
			if im.At(x, y) != background {
				drawn++
			}
		}
	}
	if drawn != seen {
		t.Errorf("%d pixels drawn, want %d", drawn, seen)
	}
}

func TestDrawLevels(t *testing.T) {
	levels := make([]int32, 2*media.MelBins)
	levels[0] = 15                // first frame, lowest band: left, bottom
	levels[2*media.MelBins-1] = 3 // second frame, highest band: right, top
	im := drawLevels(levels, 2)
	for y := range media.MelBins * cell {
		for x := range 2 * cell {
			want := uint32(0)
			switch {
			case x < cell && y >= (media.MelBins-1)*cell:
				want = 255
			case x >= cell && y < cell:
				want = 51
			}
			if g, _, _, _ := im.At(x, y).RGBA(); g>>8 != want {
				t.Fatalf("pixel %d,%d is %d, want %d", x, y, g>>8, want)
			}
		}
	}
}

// runs is the program in this process.
func runs(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(append([]string{"inkling-run"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestInputAudio gives a sound as OpenAI's clients do.
func TestInputAudio(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media", "047.wav"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal([]any{map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "input_audio", "input_audio": map[string]string{"data": base64.StdEncoding.EncodeToString(data), "format": "wav"}},
		map[string]any{"type": "text", "text": "Transcribe the speech."},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runs("run", filepath.Join(models, "tiny-F32.gguf"), "--messages", path, "-t", "1", "--hide-thinking")
	if code != exitOK || out != "the number is sixty four\n" {
		t.Errorf("exit status %d, %q, %s", code, out, errs)
	}
}

// TestDamagedMedia cuts and garbles a file of each kind: one line that names the
// file and says what is wrong, and exit status 1.
func TestDamagedMedia(t *testing.T) {
	from := filepath.Join("..", "..", "internal", "media", "testdata")
	wav := filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media", "047.wav")
	for option, files := range map[string][]string{
		"--image": {"images/palette.png", "images/progressive.jpg", "images/noise.jpg", "images/lossy.webp", "images/lossless.webp", "images/plain.gif", "images/palette.bmp", "images/palette-tiff_lzw.tif"},
		"--audio": {wav, "audio/stereo16.flac", "audio/stereo.ogg", "audio/cbr.mp3"},
		"--video": {"images/anim-lossy.webp", "images/plain.gif"},
	} {
		for _, file := range files {
			if file != wav {
				file = filepath.Join(from, file)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			garbled := slices.Clone(data)
			for i := 12; i < len(garbled); i++ {
				garbled[i] = byte(i * 37)
			}
			for how, bad := range map[string][]byte{"half": data[:len(data)/2], "head": data[:10], "garbled": garbled, "empty": nil} {
				name := how + filepath.Ext(file)
				t.Run(strings.Join([]string{option, filepath.Base(file), how}, " "), func(t *testing.T) {
					t.Chdir(t.TempDir())
					if err := os.WriteFile(name, bad, 0o600); err != nil {
						t.Fatal(err)
					}
					code, out, errs := runs("media", "--as", strings.TrimPrefix(option, "--"), name)
					checkRefusal(t, code, out, errs, "inkling-run: "+name+": ")
				})
			}
		}
	}
}

func checkRefusal(t *testing.T, code int, out, errs, prefix string) {
	t.Helper()
	if code != exitError || out != "" {
		t.Errorf("exit status %d, standard output %q", code, out)
	}
	reason, ok := strings.CutPrefix(errs, prefix)
	if !ok || len(reason) < 5 || strings.Count(errs, "\n") != 1 {
		t.Errorf("standard error %q, want one line with %q and a reason", errs, prefix)
	}
}

// TestWithFFmpeg reads a video file and a sound that need ffmpeg, where it is
// installed.
func TestWithFFmpeg(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed")
	}
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3", "-c:v", "mpeg4", "v.mp4"},
		{"-f", "lavfi", "-i", "sine=440:duration=1", "-c:a", "aac", "a.m4a"},
	} {
		if out, err := exec.Command(ffmpeg, append([]string{"-v", "error"}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("this ffmpeg can not make the files: %s", out)
		}
	}
	code, out, errs := runs("media", "v.mp4", "a.m4a")
	want := "v.mp4\n" +
		"  length  3 s, 30 frames, 10 a second\n" +
		"  size    64 x 48 pixels\n" +
		"  tiles   2 rows, 2 columns, of 40 x 40 pixels\n" +
		"  pair    frames 0 and 5 at t=0.0s\n" +
		"  pair    frames 10 and 15 at t=1.0s\n" +
		"  pair    frames 20 and 25 at t=2.0s\n" +
		"  tokens  12 in 3 pictures of 4, besides those of the times between them\n" +
		"a.m4a\n"
	if code != exitOK || !strings.HasPrefix(out, want) {
		t.Errorf("exit status %d, %s%s", code, out, errs)
	}
	for _, name := range []string{"v.mp4", "a.m4a"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cut := fmt.Sprintf("cut%s", filepath.Ext(name))
		if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := runs("media", cut)
		checkRefusal(t, code, out, errs, "inkling-run: "+cut+": ")
		if strings.Contains(errs, os.TempDir()) {
			t.Errorf("a temporary file in %q", errs)
		}
	}
}
