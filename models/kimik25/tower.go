package kimik25

import (
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models"
)

// tower is MoonViT with the projector behind it.
//
// Source: MoonViT3dPretrainedModel of Kimi-K2.5, seed 001.
type tower struct {
	PatchW *binding.Tensor `gguf:"v.patch_embd.weight" ne:"patch,patch,3,n_vis"`
	PatchB *binding.Tensor `gguf:"v.patch_embd.bias,f32" ne:"n_vis"`
	Pos    *binding.Tensor `gguf:"v.position_embd.weight,f32" ne:"n_vis,pos_cols,pos_rows"`
	Blocks []*block        `gguf:"v.blk"`
	Norm   norm            `gguf:"v.post_ln"`

	PreNorm norm   `gguf:"mm.input_norm"` // of each of the four parts of a token
	In      linear `gguf:"mm.1"`
	Out     linear `gguf:"mm.2"`

	cfg towerConfig
}

// block is one layer of the tower.
type block struct {
	Norm1 norm         `gguf:"ln1"`
	Joint *jointQKV    `gguf:""` // one of the two
	Split *separateQKV `gguf:""`
	O     linear       `gguf:"attn_out"`
	Norm2 norm         `gguf:"ln2"`
	Up    linear       `gguf:"ffn_up"`
	Down  linear       `gguf:"ffn_down"`
}

// jointQKV is how files of kind kimik25 hold the projections: in one matrix,
// and in each head of q and k the columns' pairs before the rows'.
type jointQKV struct {
	QKV linear `gguf:"attn_qkv"`
}

// separateQKV is how files of kind kimivl hold them: columns' and rows' pairs alternate.
type separateQKV struct {
	Q linear `gguf:"attn_q"`
	K linear `gguf:"attn_k"`
	V linear `gguf:"attn_v"`
}

// norm is a layer norm; all of them are as wide as the tower.
type norm struct {
	W *binding.Tensor `gguf:"weight,f32" ne:"n_vis"`
	B *binding.Tensor `gguf:"bias,f32" ne:"n_vis"`
}

func (n *norm) build(g *binding.Graph, x *binding.Tensor, eps float32) *binding.Tensor {
	return g.Norm(x, n.W, n.B, eps)
}

type linear struct {
	W *binding.Tensor `gguf:"weight" ne:"in,out"`
	B *binding.Tensor `gguf:"bias,f32" ne:"out"`

	in, out int
}

// Dims gives the tags their widths.
func (l *linear) Dims() models.Dims { return models.Dims{"in": int64(l.in), "out": int64(l.out)} }

func (l *linear) build(g *binding.Graph, x *binding.Tensor) *binding.Tensor {
	return g.Add(g.MulMat(l.W, x), l.B)
}

// Of each tower that has been published: the rotation's base, the epsilon of
// the norms, and the side of the blocks of patches that become one token.
const (
	ropeBase  = 10000
	towerEps  = 1e-5
	mergeSide = 2
)

func newTower(c towerConfig) *tower {
	d, merged := c.width, c.width*mergeSide*mergeSide
	t := &tower{cfg: c, In: linear{in: merged, out: merged}, Out: linear{in: merged, out: c.embd}}
	for range c.blocks {
		b := &block{O: linear{in: d, out: d}, Up: linear{in: d, out: c.ff}, Down: linear{in: c.ff, out: d}}
		if c.interleaved {
			one := linear{in: d, out: d}
			b.Split = &separateQKV{one, one, one}
		} else {
			b.Joint = &jointQKV{linear{in: d, out: 3 * d}}
		}
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// item holds the inputs of a graph for one grid. Only patches differ between
// items of the same grid.
type item struct {
	grid
	patches    *binding.Tensor // [patch*patch*3, t*h*w] F32
	posX, posY *binding.Tensor // [pos_cols, w], [pos_rows, h] F32
	time       *binding.Tensor // [n_vis, 1, t] F32, of clips only
	cols, rows *binding.Tensor // [t*h*w] I32
}

// inputs declares the inputs of gr and returns the function that uploads them.
func (t *tower) inputs(g *binding.Graph, gr grid) (*item, func(patches []float32)) {
	n, d := int64(gr.patches()), int64(t.cfg.width)
	it := &item{
		grid:    gr,
		patches: g.Input("patches", binding.F32, int64(3*t.cfg.image.Patch*t.cfg.image.Patch), n),
		posX:    g.Input("pos_x", binding.F32, int64(t.cfg.posCols), int64(gr.w)),
		posY:    g.Input("pos_y", binding.F32, int64(t.cfg.posRows), int64(gr.h)),
		cols:    g.Input("cols", binding.I32, n),
		rows:    g.Input("rows", binding.I32, n),
	}
	posX, posY := op.BicubicWeights(t.cfg.posCols, gr.w), op.BicubicWeights(t.cfg.posRows, gr.h)
	cols, rows := gr.places()
	var time []float32
	if gr.clip {
		it.time = g.Input("time", binding.F32, d, 1, int64(gr.t))
		time = op.Sinusoid(gr.t, t.cfg.width)
	}
	return it, func(patches []float32) {
		it.patches.SetFloats(patches)
		it.posX.SetFloats(posX)
		it.posY.SetFloats(posY)
		it.cols.SetInt32s(cols)
		it.rows.SetInt32s(rows)
		if gr.clip {
			it.time.SetFloats(time)
		}
	}
}

// build records the tower and the projector for one item, all of whose patches
// attend to each other.
//
//	res: [n_embd, h/2*w/2]
func (t *tower) build(g *binding.Graph, it *item) *binding.Tensor {
	x := t.embed(g, it)
	g.Tap(x, "patch_embed", -1)
	for i, b := range t.Blocks {
		x = g.Add(x, t.attention(g, b, it, b.Norm1.build(g, x, towerEps)))
		h := op.GELUTanh(g, b.Up.build(g, b.Norm2.build(g, x, towerEps)))
		x = g.Add(x, b.Down.build(g, h))
		g.Tap(x, "block", i)
	}
	x = t.Norm.build(g, x, towerEps)
	g.Tap(x, "final_layernorm", -1)
	x = pool(g, x, it.grid) // [n_vis*4, tokens]
	g.Tap(x, "merged", -1)
	return t.project(g, x)
}

// embed projects the patches and adds the positions: of the place in the
// picture, the same in every frame, and in clips of the frame.
//
//	res: [n_vis, t*h*w]
func (t *tower) embed(g *binding.Graph, it *item) *binding.Tensor {
	d, hw, frames := int64(t.cfg.width), int64(it.h*it.w), int64(it.t)
	x := g.Add(g.MulMat(g.Reshape(t.PatchW, it.patches.Dim(0), d), it.patches), t.PatchB)
	x = g.Reshape(x, d, hw, frames)
	table := g.Reshape(t.Pos, d, int64(t.cfg.posCols), int64(t.cfg.posRows))
	x = g.Add(x, op.Interp(g, table, it.posX, it.posY))
	if it.time != nil {
		x = g.Add(x, it.time)
	}
	return g.Reshape(x, d, hw*frames)
}

// attention is the first branch of a block.
//
//	x:   [n_vis, n]     the normed stream
//	res: [n_vis, n]
func (t *tower) attention(g *binding.Graph, b *block, it *item, x *binding.Tensor) *binding.Tensor {
	d, heads, n := x.Dim(0), int64(t.cfg.heads), x.Dim(1)
	dh := d / heads
	var q, k, v *binding.Tensor // [head_dim, n_head, n]
	if b.Joint != nil {
		qkv := b.Joint.QKV.build(g, x)
		part := func(i int64) *binding.Tensor {
			row := qkv.Stride(1)
			return g.View(qkv, [4]int64{dh, heads, n, 1}, 4*dh, row, row*n, 4*d*i)
		}
		q, k, v = part(0), part(1), part(2)
	} else {
		one := func(l *linear) *binding.Tensor { return g.Reshape(l.build(g, x), dh, heads, n) }
		q, k, v = one(&b.Split.Q), one(&b.Split.K), one(&b.Split.V)
	}
	q = op.Rope2D(g, q, it.cols, it.rows, ropeBase, b.Joint == nil)
	k = op.Rope2D(g, k, it.cols, it.rows, ropeBase, b.Joint == nil)
	o := op.SegmentAttention(g, q, k, v, float32(1/math.Sqrt(float64(dh))), 0)
	return b.O.build(g, o)
}

// pool takes the mean over the frames and joins blocks of 2 x 2 patches; their
// order in a token is row by row.
//
//	x:   [c, t*h*w]
//	res: [c*4, h/2*w/2]
func pool(g *binding.Graph, x *binding.Tensor, gr grid) *binding.Tensor {
	hw := int64(gr.h * gr.w)
	sum := x
	if gr.t > 1 {
		sum = g.Rows(x, 0, hw)
		for f := int64(1); f < int64(gr.t); f++ {
			sum = g.Add(sum, g.Rows(x, f*hw, hw))
		}
		sum = g.Scale(sum, 1/float32(gr.t))
	}
	y := op.Fold(g, g.Reshape(sum, x.Dim(0), hw, 1, 1), int64(gr.w), int64(gr.h), 1, mergeSide)
	return g.Reshape(y, y.Dim(0), y.Dim(1))
}

// project turns tokens of the tower into rows of the decoder.
//
//	x:   [n_vis*4, tokens]
//	res: [n_embd, tokens]
func (t *tower) project(g *binding.Graph, x *binding.Tensor) *binding.Tensor {
	merged, tokens := x.Dim(0), x.Dim(1)
	parts := g.Reshape(x, int64(t.cfg.width), tokens*mergeSide*mergeSide)
	x = g.Reshape(t.PreNorm.build(g, parts, t.cfg.eps), merged, tokens)
	return t.Out.build(g, g.GELUErf(t.In.build(g, x)))
}
