package kimik25

import (
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// Placeholders of the vocabulary: features are bound to them by order, whichever it is.
const (
	mediaPad = 1034 // <|media_pad|>
	clipPad  = 1039 // what the library writes for clips
)

// TestPromptsGolden runs prompts with pictures and clips from the media to the
// generated tokens, and in the order of the media.
func TestPromptsGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "prompts")
	m, p := loadRandom(t), loadRandomTower(t)
	image := func(file string) func() []float32 {
		return func() []float32 {
			rows, err := p.EncodeImage(nil, readImage(t, file))
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
	}
	image0, image1 := image("image0_84x112.png"), image("image1_150x75.png")
	inChunks := func(n int) func() []float32 {
		return func() []float32 { return chunks(t, p, clipFrames(t, p, n, media.LayoutChunks)) }
	}
	oneClip := func(n int) func() []float32 {
		return func() []float32 {
			rows, err := p.EncodeClip(nil, clipFrames(t, p, n, media.LayoutClip), media.LayoutClip)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
	}
	type mediaRows = []func() []float32
	prompts := []struct {
		name  string
		media mediaRows
	}{
		{"image0", mediaRows{image0}},
		{"image1", mediaRows{image1}},
		{"two_images", mediaRows{image0, image1}},
		{"video_t2", mediaRows{inChunks(2)}},
		{"video_t3", mediaRows{inChunks(3)}},
		{"video_t4", mediaRows{inChunks(4)}},
		{"video_t5", mediaRows{inChunks(5)}},
		{"video_t6", mediaRows{inChunks(6)}},
		{"mixed", mediaRows{image1, inChunks(3), image0}},
		{"media_order_image1_and_t3", mediaRows{image1, inChunks(3)}},
		{"media_order_image1_and_t6_one_clip", mediaRows{image1, oneClip(6)}},
		{"media_order_image1_and_t1_with_temporal_row", mediaRows{image1, oneClip(1)}},
	}
	if n := len(g.Names()); n != 4*len(prompts) {
		t.Errorf("%d arrays for %d prompts", n, len(prompts))
	}
	c := newTestCache(t, m, 1, 256, binding.F32)
	for _, prompt := range prompts {
		t.Run(prompt.name, func(t *testing.T) {
			var rows []float32
			for _, encode := range prompt.media {
				rows = append(rows, encode()...)
			}
			c.Reset(0)
			runPrompt(t, g, prompt.name+".", m, c, rows)
		})
	}
}

// runPrompt compares what the decoder sees, says and goes on with.
func runPrompt(t *testing.T, g *testutil.Golden, name string, m *Model, c models.Cache, rows []float32) {
	t.Helper()
	ids := goldenIDs(g, name+"input_ids")
	b := models.Batch{Tokens: ids, Media: rows}
	for r, id := range ids {
		if id == mediaPad || id == clipPad {
			b.MediaRows = append(b.MediaRows, int32(r))
		}
		if r >= len(ids)-16 {
			b.Outputs = append(b.Outputs, int32(r))
		}
	}
	m.OnTap = func(tap string, _ int, _ [4]int64, got []float32) {
		if tap == "inputs_embeds" {
			testutil.Close(t, tap, got, g.Floats(name+tap), tapTol)
		}
	}
	vocab := m.Config().Vocab
	logits := make([]float32, 16*vocab)
	if err := m.Forward(c, []models.Batch{b}, models.Outputs{Logits: logits}); err != nil {
		t.Fatal(err)
	}
	m.OnTap = nil
	testutil.Close(t, "logits_last16", logits, g.Floats(name+"logits_last16"), logitTol)
	last := logits[15*vocab:]
	var got []int32
	for range 20 {
		id := int32(testutil.Argmax(last))
		got = append(got, id)
		last = forward(t, m, c, []int32{id}, false)
	}
	if want := goldenIDs(g, name+"generated"); !slices.Equal(got, want) {
		t.Errorf("generated %v, want %v", got, want)
	}
}
