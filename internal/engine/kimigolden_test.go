package engine

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
)

// kimiRandom is the folder of testdata with the random checkpoint and its goldens.
const kimiRandom = "kimi-k25-tiny-random"

func openKimiRandom(t testing.TB) *Engine {
	t.Helper()
	return openModel(t, convertOnce(t, "f32", kimiRandom, "original"), binding.F32)
}

// goldenClip writes the first n frames of the reference's clip to a folder.
func goldenClip(t testing.TB, n int) string {
	t.Helper()
	g := testutil.OpenGolden(t, kimiRandom, "videos")
	shape, pix := g.Shape("frames"), g.Ints("frames") // [frames, h, w, 3]
	h, w := int(shape[1]), int(shape[2])
	dir := t.TempDir()
	for f := range n {
		im := image.NewRGBA(image.Rect(0, 0, w, h))
		for i := range w * h {
			at := (f*w*h + i) * 3
			im.Set(i%w, i/w, color.RGBA{uint8(pix[at]), uint8(pix[at+1]), uint8(pix[at+2]), 255})
		}
		writePNG(t, filepath.Join(dir, fmt.Sprintf("%d.png", f)), im)
	}
	return dir
}

func writePNG(t testing.TB, path string, im image.Image) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func videoPart(source string) chat.Part { return chat.Part{Kind: chat.Video, Source: source} }

// goldenImage is a picture of the random checkpoint's media.
func goldenImage(t testing.TB, name string) chat.Part {
	t.Helper()
	return chat.Part{Kind: chat.Image, Source: testutil.Testdata(t, kimiRandom, "media", name)}
}

// TestKimiPromptsGolden asks the random checkpoint the reference's questions about
// pictures, clips and both, as messages: prompt, rows and answer are the
// reference's. Where the library writes another placeholder for clips, that one
// is meant.
func TestKimiPromptsGolden(t *testing.T) {
	const mediaPad, clipPad = 1034, 1039
	image0, image1 := goldenImage(t, "image0_84x112.png"), goldenImage(t, "image1_150x75.png")
	clip := func(n int) chat.Part { return videoPart(goldenClip(t, n)) }
	text := func(s string) chat.Part { return chat.Part{Text: s} }
	prompts := []struct {
		name   string
		layout media.ClipLayout
		parts  []chat.Part
	}{
		{"image0", "", []chat.Part{image0, text("Что это?")}},
		{"image1", "", []chat.Part{image1, text("Explain step by step.")}},
		{"two_images", "", []chat.Part{text("Compare "), image0, text(" with "), image1, text("List three facts.")}},
		{"video_t2", "", []chat.Part{clip(2), text("Qué hay?")}},
		{"video_t3", "chunks", []chat.Part{clip(3), text("What do you see?")}},
		{"video_t4", "", []chat.Part{clip(4), text("Why?")}},
		{"video_t5", "", []chat.Part{clip(5), text("Describe it.")}},
		{"video_t6", "chunks", []chat.Part{clip(6), text("Which is the largest?")}},
		{"mixed", "", []chat.Part{image1, text(" and "), clip(3), text(" and "), image0, text("List three facts.")}},
		{"media_order_image1_and_t3", "clip", []chat.Part{image1, text(" and "), clip(3), text("Qué hay?")}},
		{"media_order_image1_and_t6_one_clip", "clip", []chat.Part{image1, text(" and "), clip(6), text("Which colour is the circle?")}},
		{"media_order_image1_and_t1_with_temporal_row", "clip", []chat.Part{image1, text(" and "), clip(1), text("Which is the largest?")}},
	}
	g := testutil.OpenGolden(t, kimiRandom, "prompts")
	if n := len(g.Names()); n != 4*len(prompts) {
		t.Errorf("%d arrays for %d prompts", n, len(prompts))
	}
	e := openKimiRandom(t)
	for _, c := range prompts {
		t.Run(c.name, func(t *testing.T) {
			r := local(c.parts...)
			r.Video.Layout = c.layout
			r.MaxTokens = 20
			res := generate(t, e, r)
			want := int32s(g.Ints(c.name + ".input_ids"))
			for i, id := range want {
				if id == clipPad {
					want[i] = mediaPad
				}
			}
			if !slices.Equal(res.PromptIDs, want) {
				t.Errorf("prompt %q, want %q", e.Spell(res.PromptIDs), e.Spell(want))
			}
			checkRows(t, e, r, g.Floats(c.name+".inputs_embeds"))
			generated := int32s(g.Ints(c.name + ".generated"))
			if !slices.Equal(res.IDs, generated) {
				t.Errorf("answered %v, want %v", res.IDs, generated)
			}
		})
	}
}

// checkRows compares the rows of the media with the ones that the reference
// gives to the decoder in their place.
func checkRows(t *testing.T, e *Engine, r *Request, embeds []float32) {
	t.Helper()
	p, err := e.prompt(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	embd := e.proj.Embd()
	for i, m := range p.media {
		got, err := m.vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := embeds[m.pos*embd : (m.pos+m.rows)*embd]
		testutil.Close(t, fmt.Sprintf("medium %d", i), got, want, testutil.Tol{Abs: 1e-4, Rel: 1e-4})
	}
}

func int32s(v []int64) []int32 {
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x)
	}
	return out
}
