package kimik25

import (
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// few is the number of rows of a sequence up to which a step counts as
// decoding: several sequences share one graph, and it stays allocated beside
// that of a prefill.
const few = 16

// maskPad rounds up the rows of masks for GPUs, whose fused kernels read whole
// tiles of them.
const maskPad = 64

// shape is what two steps must share to share a graph.
type shape struct {
	cache uint64
	rows  layers.Rows
	nKV   int // cells that the step looks at
}

func (sh shape) few() bool { return sh.rows.N <= few }

// shapeOf finds the shape of a step; the batches have the same number of rows.
func shapeOf(s *cache, bs []models.Batch, out models.Outputs) shape {
	sh := shape{cache: s.id, rows: layers.RowsOf(bs, out)}
	end := 0
	for _, b := range bs {
		end = max(end, s.seqs[b.Seq].pos+len(b.Tokens))
	}
	sh.nKV = roundUp(end+1, cellPad)
	return sh
}

// step holds the inputs of a graph. Rows of idle sequences compute something
// that nobody reads and that is written nowhere anybody looks.
type step struct {
	*config
	*layers.Inputs
	s   *cache
	nKV int
	few bool

	pos   *binding.Tensor // [N*Seqs] I32
	write *binding.Tensor // [N, 1, Seqs] I64: the cells of the new rows

	maskInput *binding.Tensor // [nKV, N', 1, Seqs] F32
	maskHalf  *binding.Tensor // the same in F16, once a layer has the flash form
}

// flash reports whether layer i takes the fused kernel. The CPU's takes one
// query at a time; many are faster as matrices.
func (st *step) flash(i int) bool {
	return st.s.flash[i] && (st.few || !st.on(i).Device().IsCPU())
}

// mask is in the type that the form of layer i wants.
func (st *step) mask(g *binding.Graph, i int) *binding.Tensor {
	if !st.flash(i) {
		return st.maskInput
	}
	if st.maskHalf == nil {
		st.maskHalf = g.Cast(st.maskInput, binding.F16)
	}
	return st.maskHalf
}

// newStep declares the inputs of a step in g.
func newStep(g *binding.Graph, c *config, s *cache, sh shape) *step {
	n, seqs := int64(sh.rows.N), int64(sh.rows.Seqs)
	st := &step{
		config: c, Inputs: layers.NewInputs(g, sh.rows, c.embd), s: s, nKV: sh.nKV, few: sh.few(),
		pos:   g.Input("pos", binding.I32, n*seqs),
		write: g.Input("write", binding.I64, n, 1, seqs),
	}
	rows := n
	for i := range c.blockCount {
		if st.flash(i) && !c.on(i).Device().IsCPU() {
			rows = int64(roundUp(sh.rows.N, maskPad))
		}
	}
	st.maskInput = g.Input("mask", binding.F32, int64(sh.nKV), rows, 1, seqs)
	return st
}

// filler returns the function that uploads the inputs.
func (st *step) filler() func(bs []models.Batch) {
	n, rows := st.N, int(st.maskInput.Dim(1))
	pos, write := make([]int32, n*st.Seqs), make([]int64, n*st.Seqs)
	mask := make([]float32, st.nKV*rows*st.Seqs)
	negInf := float32(math.Inf(-1))
	return func(bs []models.Batch) {
		for i := range mask {
			mask[i] = negInf
		}
		for i, l := range st.Fill(bs, st.s) {
			for r := range n {
				p := l.Pos + r
				pos[i*n+r], write[i*n+r] = int32(p), int64(p)
				if l.Batch == nil { // an idle one looks at its first cells and writes to the last
					write[i*n+r] = int64(st.s.full - 1)
				}
				clear(mask[(i*rows+r)*st.nKV:][:p+1])
			}
		}
		st.pos.SetInt32s(pos)
		st.write.SetInt64s(write)
		st.maskInput.SetFloats(mask)
	}
}
