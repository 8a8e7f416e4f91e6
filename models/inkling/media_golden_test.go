package inkling

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// Placeholders of the random checkpoint's vocabulary.
const (
	audioSlot = 1039 // <|unused_200053|>
	imageSlot = 1040 // <|unused_200054|>
)

var (
	goldenImages = []string{"image0_100x80.png", "image1_80x80.png", "image2_37x121.png"}
	goldenClips  = []string{"audio0_12345.wav", "audio1_30011.wav"}
)

func readMedia(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, random, "media", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readImage(t testing.TB, file string) *media.Image {
	t.Helper()
	im, err := media.DecodeImage(file, readMedia(t, file), media.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func readAudio(t testing.TB, file string) []float32 {
	t.Helper()
	a, err := media.DecodeAudio(context.Background(), file, readMedia(t, file), media.AudioLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Rate != media.SampleRate {
		t.Fatalf("%s: %d samples a second, want %d", file, a.Rate, media.SampleRate)
	}
	return a.Samples
}

// TestImagesGolden compares the image tower, from the file of the picture on.
func TestImagesGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "images")
	p := loadRandomTowers(t)
	for i, file := range goldenImages {
		im := readImage(t, file)
		want := g.Ints(fmt.Sprintf("image%d.num_patches", i))[0]
		if n := p.ImageRows(im.W, im.H); int64(n) != want {
			t.Errorf("%s: %d rows, want %d", file, n, want)
		}
		got, err := p.EncodeImage(nil, im)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, file, got, g.Floats(fmt.Sprintf("image%d.features", i)), tapTol)
	}
}

// TestImageRescaleGolden: the factor that Params gives replaces that of the file.
func TestImageRescaleGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "image_rescale")
	params := models.Params{Backend: newBackend(t), ImageRescale: 1.5}
	p, err := models.OpenProjector(openGGUF(t, randomFiles(t).MMProj), params)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	im := readImage(t, goldenImages[2])
	if got, want := p.ImageRows(im.W, im.H), int(g.Ints("image2.num_patches")[0]); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	got, err := p.EncodeImage(nil, im)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "image2.features", got, g.Floats("image2.features"), tapTol)
}

// TestAudioGolden compares the audio tower, from the file of the clip on.
func TestAudioGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "audio")
	p := loadRandomTowers(t)
	for i, file := range goldenClips {
		samples := readAudio(t, file)
		want := g.Floats(fmt.Sprintf("audio%d.features", i))
		if n := p.AudioRows(len(samples)); n*p.Embd() != len(want) {
			t.Errorf("%s: %d rows, want %d", file, n, len(want)/p.Embd())
		}
		got, err := p.EncodeAudio(nil, samples)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, file, got, want, tapTol)
	}
}

// TestAudioChunks: a clip is the sum of its frames, in graphs of any size.
func TestAudioChunks(t *testing.T) {
	p := loadRandomTowers(t)
	const frames = 2*32 + 5
	levels := make([]int32, frames*media.MelBins)
	for i := range levels {
		levels[i] = int32(i * 7 % media.DMelLevels)
	}
	want := make([][]float32, frames)
	for f := range want {
		want[f] = make([]float32, p.Embd())
		if err := p.encodeFrames(want[f], levels[f*media.MelBins:(f+1)*media.MelBins]); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{1, 32, 256} {
		p.per.frames = size
		got := make([]float32, frames*p.Embd())
		if err := p.encodeFrames(got, levels); err != nil {
			t.Fatal(err)
		}
		for f := range frames {
			if !testutil.Close(t, fmt.Sprintf("frame %d in graphs of %d", f, size), got[f*p.Embd():(f+1)*p.Embd()], want[f], testutil.Tol{Abs: 1e-6}) {
				return
			}
		}
	}
	levels[3] = media.DMelLevels
	if err := p.encodeFrames(make([]float32, frames*p.Embd()), levels); err == nil {
		t.Error("a level beyond the table: no error")
	}
	if _, err := p.EncodeAudio(nil, nil); err == nil {
		t.Error("no samples: no error")
	}
}

// TestHeardAhead: rows are the same bit for bit however many frames' features are found at once.
func TestHeardAhead(t *testing.T) {
	p := loadRandomTowers(t)
	samples := readAudio(t, goldenClips[1])
	p.per.frames = 8
	want, err := p.EncodeAudio(nil, samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 8, 12, 16, 1000} {
		p.per.heard = size
		got, err := p.EncodeAudio(nil, samples)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, fmt.Sprintf("features of %d frames at once", size), got, want, testutil.Tol{})
	}
}

// TestRowsInPlace: rows are put into the memory that is given for them, and into new memory
// if that is too small.
func TestRowsInPlace(t *testing.T) {
	p := loadRandomTowers(t)
	im, samples := readImage(t, goldenImages[0]), readAudio(t, goldenClips[0])
	for name, encode := range map[string]func(dst []float32) ([]float32, error){
		"picture": func(dst []float32) ([]float32, error) { return p.EncodeImage(dst, im) },
		"pair":    func(dst []float32) ([]float32, error) { return p.EncodePair(dst, im, im) },
		"sound":   func(dst []float32) ([]float32, error) { return p.EncodeAudio(dst, samples) },
	} {
		t.Run(name, func(t *testing.T) {
			want, err := encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, room := range []int{len(want) - 1, len(want), len(want) + 5} {
				dst := slices.Repeat([]float32{float32(math.NaN())}, room)
				got, err := encode(dst[:1])
				if err != nil {
					t.Fatal(err)
				}
				testutil.Close(t, "rows", got, want, testutil.Tol{})
				if in := &got[0] == &dst[0]; in != (room >= len(want)) {
					t.Errorf("room for %d of %d values: used %v", room, len(want), in)
				}
			}
		})
	}
}

// TestImageChunks: a picture is its tiles, in graphs of any size.
func TestImageChunks(t *testing.T) {
	g := testutil.OpenGolden(t, random, "images")
	p := loadRandomTowers(t)
	for _, size := range []int{1, 4, 9, 128} {
		p.per.tiles = size
		testutil.Close(t, fmt.Sprintf("graphs of %d tiles", size), encodeImageFile(t, p, goldenImages[0]), g.Floats("image0.features"), tapTol)
	}
}

// TestEncodePair: two equal frames are the picture, the order of two others
// counts, and frames of two sizes are an error.
func TestEncodePair(t *testing.T) {
	g := testutil.OpenGolden(t, random, "images")
	p := loadRandomTowers(t)
	a := readImage(t, goldenImages[1])
	same, err := p.EncodePair(nil, a, a)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "a, a", same, g.Floats("image1.features"), tapTol)

	b := &media.Image{W: a.W, H: a.H, Pix: make([]uint8, len(a.Pix))}
	ab, err := p.EncodePair(nil, a, b)
	if err != nil {
		t.Fatal(err)
	}
	ba, err := p.EncodePair(nil, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(ab, same) || slices.Equal(ab, ba) {
		t.Error("the second frame, or the order of the frames, makes no difference")
	}
	if _, err := p.EncodePair(nil, a, readImage(t, goldenImages[0])); err == nil {
		t.Error("frames of two sizes: no error")
	}
}

// TestImagePromptsGolden runs prompts with one and three pictures.
func TestImagePromptsGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "image_prompts")
	m, p := loadRandom(t), loadRandomTowers(t)
	for _, c := range []struct {
		name   string
		images []int
	}{{"image0", []int{0}}, {"image1", []int{1}}, {"image2", []int{2}}, {"three_images", []int{0, 1, 2}}} {
		var rows []float32
		for _, i := range c.images {
			rows = append(rows, encodeImageFile(t, p, goldenImages[i])...)
		}
		checkPromptGolden(t, m, g, c.name, rows)
	}
}

// TestAudioPromptsGolden runs prompts with sound, and with sound and a picture.
func TestAudioPromptsGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "audio_prompts")
	m, p := loadRandom(t), loadRandomTowers(t)
	a0, a1 := encodeAudioFile(t, p, goldenClips[0]), encodeAudioFile(t, p, goldenClips[1])
	checkPromptGolden(t, m, g, "audio0", a0)
	checkPromptGolden(t, m, g, "audio1", a1)
	checkPromptGolden(t, m, g, "image_and_audio", slices.Concat(a1, encodeImageFile(t, p, goldenImages[1]), a0))
}

func encodeImageFile(t testing.TB, p *Projector, file string) []float32 {
	t.Helper()
	rows, err := p.EncodeImage(nil, readImage(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func encodeAudioFile(t testing.TB, p *Projector, file string) []float32 {
	t.Helper()
	rows, err := p.EncodeAudio(nil, readAudio(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// checkPromptGolden runs a prompt of the reference with the rows of its media in
// the order of the prompt: text rows are normed once, the towers' rows not at
// all. Compared are the rows given to the first layer, the logits of the last 16
// rows and 16 greedy tokens.
func checkPromptGolden(t *testing.T, m *Model, g *testutil.Golden, name string, media []float32) {
	t.Helper()
	ids := goldenIDs(g, name+".input_ids")
	b := models.Batch{Tokens: ids, Media: media}
	for r, id := range ids {
		if id == imageSlot || id == audioSlot {
			b.MediaRows = append(b.MediaRows, int32(r))
		}
		if r >= len(ids)-16 {
			b.Outputs = append(b.Outputs, int32(r))
		}
	}
	if got := len(media) / m.Config().Embd; got != len(b.MediaRows) {
		t.Fatalf("%s: the towers gave %d rows, the prompt has %d placeholders", name, got, len(b.MediaRows))
	}
	m.OnTap = func(tap string, _ int, _ [4]int64, got []float32) {
		if tap == "embed_norm" {
			testutil.Close(t, name+".inputs_embeds", got, g.Floats(name+".inputs_embeds"), tapTol)
		}
	}
	c := newTestCache(t, m, 256, binding.F32)
	logits := make([]float32, 16*m.Config().Vocab)
	if err := m.Forward(c, []models.Batch{b}, models.Outputs{Logits: logits}); err != nil {
		t.Fatal(err)
	}
	m.OnTap = nil
	testutil.Close(t, name+".logits_last16", logits, g.Floats(name+".logits_last16"), logitTol)
	last := logits[15*m.Config().Vocab:]
	var got []int32
	for range 16 {
		id := int32(testutil.Argmax(last))
		got = append(got, id)
		last = forward(t, m, c, []int32{id}, false)
	}
	if want := goldenIDs(g, name+".generated"); !slices.Equal(got, want) {
		t.Errorf("%s: generated %v, want %v", name, got, want)
	}
}
