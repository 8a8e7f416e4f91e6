package inkling

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// Model is the text decoder on one device.
type Model struct {
	// OnTap, if set, is called with every named intermediate result of the next
	// steps, whose memory is then kept: for comparing with reference values.
	OnTap func(name string, layer int, shape [4]int64, values []float32)

	cfg     *config
	be      *binding.Backend
	w       *weights
	own     *models.Weights
	derived *binding.Memory
	exec    *layers.Executor[shape, []models.Batch]
	caches  uint64
}

func open(f *gguf.File, p models.Params) (models.Model, error) {
	cfg, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, be: p.Backend, exec: layers.NewExecutor[shape, []models.Batch](p.Backend)}
	if m.w, m.own, err = bindWeights(f, cfg, p); err != nil {
		return nil, err
	}
	if m.derived, err = m.w.derive(p.Backend, cfg); err != nil {
		m.own.Close()
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return m, nil
}

// Config returns what programs need to know of the model.
func (m *Model) Config() models.Config {
	c := m.cfg
	return models.Config{Arch: "inkling", Embd: c.embd, Vocab: c.unpadded, Context: c.contextLength, Layers: c.blockCount}
}

// NewCache makes room for seqs sequences of size positions each.
func (m *Model) NewCache(seqs, size int, kv binding.DType) (models.Cache, error) {
	m.caches++
	c, err := newCache(m.be, m.cfg, m.caches, seqs, size, kv)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// What one layer adds to a graph, at most: tensors, and tensors more for each
// block of queries that a long prefill is cut into.
const (
	nodesPerLayer = 192
	nodesPerBlock = 48
)

// Forward computes batches behind the rows of c. Batches of the same few rows
// share one graph, others take one after another.
func (m *Model) Forward(c models.Cache, batches []models.Batch, logits []float32) error {
	s, ok := c.(*cache)
	if !ok {
		return errors.New("the cache belongs to another architecture")
	}
	outs, alike := 0, true
	for i := range batches {
		b := &batches[i]
		if err := m.check(s, b); err != nil {
			return err
		}
		if slices.ContainsFunc(batches[:i], func(o models.Batch) bool { return o.Seq == b.Seq }) {
			return fmt.Errorf("sequence %d is twice in one step", b.Seq)
		}
		outs += len(b.Outputs)
		alike = alike && len(b.Tokens) == len(batches[0].Tokens) && len(b.Tokens) <= few
	}
	if len(batches) == 0 {
		return errors.New("a step without rows")
	}
	if len(logits) != outs*m.cfg.unpadded {
		return fmt.Errorf("room for %d logits, want %d", len(logits), outs*m.cfg.unpadded)
	}
	if alike {
		return m.run(s, batches, logits)
	}
	for i := range batches {
		n := len(batches[i].Outputs) * m.cfg.unpadded
		if err := m.run(s, batches[i:i+1], logits[:n]); err != nil {
			return err
		}
		logits = logits[n:]
	}
	return nil
}

// check finds what would not fit the cache or the graph.
func (m *Model) check(s *cache, b *models.Batch) error {
	n := len(b.Tokens)
	if b.Seq < 0 || b.Seq >= len(s.seqs) {
		return fmt.Errorf("sequence %d is outside 0 to %d", b.Seq, len(s.seqs)-1)
	}
	switch pos := s.seqs[b.Seq].pos; {
	case n == 0 || len(b.Outputs) == 0:
		return errors.New("a step needs a row and an output")
	case pos+n > s.size:
		return fmt.Errorf("%d tokens behind %d: %w (%d)", n, pos, models.ErrContextFull, s.size)
	case len(b.Media) != len(b.MediaRows)*m.cfg.embd:
		return fmt.Errorf("%d media values for %d rows of %d", len(b.Media), len(b.MediaRows), m.cfg.embd)
	}
	return errors.Join(inRange(b.Tokens, m.cfg.vocab, "token"), inRange(b.MediaRows, n, "media row"), inRange(b.Outputs, n, "output row"))
}

// run computes batches that share one graph.
func (m *Model) run(s *cache, bs []models.Batch, logits []float32) error {
	for _, b := range bs {
		s.begin(b.Seq, len(b.Tokens))
	}
	sh := m.cfg.shapeOf(s, bs)
	var err error
	if m.OnTap != nil {
		err = m.runTapped(s, sh, bs, logits)
	} else {
		err = m.exec.Run(sh, sh.few(), bs, logits, func() *layers.Step[[]models.Batch] { return m.newStep(s, sh, nil) })
	}
	if err != nil {
		return err
	}
	for _, b := range bs {
		s.seqs[b.Seq].pos += len(b.Tokens)
	}
	return nil
}

func inRange(ids []int32, n int, what string) error {
	for _, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("%s %d is outside 0 to %d", what, id, n-1)
		}
	}
	return nil
}

// newStep builds the graph of shape sh on the cache s.
func (m *Model) newStep(s *cache, sh shape, onTap func(*binding.Graph, *binding.Tensor, string, int)) *layers.Step[[]models.Batch] {
	g := m.be.NewGraph((nodesPerLayer+nodesPerBlock*m.windowBlocks(sh))*m.cfg.blockCount + nodesPerLayer)
	g.OnTap = onTap
	st := newStep(g, m.cfg, s, sh)
	out := g.Output(st.build(g, m.w))
	lanes, rows := make([]lane, sh.seqs), make([]int32, 0, sh.outs)
	return &layers.Step[[]models.Batch]{Graph: g, Out: out, Fill: func(bs []models.Batch) {
		st.assign(lanes, bs)
		for _, f := range st.fills {
			f(lanes)
		}
		st.fillOutputs(bs, rows)
	}}
}

// windowBlocks bounds the blocks that attention over many rows is cut into in one layer.
func (m *Model) windowBlocks(sh shape) int {
	if sh.few() {
		return 0
	}
	most := int64(0)
	for i, sliding := range m.cfg.sliding {
		nKV := sh.nKV
		if sliding {
			nKV = m.cfg.slidingWindow - 1 + sh.n
		}
		most = max(most, op.BandWindowBlocks(int64(m.cfg.headDimOf(i)), int64(m.cfg.nHead), int64(m.cfg.nHeadKV[i]), int64(sh.n), int64(nKV)))
	}
	return int(most)
}

// ComputeBytes measures the graph of the last rows rows of a full cache.
func (m *Model) ComputeBytes(c models.Cache, rows int) (n int64, err error) {
	s, ok := c.(*cache)
	if !ok {
		return 0, errors.New("the cache belongs to another architecture")
	}
	rows = min(rows, s.size)
	sh := shape{cache: s.id, n: rows, seqs: 1, outs: 1, nKV: roundUp(s.size+1, cellPad)}
	if !sh.few() {
		sh.pos = s.size - rows
	}
	err = binding.Guard(func() {
		step := m.newStep(s, sh, nil)
		n = step.Graph.Measure()
		step.Graph.Close()
	})
	return n, err
}

// runTapped is run on a graph of its own that keeps every named result.
func (m *Model) runTapped(s *cache, sh shape, bs []models.Batch, logits []float32) error {
	type tap struct {
		t     *binding.Tensor
		name  string
		layer int
	}
	var taps []tap
	exec := layers.NewExecutor[shape, []models.Batch](m.be)
	defer exec.Close()
	err := exec.Run(sh, false, bs, logits, func() *layers.Step[[]models.Batch] {
		return m.newStep(s, sh, func(g *binding.Graph, t *binding.Tensor, name string, layer int) {
			taps = append(taps, tap{g.Output(g.Cont(t)), name, layer})
		})
	})
	if err != nil {
		return err
	}
	for _, t := range taps {
		values := make([]float32, t.t.Elems())
		if t.t.Type() == binding.I32 {
			ids := make([]int32, len(values))
			t.t.Int32s(ids)
			for i, id := range ids {
				values[i] = float32(id)
			}
		} else {
			t.t.Floats(values)
		}
		m.OnTap(t.name, t.layer, t.t.Shape(), values)
	}
	return nil
}

// Close frees the model. Its caches must be closed before.
func (m *Model) Close() {
	m.exec.Close()
	m.derived.Close()
	m.own.Close()
}
