package inkling

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/hmlp"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// formula gives n values of a stream of the reference's integer hash; its
// definition is in hmlp_formula_towers.json.
func formula(stream uint32, n int, scale, offset float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		h := uint32(i) + stream*0x9E3779B9
		h ^= h >> 16
		h *= 0x85EBCA6B
		h ^= h >> 13
		h *= 0xC2B2AE35
		h ^= h >> 16
		u := float64(h)/(1<<31) - 1
		out[i] = float32(u*scale + offset)
	}
	return out
}

const formulaEmbd = 96 // width of the text model

// writeFormulaTower makes an mmproj file with an image tower of the given depth,
// and returns the [out, in] shapes of its layers.
func writeFormulaTower(t testing.TB, path string, depth int) [][]int64 {
	t.Helper()
	plan, err := hmlp.Plan(40, 2, 3, depth)
	if err != nil {
		t.Fatal(err)
	}
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "clip"},
		{"clip.has_vision_encoder", true},
		{"clip.vision.projector_type", "inkling"},
		{"clip.vision.projection_dim", uint32(formulaEmbd)},
		{"clip.vision.patch_size", uint32(40)},
		{"clip.vision.block_count", uint32(depth)},
		{"clip.vision.image_mean", []float32{0.48145466, 0.4578275, 0.40821073}},
		{"clip.vision.image_std", []float32{0.26862954, 0.26130258, 0.27577711}},
	} {
		check(w.Set(kv.key, kv.value))
	}
	type tensor struct {
		name          string
		dims          []int64
		stream        int
		scale, offset float64
	}
	var tensors []tensor
	var shapes [][]int64
	for j, l := range plan {
		in, out := int64(l.In), int64(l.Out)
		if out == 0 {
			out = formulaEmbd
		}
		shapes = append(shapes, []int64{out, in})
		tensors = append(tensors, tensor{fmt.Sprintf("v.hmlp.%d.linear.weight", j), []int64{in, out}, 10*depth + j, 1.7 / math.Sqrt(float64(in)), 0})
		if l.Norm {
			tensors = append(tensors, tensor{fmt.Sprintf("v.hmlp.%d.norm.weight", j), []int64{out}, 100 + 10*depth + j, 0.4, 1})
		}
	}
	tensors = append(tensors, tensor{"v.hmlp.final_norm.weight", []int64{formulaEmbd}, 200 + depth, 0.4, 1})
	for _, x := range tensors {
		check(w.AddTensor(x.name, gguf.F32, x.dims))
	}
	for _, x := range tensors {
		n := int64(1)
		for _, d := range x.dims {
			n *= d
		}
		check(w.WriteTensor(x.name, func(out io.Writer) error {
			return binary.Write(out, binary.LittleEndian, formula(uint32(x.stream), int(n), x.scale, x.offset))
		}))
	}
	check(w.Commit())
	return shapes
}

// TestFormulaTowersGolden runs image towers of other depths than the
// checkpoint's, with weights that follow a formula.
func TestFormulaTowersGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "hmlp_formula_towers")
	var facts struct {
		Facts map[string]struct {
			Shapes [][]int64 `json:"linear_shapes"`
		} `json:"facts"`
	}
	testutil.GoldenJSON(t, random, "hmlp_formula_towers", &facts)
	testutil.Close(t, "formula_first8", formula(40, 8, 1, 0), g.Floats("formula_first8"), testutil.Tol{})
	shape := g.Shape("pixel_values") // [tiles, 2, 40, 40, 3]
	pix, tiles, frame := g.Floats("pixel_values"), int(shape[0]), 40*40*3
	pairs := func(dst []float32, first int) { copy(dst, pix[first*2*frame:]) }
	// same cuts tiles whose frames are all the first one.
	same := func(frames int) func([]float32, int) {
		return func(dst []float32, first int) {
			for i := range len(dst) / frame {
				copy(dst[i*frame:], pix[(first+i/frames)*2*frame:][:frame])
			}
		}
	}
	for _, depth := range []int{1, 3, 4} {
		name := fmt.Sprintf("n_layers%d", depth)
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mmproj.gguf")
			shapes := writeFormulaTower(t, path, depth)
			if d := cmp.Diff(facts.Facts[name].Shapes, shapes); d != "" {
				t.Fatalf("shapes of the layers (-want +got):\n%s", d)
			}
			p, err := models.OpenProjector(openGGUF(t, path), models.Params{Backend: newBackend(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if !p.HasImage() || p.HasAudio() {
				t.Errorf("image tower %v, audio tower %v", p.HasImage(), p.HasAudio())
			}
			encode := func(frames int, cut func([]float32, int)) []float32 {
				rows, err := p.(*Projector).encodeTiles(nil, tiles, frames, cut)
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
			testutil.Close(t, name, encode(2, pairs), g.Floats(name+".features"), tapTol)
			testutil.Close(t, name+", one frame for two that are the same", encode(1, same(1)), encode(2, same(2)), testutil.Tol{Abs: 1e-5})
		})
	}
}

// writeAudioTower makes an mmproj file with an audio tower of zeros: embd wide, for bands
// of so many levels.
func writeAudioTower(t testing.TB, path string, embd, levels int64) {
	t.Helper()
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "clip"},
		{"clip.has_audio_encoder", true},
		{"clip.audio.projector_type", "inkling"},
		{"clip.audio.projection_dim", uint32(embd)},
		{"clip.audio.num_mel_bins", uint32(media.MelBins)},
	} {
		if err := w.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	tensors := []struct {
		name string
		typ  gguf.Type
		dims []int64
		size int64
	}{
		{"a.dmel.embedding.weight", gguf.BF16, []int64{embd, media.MelBins * levels}, 2 * embd * media.MelBins * levels},
		{"a.dmel.final_norm.weight", gguf.F32, []int64{embd}, 4 * embd},
	}
	for _, x := range tensors {
		if err := w.AddTensor(x.name, x.typ, x.dims); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range tensors {
		if err := w.WriteTensor(x.name, func(out io.Writer) error {
			_, err := out.Write(make([]byte, x.size))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestForeignAudioTower: levels that this program does not make are refused.
func TestForeignAudioTower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mmproj.gguf")
	writeAudioTower(t, path, 8, 8)
	p, err := models.OpenProjector(openGGUF(t, path), models.Params{Backend: newBackend(t)})
	if err == nil {
		p.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "80 mel bands of 8 levels") {
		t.Errorf("error %v", err)
	}
}

// TestReadTiles: what a file does not say is the published processor's, and a
// limit of 0, which the converter writes for null, is none.
func TestReadTiles(t *testing.T) {
	got, err := ReadTiles(openGGUF(t, randomFiles(t).MMProj))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(PublishedTiles(), got); d != "" {
		t.Errorf("of the random checkpoint (-want +got):\n%s", d)
	}

	path := filepath.Join(t.TempDir(), "mmproj.gguf")
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"clip.vision.patch_size", uint32(14)},
		{"clip.vision.image_mean", []float32{1, 2, 3}},
		{"clip.vision.image_std", []float32{4, 5, 6}},
		{"inkling.vision.rescale_image_frac", float32(1.5)},
		{"inkling.vision.rescale_max_long_edge", uint32(0)},
		{"inkling.vision.temporal_patch_size", uint32(1)},
	} {
		if err := w.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err = ReadTiles(openGGUF(t, path)); err != nil {
		t.Fatal(err)
	}
	want := media.TileConfig{Patch: 14, Temporal: 1, Mean: [3]float32{1, 2, 3}, Std: [3]float32{4, 5, 6}, RescaleFrac: 1.5}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("of a file with all keys (-want +got):\n%s", d)
	}
}
