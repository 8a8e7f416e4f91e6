package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// nodesPerDepth is what a depth adds to a graph beside its layer, at most.
const nodesPerDepth = 48

// window is a run of rows of one sequence that all depths are computed for.
type window struct {
	models.Batch           // Tokens and Media: of the rows one further on
	hidden       []float32 // [n_embd] for each row: after the model's final norm
	first        int       // position of the first row
	origin       int       // of the depths' first row
}

// mtpShape is what two steps of the depths must share to share a graph.
type mtpShape struct {
	shape
	drafts int
}

// mtpStep holds the inputs of such a graph.
type mtpStep struct {
	*step
	hidden  *binding.Tensor // [n_embd, N*Seqs]
	origins []int           // of the lanes
	drafts  int
}

// newStep builds the graph of shape sh on the depths' cache s.
func (m *mtp) newStep(s *cache, sh mtpShape, tap layers.GraphTap) *layers.Step[[]window] {
	g := m.trunk.be.NewGraph(m.cfg.nodes(sh.shape) + nodesPerDepth*m.cfg.blockCount + nodesPerLayer)
	g.OnTap = tap
	st := &mtpStep{step: newStep(g, m.cfg, s, sh.shape), drafts: sh.drafts, origins: make([]int, sh.rows.Seqs)}
	st.hidden = g.Input("hidden", binding.F32, int64(m.cfg.embd), int64(st.N*st.Seqs))
	outs := st.build(g, m.trunk.w, m.w)
	return &layers.Step[[]window]{Graph: g, Outs: outs, Fill: st.fillWindows()}
}

// build records the chain of depths.
//
//	res: drafts times [Seqs] I32
//
// Source: the multi-token prediction of DeepSeek-V3 (2024, section 2.2) with the
// order, norms and states of Inkling's published implementation in vLLM.
func (st *mtpStep) build(g *binding.Graph, trunk *weights, w *mtpWeights) []*binding.Tensor {
	embd, n, seqs := int64(st.embd), int64(st.N), int64(st.Seqs)
	// Tokens of the rows one further on, then of what is drafted behind them.
	ahead := g.Reshape(st.PutMedia(g, st.embed(g, trunk, st.IDs)), embd, n, seqs)
	last := g.Cont(lastRows(g, ahead))
	h := st.hidden
	var drafts []*binding.Tensor
	for d, l := range w.Depths {
		e := ahead
		if d > 0 {
			e = g.Cont(g.View(ahead, [4]int64{embd, n, seqs, 1}, ahead.Stride(1), ahead.Stride(2), ahead.Stride(3), int64(d)*ahead.Stride(1)))
		}
		g.On(st.on(d))
		e = g.Reshape(e, embd, n*seqs)
		u := product(g, l.Proj, g.Concat(g.RMSNorm(h, l.HNorm, st.eps), g.RMSNorm(e, l.ENorm, st.eps), 0))
		if !st.sliding[d] {
			st.tau = st.scaling(g, func(lane int) int { return st.origins[lane] + d + 1 })
		}
		s := st.block(g, l.Block, d, stream{x: u}, w.ChainNorm)
		if h = s.x; w.ChainNorm != nil {
			h = st.norm(g, s, w.ChainNorm)
		}
		g.Tap(h, "mtp_hidden", d)
		if d < st.drafts {
			o := lastRows(g, g.Reshape(h, embd, n, seqs))
			id := g.ArgMax(st.unembed(g, trunk, g.Reshape(g.Cont(o), embd, seqs)))
			drafts = append(drafts, g.Output(id))
			last = g.Reshape(st.embed(g, trunk, id), embd, 1, seqs)
		}
		if d+1 < len(w.Depths) { // without a draft anything will do: those rows are computed again
			ahead = g.Concat(ahead, last, 1)
		}
	}
	g.Expand(h)
	return drafts
}

// lastRows is the view of the last row of every sequence.
//
//	x:   [n_embd, n, seqs]
//	res: [n_embd, 1, seqs]
func lastRows(g *binding.Graph, x *binding.Tensor) *binding.Tensor {
	return g.View(x, [4]int64{x.Dim(0), 1, x.Dim(2), 1}, x.Stride(1), x.Stride(2), x.Stride(3), (x.Dim(1)-1)*x.Stride(1))
}

// fillWindows returns the function that uploads the inputs.
func (st *mtpStep) fillWindows() func(ws []window) {
	per := st.N * st.embd
	hidden := make([]float32, per*st.Seqs)
	fill := st.filler()
	return func(ws []window) {
		bs := make([]models.Batch, len(ws))
		for i := range ws {
			lane := ws[i].Seq - st.Lo
			bs[i], st.origins[lane] = ws[i].Batch, ws[i].origin
			copy(hidden[lane*per:], ws[i].hidden)
		}
		fill(bs)
		st.hidden.SetFloats(hidden)
	}
}
