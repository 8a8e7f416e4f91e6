package inkling

import (
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// nodesPerDepth is what a depth adds to a graph beside its layer, at most.
const nodesPerDepth = 48

// window is a run of rows of one sequence that depths are computed for.
type window struct {
	models.Batch           // Tokens and Media: of the rows one further on than the first depth's are predicted from
	hidden       []float32 // [n_embd] for each row: what the first depth takes
	first        int       // position of the first row
	origins      []int     // of each depth's first row
}

// mtpShape is what two steps of the depths must share to share a graph. With more
// than few rows it is one depth's.
type mtpShape struct {
	shape
	lo, hi int // depths
	drafts int
}

// join takes the shape of one depth: a graph looks at as many cells of each.
func (sh *mtpShape) join(one shape) {
	if sh.shape.cache == 0 {
		sh.shape = one
	}
	sh.nKV = max(sh.nKV, one.nKV)
}

// mtpStep holds the inputs of such a graph. The depths may stand at different rows
// of their states, so each has a step of its own; tokens belong to the first.
type mtpStep struct {
	*step
	sh     mtpShape
	each   []*step
	hidden *binding.Tensor // [n_embd, N*Seqs]
	at     [][]int         // origins by depth and lane
}

// newStep builds the graph of shape sh on the states of the depths.
func (m *mtp) newStep(states []*cache, sh mtpShape, tap layers.GraphTap) *layers.Step[[]window] {
	nodes := nodesPerLayer + nodesPerDepth*(sh.hi-sh.lo)
	for _, c := range m.each[sh.lo:sh.hi] {
		nodes += c.nodes(sh.shape)
	}
	g := m.trunk.be.NewGraph(nodes)
	g.OnTap = tap
	st := &mtpStep{step: newStep(g, m.each[sh.lo], states[sh.lo], sh.shape), sh: sh}
	st.each = []*step{st.step}
	for d := sh.lo + 1; d < sh.hi; d++ {
		one := &step{config: m.each[d], Inputs: st.Inputs, shape: sh.shape, s: states[d]}
		one.declareFirst(g)
		st.each = append(st.each, one)
	}
	for range st.each {
		st.at = append(st.at, make([]int, sh.rows.Seqs))
	}
	st.hidden = g.Input("hidden", binding.F32, int64(m.cfg.embd), int64(st.N*st.Seqs))
	outs := st.build(g, m.trunk.w, m.w, len(states))
	return &layers.Step[[]window]{Graph: g, Outs: outs, Fill: st.fillWindows()}
}

// build records the chain of depths, of which the file has all.
//
//	res:    drafts times [Seqs] I32
//	hidden: [n_embd, N*Seqs]   what the next depth takes, if there is one
//
// Source: the multi-token prediction of DeepSeek-V3 (2024, section 2.2) with the
// order, norms and states of Inkling's published implementation in vLLM.
func (st *mtpStep) build(g *binding.Graph, trunk *weights, w *mtpWeights, all int) []*binding.Tensor {
	embd, n, seqs := int64(st.embd), int64(st.N), int64(st.Seqs)
	// Tokens of the rows one further on, then of what is drafted behind them.
	ahead := g.Reshape(st.PutMedia(g, st.embed(g, trunk, st.IDs)), embd, n, seqs)
	h := st.hidden
	var outs []*binding.Tensor
	for i, one := range st.each {
		d := st.sh.lo + i
		e := ahead
		if i > 0 {
			e = g.Cont(g.View(ahead, [4]int64{embd, n, seqs, 1}, ahead.Stride(1), ahead.Stride(2), ahead.Stride(3), int64(i)*ahead.Stride(1)))
		}
		h = st.depth(g, one, i, w, h, g.Reshape(e, embd, n*seqs))
		if i >= st.sh.drafts {
			continue
		}
		o := lastRows(g, g.Reshape(h, embd, n, seqs))
		id := g.ArgMax(st.unembed(g, trunk, g.Reshape(g.Cont(o), embd, seqs)))
		outs = append(outs, g.Output(id))
		if d+1 < st.sh.hi {
			ahead = g.Concat(ahead, g.Reshape(st.embed(g, trunk, id), embd, 1, seqs), 1)
		}
	}
	if st.sh.hi < all {
		return append(outs, g.Output(g.Cont(h)))
	}
	g.Expand(h)
	return outs
}

// depth is the i-th depth of the step.
//
//	h:   [n_embd, N*Seqs]   hidden states
//	e:   [n_embd, N*Seqs]   embedded tokens
//	res: [n_embd, N*Seqs]
func (st *mtpStep) depth(g *binding.Graph, one *step, i int, w *mtpWeights, h, e *binding.Tensor) *binding.Tensor {
	d := st.sh.lo + i
	l := w.Depths[d]
	g.On(one.on(0))
	u := product(g, l.Proj, g.Concat(g.RMSNorm(h, l.HNorm, st.eps), g.RMSNorm(e, l.ENorm, st.eps), 0))
	if !one.sliding[0] {
		one.tau = one.scaling(g, func(lane int) int { return st.at[i][lane] + d + 1 })
	}
	s := one.block(g, l.Block, 0, stream{x: u}, w.ChainNorm)
	if h = s.x; w.ChainNorm != nil {
		h = one.norm(g, s, w.ChainNorm)
	}
	g.Tap(h, "mtp_hidden", d)
	return h
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
	return func(ws []window) {
		bs := make([]models.Batch, len(ws))
		for i := range ws {
			lane := ws[i].Seq - st.Lo
			bs[i] = ws[i].Batch
			for d := range st.at {
				st.at[d][lane] = ws[i].origins[d]
			}
			copy(hidden[lane*per:], ws[i].hidden)
		}
		lanes := slices.Clone(st.Fill(bs, st.s))
		for _, one := range st.each {
			for i := range lanes {
				if b := lanes[i].Batch; b != nil {
					lanes[i].Pos = one.s.Pos(b.Seq)
				}
			}
			for _, f := range one.fills {
				f(lanes)
			}
		}
		st.hidden.SetFloats(hidden)
	}
}
