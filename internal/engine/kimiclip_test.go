package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// animation writes an animated GIF of n grey frames, tenths/10 seconds each.
func animation(t testing.TB, n, tenths int) string {
	t.Helper()
	var g gif.GIF
	for i := range n {
		im := image.NewPaletted(image.Rect(0, 0, 56, 28), palette.WebSafe)
		for p := range im.Pix {
			im.Pix[p] = uint8(im.Palette.Index(color.Gray{uint8(20 * i)}))
		}
		g.Image, g.Delay = append(g.Image, im), append(g.Delay, 10*tenths)
	}
	path := filepath.Join(t.TempDir(), "a.gif")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gif.EncodeAll(f, &g); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKimiClipBlocks: what a clip becomes in the prompt. 80 x 80 pixels are
// filled up to 6 x 6 patches, which are 9 rows; the GIF's 56 x 28 are 2.
func TestKimiClipBlocks(t *testing.T) {
	e := openKimiRandom(t)
	type blocks = []chat.Block
	at := func(rows int, labels ...string) (bs blocks) {
		for _, l := range labels {
			bs = append(bs, chat.Block{Label: l, Rows: rows})
		}
		return bs
	}
	one, gifOne := at(9, ""), at(2, "")
	for _, c := range []struct {
		name   string
		part   chat.Part
		video  VideoSampling
		chunks blocks
		clip   blocks
	}{
		{"one frame", videoPart(frames(t, 1)), VideoSampling{}, at(9, "00:00:00.000"), one},
		{"four frames", videoPart(frames(t, 4)), VideoSampling{}, at(9, "00:00:00.000"), one},
		{"five frames", videoPart(frames(t, 5)), VideoSampling{}, at(9, "00:00:00.000", "00:00:02.000"), one},
		{"nine frames", videoPart(frames(t, 9)), VideoSampling{}, at(9, "00:00:00.000", "00:00:02.000", "00:00:04.000"), one},
		{"rate of the request", videoPart(frames(t, 9)), VideoSampling{FPS: 8}, at(9, "00:00:00.000", "00:00:00.500", "00:00:01.000"), one},
		{"rate of the part", chat.Part{Kind: chat.Video, Source: frames(t, 5), FPS: 1}, VideoSampling{FPS: 8}, at(9, "00:00:00.000", "00:00:04.000"), one},
		// round(7·i/4), i = 0 … 4: the fifth is the last one, 7.
		{"frames of the request", videoPart(frames(t, 8)), VideoSampling{Frames: 5}, at(9, "00:00:00.000", "00:00:03.500"), one},
		{"frames of the part", chat.Part{Kind: chat.Video, Source: frames(t, 8), Frames: 1}, VideoSampling{Frames: 5}, at(9, "00:00:00.000"), one},
		// 3 seconds at 10 a second; 2 a second are 6 frames: 0, 6, 12, 17, 23, 29.
		{"animation", videoPart(animation(t, 30, 1)), VideoSampling{}, at(2, "00:00:00.000", "00:00:02.300"), gifOne},
		// 5 a second are 15 frames, round(29·i/14): 0, 8, 17, 25 begin a chunk.
		{"animation at a rate", videoPart(animation(t, 30, 1)), VideoSampling{FPS: 5}, at(2, "00:00:00.000", "00:00:00.800", "00:00:01.700", "00:00:02.500"), gifOne},
		// No more than there are: one a second.
		{"slow animation", videoPart(animation(t, 5, 10)), VideoSampling{}, at(2, "00:00:00.000", "00:00:04.000"), gifOne},
	} {
		t.Run(c.name, func(t *testing.T) {
			for layout, want := range map[media.ClipLayout]blocks{"": c.chunks, "chunks": c.chunks, "clip": c.clip} {
				r := local(chat.Part{Text: "before"}, c.part, chat.Part{Text: "after"})
				r.Video = c.video
				r.Video.Layout = layout
				conv, all := gather(t, e, r)
				parts := []chat.Part{{Text: "before"}, {Kind: chat.Video, Source: "0", Blocks: want}, {Text: "after"}}
				if d := cmp.Diff(parts, conv.Messages[0].Content); d != "" {
					t.Errorf("layout %q: parts (-want +got):\n%s", layout, d)
				}
				if len(all) != len(want) {
					t.Errorf("layout %q: %d media, want %d", layout, len(all), len(want))
				}
			}
		})
	}
}

// TestKimiClipSampling: which frames the layouts take, told by their rows.
func TestKimiClipSampling(t *testing.T) {
	e := openKimiRandom(t)
	tower := e.proj.(models.ClipProjector)
	for _, c := range []struct {
		name   string
		frames int // of a folder
		video  VideoSampling
		want   []int
	}{
		{"an odd folder as it is", 3, VideoSampling{Layout: media.LayoutClip}, []int{0, 1, 2}},
		{"a number, made even", 8, VideoSampling{Layout: media.LayoutClip, Frames: 5}, []int{0, 2, 5, 7}},
		{"a number in a chunk", 8, VideoSampling{Layout: media.LayoutChunks, Frames: 3}, []int{0, 4, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := local(videoPart(frames(t, c.frames)))
			r.Video = c.video
			_, all := gather(t, e, r)
			got, err := all[0].vectors(nil)
			if err != nil {
				t.Fatal(err)
			}
			var fitted []*media.Image
			for _, i := range c.want {
				im, err := tower.FitFrame(greyFrame(t, fmt.Sprint(i)), c.video.Layout, len(c.want))
				if err != nil {
					t.Fatal(err)
				}
				fitted = append(fitted, im)
			}
			want, err := tower.EncodeClip(nil, fitted, c.video.Layout)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("other rows than those of frames %v", c.want)
			}
		})
	}
}

// TestKimiSingleFrame: a chunk of one frame is a picture; a clip of one frame
// knows its time, and so does each frame of a longer one.
func TestKimiSingleFrame(t *testing.T) {
	e := openKimiRandom(t)
	dir := frames(t, 1)
	vectors := func(p chat.Part, layout media.ClipLayout) []float32 {
		r := local(p)
		r.Video.Layout = layout
		_, all := gather(t, e, r)
		v, err := all[0].vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	picture := vectors(chat.Part{Kind: chat.Image, Source: filepath.Join(dir, "f0.bmp")}, "")
	if !slices.Equal(vectors(videoPart(dir), media.LayoutChunks), picture) {
		t.Error("a chunk of one frame has other rows than the picture")
	}
	if slices.Equal(vectors(videoPart(dir), media.LayoutClip), picture) {
		t.Error("a clip of one frame has the rows of the picture")
	}
}

// TestKimiFrameBudget: 1000 x 1000 pixels are 71 x 71 whole patches. A clip has
// the budget of pictures and 36 x 36 blocks; in chunks 4096 patches remain, 901
// pixels and 33 x 33 blocks.
func TestKimiFrameBudget(t *testing.T) {
	e := openKimiRandom(t)
	dir := t.TempDir()
	for i := range 2 {
		writePNG(t, filepath.Join(dir, fmt.Sprintf("%d.png", i)), image.NewGray(image.Rect(0, 0, 1000, 1000)))
	}
	for layout, want := range map[media.ClipLayout]int{media.LayoutClip: 36 * 36, media.LayoutChunks: 33 * 33} {
		r := local(videoPart(dir))
		r.Video.Layout = layout
		if _, all := gather(t, e, r); all[0].rows != want {
			t.Errorf("%s: %d rows, want %d", layout, all[0].rows, want)
		}
	}
}

// TestKimiClipsAreToldApart: prompts of equal ids with the frames of a clip in
// another order, or at another time of the item, do not share a state.
func TestKimiClipsAreToldApart(t *testing.T) {
	e := openKimiRandom(t)
	forwards, backwards := frames(t, 4), t.TempDir()
	for i := range 4 {
		data, err := os.ReadFile(filepath.Join(forwards, fmt.Sprintf("f%d.bmp", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(backwards, fmt.Sprintf("f%d.bmp", 3-i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(dir string) *Result {
		r := local(videoPart(dir), chat.Part{Text: "What happens?"})
		r.MaxTokens = 2
		return generate(t, e, r)
	}
	first, again, other := ask(forwards), ask(forwards), ask(backwards)
	if !slices.Equal(first.PromptIDs, other.PromptIDs) {
		t.Fatalf("prompts %v and %v", first.PromptIDs, other.PromptIDs)
	}
	slot := slices.IndexFunc(first.PromptIDs, func(id int32) bool { return e.slots[id] })
	if again.Cached < len(first.PromptIDs)-1 || other.Cached > slot {
		t.Errorf("%d rows kept for the same clip, %d for the reversed one, of %d with the clip at %d", again.Cached, other.Cached, len(first.PromptIDs), slot)
	}
}

func TestKimiRefused(t *testing.T) {
	e := openKimiRandom(t)
	mixed := frames(t, 2)
	writePNG(t, filepath.Join(mixed, "f2.png"), image.NewGray(image.Rect(0, 0, 79, 80)))
	cut := "data:image/gif;base64," + base64.StdEncoding.EncodeToString([]byte("GIF89a\x01\x00\x01"))
	for _, c := range []struct {
		name string
		part chat.Part
		set  func(*Request)
		want string // "": accepted
	}{
		{"clip", videoPart(frames(t, 2)), nil, ""},
		{"frames of two sizes", videoPart(mixed), nil, "frame 2 has 79 x 80 pixels, the first 80 x 80"},
		{"no frames", videoPart(t.TempDir()), nil, "no pictures in this directory"},
		{"file cut short", videoPart(cut), nil, "data URL"},
		{"sound", chat.Part{Kind: chat.Audio, Source: "x.wav"}, nil, "has no tower for audio"},
		{"layout", videoPart(frames(t, 1)), func(r *Request) { r.Video.Layout = "film" }, `video layout "film", want clip or chunks`},
		{"rate", videoPart(frames(t, 1)), func(r *Request) { r.Video.FPS = -1 }, "-1 frames a second"},
		{"number", videoPart(frames(t, 1)), func(r *Request) { r.Video.Frames = -1 }, "-1 frames, want at least 1"},
		{"too many frames", chat.Part{Kind: chat.Video, Source: animation(t, 5000, 1), Frames: 5000}, nil, "5000 sampled frames, at most 4096"},
		{"placeholder in raw text", chat.Part{}, func(r *Request) { r.Raw, r.Prompt = true, "a<|media_pad|>b" }, "the prompt has 1 placeholders of media, but there are 0 rows"},
		{"placeholder in a message", chat.Part{Text: "a<|media_pad|>b"}, nil, ""}, // is text there
	} {
		t.Run(c.name, func(t *testing.T) {
			r := local(c.part)
			if c.set != nil {
				c.set(r)
			}
			_, err := e.CountTokens(context.Background(), r)
			if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestMaxClipPatches: the limit is on what the tower sees at once, and is found
// before anything is computed. It is none of pictures.
func TestMaxClipPatches(t *testing.T) {
	const limit = 36 * 5 // of 80 x 80 pixels
	e, err := Open(context.Background(), Options{
		Model: convertOnce(t, "f32", kimiRandom, "original"), KV: binding.F32, Threads: 1, Context: 512, MaxClipPatches: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	large := filepath.Join(t.TempDir(), "large.png")
	writePNG(t, large, image.NewGray(image.Rect(0, 0, 200, 200)))
	for _, c := range []struct {
		name   string
		part   chat.Part
		layout media.ClipLayout
		want   string
	}{
		{"as many", videoPart(frames(t, 5)), media.LayoutClip, ""},
		{"one more", videoPart(frames(t, 6)), media.LayoutClip, "6 frames of 6 x 6 patches are 216 patches at once, at most 180 are allowed; take fewer or smaller frames, or raise the limit (--max-clip-patches)"},
		{"chunks", videoPart(frames(t, 6)), media.LayoutChunks, ""},
		{"picture", chat.Part{Kind: chat.Image, Source: large}, "", ""},
	} {
		r := local(c.part)
		r.Video.Layout = c.layout
		r.MaxTokens = 1
		_, err := e.Generate(context.Background(), r)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := Open(context.Background(), Options{Model: "x", MaxClipPatches: -1}); err == nil || !strings.Contains(err.Error(), "max-clip-patches: -1") {
		t.Errorf("negative limit: error %v", err)
	}
}

// TestKimiFilesThatDoNotFit: a tokenizer and a key that disagree, and a projector
// of another model.
func TestKimiFilesThatDoNotFit(t *testing.T) {
	text := convertOnce(t, "f32", kimiRandom, "original")
	tower := filepath.Join(filepath.Dir(text), "mmproj-"+filepath.Base(text))
	kimi, inkling := tinymodel.Kimi.Files(t, "f32"), tinymodel.Inkling.Files(t, "f32")
	for _, c := range []struct {
		name, model, mmproj, want string
	}{
		{"none", text, tower, ""},
		{"media id", testutil.Rewrite(t, text, map[string]any{"kimi.media_token_id": uint32(1035)}, nil), tower, "kimi.media_token_id is 1035, but the tokenizer's placeholder for image is 1034"},
		{"media id of another type", testutil.Rewrite(t, text, map[string]any{"kimi.media_token_id": "x"}, nil), tower, "kimi.media_token_id"},
		{"wider tower", text, kimi.MMProj, "its rows have 256 values"},
		{"tower of another family of the same width", kimi.Model, inkling.MMProj, `is a projector for models of architecture "inkling"`},
		{"the other way round", inkling.Model, kimi.MMProj, `is a projector for models of architecture "deepseek2"`},
		{"tower of another kind", text, inkling.MMProj, "the two files are of different models"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Open(context.Background(), Options{Model: c.model, MMProj: c.mmproj, Threads: 1})
			if err == nil {
				e.Close()
			}
			if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
