package inkling

import (
	"fmt"
	"math"
	"sync"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/hmlp"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// Projector holds the towers of an mmproj file; each may be absent.
type Projector struct {
	Vision *vision `gguf:""`
	Audio  *audio  `gguf:""`

	embd       int
	be         *binding.Backend
	per        graphSizes
	pix        *binding.HostFloats // tiles of one graph
	ids        []int32             // of frames of one graph
	mel        *media.MelPlan
	own        *models.Weights
	visionExec *layers.Executor[tilesShape, []float32]
	audioExec  *layers.Executor[int, []int32]
}

// graphSizes is how many tiles and frames one graph takes, and of how many frames the
// features are found at once.
type graphSizes struct{ tiles, frames, heard int }

// sizesOn are enough to keep the device busy, and few enough to keep intermediate results
// small: of a checkpoint of 4096 values a row 18 and 60 MB on a GPU, 9 and 8 MB on the CPU.
// While a GPU is at a graph the processors find the features of the next. On the CPU the
// two would be in each other's way: there all features come first.
func sizesOn(d binding.Device) graphSizes {
	if d.IsCPU() {
		return graphSizes{tiles: 64, frames: 32, heard: math.MaxInt32}
	}
	return graphSizes{tiles: 128, frames: 256, heard: 256}
}

func openProjector(f *gguf.File, p models.Params) (models.Projector, error) {
	r := newTowerReader(f)
	pr := &Projector{
		be: p.Backend, per: sizesOn(p.Backend.Device()), pix: p.Backend.NewHostFloats(0), visionExec: layers.NewExecutor[tilesShape, []float32](p.Backend),
		audioExec: layers.NewExecutor[int, []int32](p.Backend), mel: media.NewMelPlan(),
	}
	if r.BoolOr("clip.has_vision_encoder", false) {
		pr.Vision = r.vision()
		if p.ImageRescale != 0 && pr.Vision != nil {
			pr.Vision.cfg.RescaleFrac = p.ImageRescale
		}
		pr.embd = r.Int("clip.vision.projection_dim", 1)
	}
	if r.BoolOr("clip.has_audio_encoder", false) {
		pr.Audio = r.audio()
		embd := r.Int("clip.audio.projection_dim", 1)
		if pr.Vision != nil && embd != pr.embd && r.Err() == nil {
			r.Note(fmt.Errorf("%s: clip.vision.projection_dim %d and clip.audio.projection_dim %d differ", f.Path(), pr.embd, embd))
		}
		pr.embd = embd
	}
	if r.Err() == nil && pr.Vision == nil && pr.Audio == nil {
		r.Note(fmt.Errorf("%s: holds neither an image nor an audio tower", f.Path()))
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	dims := models.Dims{"n_embd": int64(pr.embd)}
	if pr.Audio != nil {
		dims["rows"] = int64(pr.Audio.mels * pr.Audio.bins)
	}
	var err error
	// Other programs may have put more into the file; they fetch by name, and so do we.
	extra := func(string) bool { return true }
	if pr.own, err = models.Bind(pr, f, p, dims, extra); err != nil {
		return nil, err
	}
	if pr.Vision != nil {
		if err := pr.Vision.check(f.Path()); err != nil {
			pr.own.Close()
			return nil, err
		}
	}
	return pr, nil
}

// towerReader reads what the towers are like.
type towerReader struct {
	*models.Keys
	f *gguf.File
}

func newTowerReader(f *gguf.File) towerReader { return towerReader{models.NewKeys(f, ""), f} }

// defaultMaxLongEdge bounds the rescaling of pictures where the file does not.
const defaultMaxLongEdge = 2048

func (r towerReader) tiles() media.TileConfig {
	published := PublishedTiles()
	return media.TileConfig{
		Patch:              r.Int("clip.vision.patch_size", 1),
		Temporal:           r.IntOr("inkling.vision.temporal_patch_size", 1, 2),
		Mean:               r.RGB("clip.vision.image_mean", published.Mean),
		Std:                r.RGB("clip.vision.image_std", published.Std),
		RescaleFrac:        r.NotNegativeOr("inkling.vision.rescale_image_frac", 0),
		RescaleMaxLongEdge: r.IntOr("inkling.vision.rescale_max_long_edge", 0, defaultMaxLongEdge),
	}
}

func (r towerReader) vision() *vision {
	v := &vision{
		cfg: r.tiles(),
		eps: float32(r.PositiveOr("clip.vision.attention.layer_norm_epsilon", 1e-6)),
	}
	depth := r.Int("clip.vision.block_count", 1)
	embd := int64(r.Int("clip.vision.projection_dim", 1))
	if r.Err() != nil {
		return nil
	}
	plan, err := hmlp.Plan(v.cfg.Patch, v.cfg.Temporal, 3, depth)
	if err != nil {
		r.Note(fmt.Errorf("%s: %w", r.f.Path(), err))
		return nil
	}
	v.plan = plan
	for _, p := range plan {
		out := int64(p.Out)
		if out == 0 {
			out = embd
		}
		v.Layers = append(v.Layers, &foldLayer{dims: models.Dims{"in": int64(p.In), "out": out}})
	}
	return v
}

func (r towerReader) audio() *audio {
	a := &audio{mels: r.Int("clip.audio.num_mel_bins", 1), eps: float32(r.PositiveOr("clip.audio.attention.layer_norm_epsilon", 1e-6))}
	if r.Err() != nil {
		return nil
	}
	t, ok := r.f.Tensor("a.dmel.embedding.weight")
	if !ok || len(t.Dims) != 2 || t.Dims[1]%int64(a.mels) != 0 {
		r.Note(fmt.Errorf("%s: tensor \"a.dmel.embedding.weight\": want a table with a multiple of %d rows", r.f.Path(), a.mels))
		return nil
	}
	a.bins = int(t.Dims[1] / int64(a.mels))
	if a.mels != media.MelBins || a.bins != media.DMelLevels {
		r.Note(&models.UnsupportedError{File: r.f.Path(), Msg: fmt.Sprintf("audio tower for %d mel bands of %d levels, this program makes %d of %d",
			a.mels, a.bins, media.MelBins, media.DMelLevels)})
		return nil
	}
	return a
}

// Embd is the width of a row.
func (p *Projector) Embd() int { return p.embd }

// HasImage reports whether the file holds an image tower.
func (p *Projector) HasImage() bool { return p.Vision != nil }

// HasAudio reports whether the file holds an audio tower.
func (p *Projector) HasAudio() bool { return p.Audio != nil }

// ImageRows is the number of tiles, each of which becomes a row.
func (p *Projector) ImageRows(w, h int) int {
	rows, cols := media.TileCount(w, h, p.Vision.cfg)
	return rows * cols
}

// EncodeImage returns one row per tile, in dst if that has room.
func (p *Projector) EncodeImage(dst []float32, im *media.Image) ([]float32, error) {
	cfg := p.Vision.cfg
	cfg.Temporal = 1 // of frames that are all the same the tower wants one
	t, err := media.Tile(im, cfg)
	if err != nil {
		return nil, err
	}
	return p.encodeTiles(dst, t.N, t.Temporal, t.Cut)
}

// EncodePair returns one row per tile of two video frames of one size; a is in
// the first temporal slot of each tile, b in the second. The rows are in dst if that has room.
func (p *Projector) EncodePair(dst []float32, a, b *media.Image) ([]float32, error) {
	t, err := media.TilePair(a, b, p.Vision.cfg)
	if err != nil {
		return nil, err
	}
	return p.encodeTiles(dst, t.N, t.Temporal, t.Cut)
}

// AudioRows is the number of frames, each of which becomes a row.
func (p *Projector) AudioRows(n int) int { return media.MelFrames(n) }

// EncodeAudio returns one row per frame of 800 samples, in dst if that has room.
func (p *Projector) EncodeAudio(dst, samples []float32) ([]float32, error) {
	s, err := p.mel.Spectrogram(samples)
	if err != nil {
		return nil, err
	}
	dst = layers.Room(dst, s.Frames*p.embd)
	mels, n := p.Audio.mels, min(p.per.heard, s.Frames)
	levels, next := make([]int32, n*mels), make([]int32, min(n, s.Frames-n)*mels)
	s.Levels(levels, 0)
	for first := 0; first < s.Frames; first += n {
		end := min(first+n, s.Frames)
		var ahead sync.WaitGroup
		if end < s.Frames {
			ahead.Go(func() { s.Levels(next[:min(n, s.Frames-end)*mels], end) })
		}
		err := p.encodeFrames(dst[first*p.embd:end*p.embd], levels[:(end-first)*mels])
		ahead.Wait()
		if err != nil {
			return nil, err
		}
		levels, next = next, levels
	}
	return dst, nil
}

// tilesShape is what graphs of the image tower differ by.
type tilesShape struct{ tiles, frames int }

// encodeTiles returns one row for each of n tiles, of one frame or of all that the tower
// takes, in dst if that has room. cut writes the tiles from first on to pix.
func (p *Projector) encodeTiles(dst []float32, n, frames int, cut func(pix []float32, first int)) ([]float32, error) {
	size := 3 * p.Vision.cfg.Patch * p.Vision.cfg.Patch * frames
	if room := min(n, p.per.tiles) * size; len(p.pix.Values) < room {
		p.pix.Close()
		p.pix = p.be.NewHostFloats(room)
	}
	dst = layers.Room(dst, n*p.embd)
	for i := 0; i < n; i += p.per.tiles {
		shape := tilesShape{min(p.per.tiles, n-i), frames}
		pix := p.pix.Values[:shape.tiles*size]
		cut(pix, i)
		rows := [][]float32{dst[i*p.embd : (i+shape.tiles)*p.embd]}
		err := p.visionExec.Run(shape, shape.tiles < p.per.tiles, pix, rows, func() *layers.Step[[]float32] { return p.tilesStep(shape) })
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// tilesStep is the graph of a shape.
func (p *Projector) tilesStep(s tilesShape) *layers.Step[[]float32] {
	g := p.be.NewGraph(16*len(p.Vision.Layers) + 16)
	side := int64(p.Vision.cfg.Patch)
	x := g.Input("tiles", binding.F32, 3, side*side, int64(s.frames), int64(s.tiles))
	return &layers.Step[[]float32]{Graph: g, Fill: x.SetFloats, Outs: []*binding.Tensor{g.Output(p.Vision.build(g, x))}}
}

// encodeFrames writes one row per audio frame to dst.
//
//	levels: [mels] of each frame, 0..bins-1
func (p *Projector) encodeFrames(dst []float32, levels []int32) error {
	mels := p.Audio.mels
	if err := layers.InRange(levels, p.Audio.bins, "dMel level"); err != nil {
		return err
	}
	frames := len(levels) / mels
	for i := 0; i < frames; i += p.per.frames {
		n := min(p.per.frames, frames-i)
		p.ids = p.Audio.rowIDs(p.ids, levels[i*mels:(i+n)*mels])
		rows := [][]float32{dst[i*p.embd : (i+n)*p.embd]}
		err := p.audioExec.Run(n, n < p.per.frames, p.ids, rows, func() *layers.Step[[]int32] { return p.framesStep(n) })
		if err != nil {
			return err
		}
	}
	return nil
}

// framesStep is the graph for n frames.
func (p *Projector) framesStep(n int) *layers.Step[[]int32] {
	g := p.be.NewGraph(p.Audio.nodes())
	ids := g.Input("ids", binding.I32, int64(n), int64(p.Audio.mels))
	return &layers.Step[[]int32]{Graph: g, Fill: ids.SetInt32s, Outs: []*binding.Tensor{g.Output(p.Audio.build(g, ids))}}
}

// Close frees the towers.
func (p *Projector) Close() {
	p.visionExec.Close()
	p.audioExec.Close()
	p.pix.Close()
	p.own.Close()
}
