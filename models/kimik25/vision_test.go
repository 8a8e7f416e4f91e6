package kimik25

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// loadRandomTower opens the tower of the random checkpoint.
func loadRandomTower(t testing.TB) *Projector {
	t.Helper()
	return openTower(t, randomFiles(t).MMProj, models.Params{})
}

func openTower(t testing.TB, path string, p models.Params) *Projector {
	t.Helper()
	p.Backend = newBackend(t)
	pr, err := models.OpenProjector(openGGUF(t, path), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pr.Close)
	return pr.(*Projector)
}

func readImage(t testing.TB, file string) *media.Image {
	t.Helper()
	data, err := os.ReadFile(testutil.Testdata(t, random, "media", file))
	if err != nil {
		t.Fatal(err)
	}
	im, err := media.DecodeImage(file, data, media.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// compareStages makes p compare every named stage of the next item that the
// golden has, and returns the names that it found.
func compareStages(t *testing.T, p *Projector, g *testutil.Golden, prefix string) *[]string {
	var seen []string
	p.OnTap = func(name string, layer int, _ [4]int64, got []float32) {
		if layer >= 0 {
			name = fmt.Sprintf("%s%d", name, layer)
		}
		if g.Has(prefix + name) {
			seen = append(seen, name)
			testutil.Close(t, prefix+name, got, g.Floats(prefix+name), tapTol)
		}
	}
	return &seen
}

var stages = []string{"patch_embed", "block0", "block1", "block2", "final_layernorm", "merged"}

// TestTablesGolden compares the position tables.
func TestTablesGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "tables")
	exact := testutil.Tol{Abs: 2e-6} // the reference's two forms differ by 1.8e-6
	testutil.Close(t, "temporal_sinusoid_1152", op.Sinusoid(6, 1152), g.Floats("temporal_sinusoid_1152"), exact)
	testutil.Close(t, "temporal_sinusoid_tiny", op.Sinusoid(4, 144), g.Floats("temporal_sinusoid_tiny"), exact)

	p := loadRandomTower(t)
	table := make([]float32, p.tower.Pos.Elems())
	p.tower.Pos.Floats(table)
	testutil.Close(t, "pos_emb_weight", table, g.Floats("pos_emb_weight"), testutil.Tol{})
	for _, gr := range []grid{imageGrid(8, 8), imageGrid(6, 8), imageGrid(12, 6), imageGrid(4, 4), imageGrid(2, 10), imageGrid(10, 14), imageGrid(16, 16), imageGrid(30, 4)} {
		name := fmt.Sprintf("pos_emb_%dx%d", gr.h, gr.w)
		got := compute(t, p, gr, func(g *binding.Graph, it *item) *binding.Tensor { return op.Interp(g, p.tower.Pos, it.posX, it.posY) })
		testutil.Close(t, name, got, g.Floats(name), exact)
	}

	// Turning (1, 0) by an angle gives its cosine and sine.
	for _, gr := range []grid{imageGrid(6, 8), imageGrid(3, 5), {clip: true, t: 3, h: 4, w: 6}} {
		dh, n := int64(36), int64(gr.patches())
		got := compute(t, p, gr, func(g *binding.Graph, it *item) *binding.Tensor {
			ones := g.Reshape(g.Fill(g.Repeat(g.Cols(it.patches, 0, 1), [4]int64{dh / 2, n, 1, 1}), 1), 1, dh/2*n)
			x := g.Concat(ones, g.Scale(ones, 0), 0) // [2, dh/2*n]
			return op.Rope2D(g, g.Reshape(x, dh, 1, n), it.cols, it.rows, ropeBase, false)
		})
		var cos, sin []float32 // in the reference's order: the column's angle, the row's, the column's…
		for i := range n {
			for j := range dh / 4 {
				for axis := range int64(2) {
					at := i*dh + axis*dh/2 + 2*j
					cos, sin = append(cos, got[at]), append(sin, got[at+1])
				}
			}
		}
		name := fmt.Sprintf("%dx%dx%d", gr.t, gr.h, gr.w)
		testutil.Close(t, "rope_cos_"+name, cos, g.Floats("rope_cos_"+name), exact)
		testutil.Close(t, "rope_sin_"+name, sin, g.Floats("rope_sin_"+name), exact)
	}
}

// compute runs what build makes of the inputs of a grid, all patches zero.
func compute(t *testing.T, p *Projector, gr grid, build func(*binding.Graph, *item) *binding.Tensor) []float32 {
	t.Helper()
	g := p.be.NewGraph(256)
	defer g.Close()
	it, fill := p.tower.inputs(g, gr)
	out := g.Output(build(g, it))
	// Inputs that this graph does not use need memory all the same.
	for _, x := range []*binding.Tensor{it.patches, it.posX, it.posY, it.cols, it.rows, it.time} {
		if x != nil {
			g.Expand(x)
		}
	}
	al := p.be.NewAllocator()
	defer al.Close()
	if err := g.Alloc(al); err != nil {
		t.Fatal(err)
	}
	fill(make([]float32, it.patches.Elems()))
	if err := g.Compute(); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, out.Elems())
	out.Floats(got)
	return got
}

// TestImagesGolden compares every stage of the tower, from the file of the picture on.
func TestImagesGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "images")
	p := loadRandomTower(t)
	for i, file := range []string{"image0_84x112.png", "image1_150x75.png", "image2_112x112.png"} {
		prefix := fmt.Sprintf("image%d.", i)
		im := readImage(t, file)
		want := g.Shape(prefix + "features")[0]
		if n := p.ImageRows(im.W, im.H); int64(n) != want {
			t.Errorf("%s: %d rows, want %d", file, n, want)
		}
		seen := compareStages(t, p, g, prefix)
		got, err := p.EncodeImage(nil, im)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, prefix+"features", got, g.Floats(prefix+"features"), tapTol)
		if i < 2 && !slices.Equal(*seen, stages) {
			t.Errorf("%s: compared %v, want %v", file, *seen, stages)
		}
		// The graph that is kept gives the same, also the second time.
		p.OnTap = nil
		for range 2 {
			again, err := p.EncodeImage(nil, im)
			if err != nil {
				t.Fatal(err)
			}
			testutil.Close(t, "again", again, got, testutil.Tol{})
		}
	}
}

// TestImageResizeGolden: a picture above the budget. The library's resize
// differs from Pillow's by a level here and there, so features are looser.
func TestImageResizeGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "image_resize")
	p := loadRandomTower(t)
	grid := g.Ints("grid_thw")
	got, err := p.encode(nil, imageGrid(int(grid[1]), int(grid[2])), g.Floats("pixel_values"))
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "features of the reference's patches", got, g.Floats("features"), tapTol)
	p.tower.cfg.image.Budget = 100
	if got, err = p.EncodeImage(nil, readImage(t, "image3_203x310.png")); err != nil {
		t.Fatal(err)
	}
	testutil.NMSE(t, "features of our patches", got, g.Floats("features"), 1e-5)
}

// clipFrames are the first n frames of the reference's clip, fitted.
func clipFrames(t *testing.T, p *Projector, n int, layout media.ClipLayout) []*media.Image {
	t.Helper()
	g := testutil.OpenGolden(t, random, "videos")
	shape, pix := g.Shape("frames"), g.Ints("frames")
	h, w := int(shape[1]), int(shape[2])
	var frames []*media.Image
	for f := range n {
		im := &media.Image{W: w, H: h}
		for _, v := range pix[f*w*h*3 : (f+1)*w*h*3] {
			im.Pix = append(im.Pix, uint8(v))
		}
		fitted, err := p.FitFrame(im, layout, n)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, fitted)
	}
	return frames
}

// chunks encodes frames as the chunk layout has them.
func chunks(t *testing.T, p *Projector, frames []*media.Image) []float32 {
	t.Helper()
	var rows []float32
	for part := range slices.Chunk(frames, p.ClipRule().ChunkFrames) {
		got, err := p.EncodeClip(nil, part, media.LayoutChunks)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, got...)
	}
	return rows
}

// TestVideosGolden: clips of 1 to 6 frames in chunks, as the library takes them.
func TestVideosGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "videos")
	p := loadRandomTower(t)
	for n := 1; n <= 6; n++ {
		frames := clipFrames(t, p, n, media.LayoutChunks)
		prefix := fmt.Sprintf("t%d.", n)
		if n == 1 {
			set, err := media.CutPatches(clipFrames(t, p, 6, media.LayoutChunks), p.tower.cfg.image)
			if err != nil {
				t.Fatal(err)
			}
			testutil.Close(t, "pixel_values", set.Pix, g.Floats("pixel_values"), testutil.Tol{Abs: 1e-6})
		}
		seen := compareStages(t, p, g, prefix)
		testutil.Close(t, prefix+"features", chunks(t, p, frames), g.Floats(prefix+"features"), tapTol)
		if (n == 2 || n == 3) && !slices.Equal(*seen, stages) {
			t.Errorf("%d frames: compared %v, want %v", n, *seen, stages)
		}
	}
}

// TestVideoSpecGolden: what the specification has otherwise than the library:
// clips of any length as one item, and one frame with its temporal row.
func TestVideoSpecGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "video_spec")
	p := loadRandomTower(t)
	for n, name := range map[int]string{1: "t1_with_temporal_row.", 5: "t5_one_clip.", 6: "t6_one_clip."} {
		seen := compareStages(t, p, g, name)
		got, err := p.EncodeClip(nil, clipFrames(t, p, n, media.LayoutClip), media.LayoutClip)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, name+"features", got, g.Floats(name+"features"), tapTol)
		if n == 1 && !slices.Equal(*seen, stages) {
			t.Errorf("compared %v, want %v", *seen, stages)
		}
	}
	// The mean over frames, then blocks of 2 x 2, on tokens that are given.
	gr := grid{clip: true, t: 3, h: 4, w: 6}
	graph := p.be.NewGraph(64)
	defer graph.Close()
	x := graph.Input("x", binding.F32, 8, 72)
	y := graph.Output(pool(graph, x, gr))
	al := p.be.NewAllocator()
	defer al.Close()
	if err := graph.Alloc(al); err != nil {
		t.Fatal(err)
	}
	x.SetFloats(g.Floats("merge_input"))
	if err := graph.Compute(); err != nil {
		t.Fatal(err)
	}
	merged := make([]float32, y.Elems())
	y.Floats(merged)
	testutil.Close(t, "merge_output", merged, g.Floats("merge_output"), testutil.Tol{Abs: 1e-6})
}

// TestClipFrameZero: a clip of one frame differs from the picture by the first
// temporal row alone: 1 in the second half of every patch.
func TestClipFrameZero(t *testing.T) {
	p := loadRandomTower(t)
	frames := clipFrames(t, p, 1, media.LayoutClip)
	stage := func(encode func() error) (x []float32) {
		p.OnTap = func(name string, _ int, _ [4]int64, got []float32) {
			if name == "patch_embed" {
				x = got
			}
		}
		if err := encode(); err != nil {
			t.Fatal(err)
		}
		return x
	}
	still := stage(func() error { _, err := p.EncodeImage(nil, frames[0]); return err })
	chunk := stage(func() error { _, err := p.EncodeClip(nil, frames, media.LayoutChunks); return err })
	clip := stage(func() error { _, err := p.EncodeClip(nil, frames, media.LayoutClip); return err })
	testutil.Close(t, "a chunk of one frame is a picture", chunk, still, testutil.Tol{})
	want := slices.Clone(still)
	for i := range want {
		if d := p.tower.cfg.width; i%d >= d/2 {
			want[i]++
		}
	}
	testutil.Close(t, "a clip of one frame", clip, want, testutil.Tol{Abs: 1e-6})
}

// TestClipFramesInteract: every frame sees the others, so the mean of a clip is
// not the mean of its frames; order matters.
func TestClipFramesInteract(t *testing.T) {
	p := loadRandomTower(t)
	frames := clipFrames(t, p, 4, media.LayoutClip)
	forwards, err := p.EncodeClip(nil, frames, media.LayoutClip)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(frames)
	backwards, err := p.EncodeClip(nil, frames, media.LayoutClip)
	if err != nil {
		t.Fatal(err)
	}
	far := 0.0
	for i := range forwards {
		far = max(far, math.Abs(float64(forwards[i]-backwards[i])))
	}
	if far < 1e-2 {
		t.Errorf("the reversed clip differs by %g at most", far)
	}
	if rows := p.ClipRows(frames[0].W, frames[0].H); len(forwards) != rows*p.Embd() {
		t.Errorf("%d values, want %d rows of %d", len(forwards), rows, p.Embd())
	}
}

func TestClipErrors(t *testing.T) {
	p := openTower(t, randomFiles(t).MMProj, models.Params{MaxClipPatches: 200})
	frames := clipFrames(t, p, 6, media.LayoutClip)
	for _, c := range []struct {
		name   string
		frames []*media.Image
		layout media.ClipLayout
		want   string
	}{
		{"none", nil, media.LayoutClip, "without frames"},
		{"too many patches", frames, media.LayoutClip, "6 frames of 8 x 6 patches are 288 patches at once, at most 200"},
		{"chunk too long", []*media.Image{small(), small(), small(), small(), small()}, media.LayoutChunks, "5 frames in a chunk, at most 4"},
		{"sizes differ", []*media.Image{small(), frames[0]}, media.LayoutClip, "frame 1 has 112 x 84 pixels, the first 28 x 28"},
		{"not fitted", []*media.Image{{W: 20, H: 20, Pix: make([]uint8, 1200)}}, media.LayoutClip, "not whole blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := p.EncodeClip(nil, c.frames, c.layout); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func small() *media.Image { return &media.Image{W: 28, H: 28, Pix: make([]uint8, 28*28*3)} }

// TestLongClipMemory: the scores of a long clip are made part by part. All at
// once they would take 17 GB here; what remains grows with the patches.
func TestLongClipMemory(t *testing.T) {
	p := loadRandomTower(t)
	measure := func(frames int) int64 {
		step := p.step(grid{clip: true, t: frames, h: 64, w: 64}, nil)
		defer step.Graph.Close()
		return step.Graph.Measure()
	}
	short, long := measure(4), measure(8)
	if limit := int64(1 << 30); long > limit || long > 2*short {
		t.Errorf("8 frames of 64 x 64 patches take %d bytes, 4 take %d, want at most %d and twice as much", long, short, limit)
	}
}
