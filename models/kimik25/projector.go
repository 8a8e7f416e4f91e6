package kimik25

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// Projector is the tower of an mmproj file with its projector.
type Projector struct {
	// OnTap, if set, is called with the named intermediate results of every item.
	OnTap layers.OnTap

	tower      *tower
	be         *binding.Backend
	own        *models.Weights
	exec       *layers.Executor[grid, []float32]
	maxPatches int
}

// defaultMaxPatches is the most patches of an item unless Params says
// otherwise: 4 frames of the largest size, 14 of full HD in chunks.
const defaultMaxPatches = 65536

// keepPatches is the size of an item up to which its graph is kept for the
// next one. Larger graphs hold gigabytes.
const keepPatches = 4096

func openProjectorKind(kind string) func(f *gguf.File, p models.Params) (models.Projector, error) {
	return func(f *gguf.File, p models.Params) (models.Projector, error) {
		cfg, err := readTowerConfig(f, kind)
		if err != nil {
			return nil, err
		}
		if s := p.ImageRescale; s != 0 && s != 1 {
			return nil, &models.UnsupportedError{File: f.Path(), Msg: fmt.Sprintf("image rescale by %v: this model's pictures keep their size up to its limit", s)}
		}
		pr := &Projector{
			tower: newTower(cfg), be: p.Backend, exec: layers.NewExecutor[grid, []float32](p.Backend), maxPatches: p.MaxClipPatches,
		}
		if pr.maxPatches <= 0 {
			pr.maxPatches = defaultMaxPatches
		}
		posCols, posRows := cfg.posCols, cfg.posRows
		if kind == "kimivl" {
			posCols, posRows = posCols*posRows, 1
		}
		dims := models.Dims{
			"n_vis": int64(cfg.width), "patch": int64(cfg.image.Patch), "pos_cols": int64(posCols), "pos_rows": int64(posRows),
		}
		// Other programs may have put more into the file; they fetch by name, and so do we.
		extra := func(string) bool { return true }
		if pr.own, err = models.Bind(pr.tower, f, p, dims, extra); err != nil {
			return nil, err
		}
		return pr, nil
	}
}

// Embd is the width of a row.
func (p *Projector) Embd() int { return p.tower.cfg.embd }

// HasImage reports that the file holds an image tower: it always does.
func (p *Projector) HasImage() bool { return true }

// HasAudio reports that it holds no audio tower.
func (p *Projector) HasAudio() bool { return false }

// ImageRows is the number of blocks of 2 x 2 patches of a w x h picture, 0 if
// the picture is refused.
func (p *Projector) ImageRows(w, h int) int {
	rows, cols, err := p.tower.cfg.image.Grid(w, h)
	if err != nil {
		return 0
	}
	return rows / mergeSide * (cols / mergeSide)
}

// EncodeImage returns one row per block of 2 x 2 patches, in dst if that has room.
func (p *Projector) EncodeImage(dst []float32, im *media.Image) ([]float32, error) {
	set, err := media.Patches(im, p.tower.cfg.image)
	if err != nil {
		return nil, err
	}
	return p.encode(dst, imageGrid(set.Rows, set.Cols), set.Pix)
}

// ClipRule is what the file says about clips.
func (p *Projector) ClipRule() media.ClipRule { return p.tower.cfg.clip }

// FitFrame scales and fills up a frame of an item of n frames. Frames of a
// chunk have a budget of their own; those of a clip are treated as pictures are.
func (p *Projector) FitFrame(im *media.Image, layout media.ClipLayout, n int) (*media.Image, error) {
	c := p.tower.cfg.image
	if layout == media.LayoutChunks {
		c.Budget = media.FrameBudget(n, p.tower.cfg.framePatches, p.tower.cfg.itemPatches)
	}
	return c.Fit(im)
}

// ClipRows is the number of blocks of 2 x 2 patches of one fitted frame.
func (p *Projector) ClipRows(w, h int) int {
	block := p.tower.cfg.image.Patch * mergeSide
	return w / block * (h / block)
}

// CheckClip bounds the patches of an item, all of which attend to each other.
func (p *Projector) CheckClip(n, w, h int) error {
	rows, cols := h/p.tower.cfg.image.Patch, w/p.tower.cfg.image.Patch
	if patches := n * rows * cols; patches > p.maxPatches {
		return fmt.Errorf("%d frames of %d x %d patches are %d patches at once, at most %d are allowed; take fewer or smaller frames, or raise the limit (--max-clip-patches)",
			n, cols, rows, patches, p.maxPatches)
	}
	return nil
}

// EncodeClip returns the rows of one item, in dst if that has room. A clip's frames all know their time;
// a chunk of a single frame is a picture.
func (p *Projector) EncodeClip(dst []float32, frames []*media.Image, layout media.ClipLayout) ([]float32, error) {
	if len(frames) > 0 {
		if err := p.CheckClip(len(frames), frames[0].W, frames[0].H); err != nil { // before the patches take memory
			return nil, err
		}
	}
	set, err := media.CutPatches(frames, p.tower.cfg.image)
	if err != nil {
		return nil, err
	}
	gr, err := clipGrid(len(frames), set.Rows, set.Cols, layout, p.tower.cfg.posTime)
	if err != nil {
		return nil, err
	}
	return p.encode(dst, gr, set.Pix)
}

// encode runs the tower on one item.
//
//	patches: [t*h*w][3][patch][patch]
func (p *Projector) encode(dst []float32, gr grid, patches []float32) ([]float32, error) {
	out := layers.Room(dst, gr.h/mergeSide*(gr.w/mergeSide)*p.Embd())
	if p.OnTap != nil {
		err := layers.RunTapped(p.be, patches, [][]float32{out}, p.OnTap, func(onTap func(*binding.Graph, *binding.Tensor, string, int)) *layers.Step[[]float32] {
			return p.step(gr, onTap)
		})
		return out, err
	}
	err := p.exec.Run(gr, gr.patches() <= keepPatches, patches, [][]float32{out}, func() *layers.Step[[]float32] { return p.step(gr, nil) })
	if gr.patches() > keepPatches {
		p.exec.Close()
		p.exec = layers.NewExecutor[grid, []float32](p.be)
	}
	return out, err
}

// Tensors that the tower adds to a graph, at most: outside of blocks, per
// block, and for each part that the queries of a block are cut into.
const (
	towerNodes         = 64
	towerNodesPerBlock = 64
	towerNodesPerPart  = 10
)

// step builds the graph of gr.
func (p *Projector) step(gr grid, onTap func(*binding.Graph, *binding.Tensor, string, int)) *layers.Step[[]float32] {
	n, t := int64(gr.patches()), p.tower
	parts := int(op.WindowBlocks(n, n, int64(t.cfg.heads)))
	g := p.be.NewGraph(towerNodes + 2*gr.t + len(t.Blocks)*(towerNodesPerBlock+towerNodesPerPart*parts))
	g.OnTap = onTap
	it, fill := t.inputs(g, gr)
	return &layers.Step[[]float32]{Graph: g, Fill: fill, Outs: []*binding.Tensor{g.Output(t.build(g, it))}}
}

// Close frees the tower.
func (p *Projector) Close() {
	p.exec.Close()
	p.own.Close()
}
