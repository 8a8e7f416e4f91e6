package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/internal/hmlp"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// vision is the hierarchical-MLP tower: each tile of patch x patch pixels and
// its temporal slots become one row. It has no attention and no positions.
type vision struct {
	Layers []*foldLayer    `gguf:"v.hmlp"`
	Norm   *binding.Tensor `gguf:"v.hmlp.final_norm.weight,f32" ne:"n_embd"`

	cfg  media.TileConfig
	eps  float32
	plan []hmlp.Layer
}

// foldLayer folds neighbours in space or time into the channels, then projects.
type foldLayer struct {
	Linear *binding.Tensor `gguf:"linear.weight" ne:"in,out"`
	Norm   *binding.Tensor `gguf:"norm.weight,f32,optional" ne:"out"` // absent on the last

	dims models.Dims
}

// build records the tower for n tiles. Of tiles whose frames are all the same, a
// picture's, one frame is enough: space is folded first, and the result repeated where
// time is.
//
//	tiles: [3, patch*patch, temporal or 1, n]   row by row
//	res:   [n_embd, n]
func (v *vision) build(g *binding.Graph, tiles *binding.Tensor) *binding.Tensor {
	x, side := tiles, int64(v.cfg.Patch)
	for i, l := range v.Layers {
		p := v.plan[i]
		if p.TFold > 1 && x.Dim(2) == 1 {
			x = g.Repeat(x, [4]int64{x.Dim(0), x.Dim(1), int64(v.cfg.Temporal), x.Dim(3)})
		}
		x = op.Fold(g, x, side, side, int64(p.TFold), int64(p.HWFold))
		side /= int64(p.HWFold)
		places, frames, n := x.Dim(1), x.Dim(2), x.Dim(3)
		x = g.MulMat(l.Linear, g.Reshape(x, x.Dim(0), places*frames*n)) // one product: a batch would read the weights for each tile
		x = g.Reshape(x, x.Dim(0), places, frames, n)
		if l.Norm != nil {
			x = g.GELUErf(g.RMSNorm(x, l.Norm, v.eps))
		}
		g.Tap(x, "tower_layer", i)
	}
	return g.RMSNorm(g.Reshape(x, x.Dim(0), x.Dim(3)), v.Norm, v.eps)
}

// check compares the number of layers with the plan.
func (v *vision) check(file string) error {
	for i, l := range v.Layers {
		if last := i == len(v.Layers)-1; (l.Norm == nil) != last {
			return fmt.Errorf("%s: tensor \"v.hmlp.%d.norm.weight\": present %v, want %v in layer %d of %d", file, i, l.Norm != nil, !last, i+1, len(v.Layers))
		}
	}
	return nil
}

// Dims gives the layer its widths.
func (l *foldLayer) Dims() models.Dims { return l.dims }
