package inkling

import (
	"errors"
	"fmt"

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
	exec    *layers.Executor[shape, *models.Batch]
	caches  uint64
}

func open(f *gguf.File, p models.Params) (models.Model, error) {
	cfg, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, be: p.Backend, exec: layers.NewExecutor[shape, *models.Batch](p.Backend)}
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

// NewCache makes room for nCtx positions of one sequence.
func (m *Model) NewCache(nCtx int, kv binding.DType) (models.Cache, error) {
	m.caches++
	c, err := newCache(m.be, m.cfg, m.caches, nCtx, kv)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// What one layer adds to a graph, at most: tensors, and tensors more for each
// block of queries that a long prefill is cut into.
const (
	nodesPerLayer = 192
	nodesPerBlock = 16
)

// Forward computes b behind the rows of c.
func (m *Model) Forward(b *models.Batch, c models.Cache, logits []float32) error {
	s, ok := c.(*cache)
	if !ok {
		return errors.New("the cache belongs to another architecture")
	}
	n := len(b.Tokens)
	switch {
	case n == 0 || len(b.Outputs) == 0:
		return errors.New("a step needs a row and an output")
	case s.pos+n > s.size:
		return fmt.Errorf("%d tokens behind %d: %w (%d)", n, s.pos, models.ErrContextFull, s.size)
	case len(logits) != len(b.Outputs)*m.cfg.unpadded:
		return fmt.Errorf("room for %d logits, want %d", len(logits), len(b.Outputs)*m.cfg.unpadded)
	case len(b.Media) != len(b.MediaRows)*m.cfg.embd:
		return fmt.Errorf("%d media values for %d rows of %d", len(b.Media), len(b.MediaRows), m.cfg.embd)
	}
	if err := inRange(b.Tokens, m.cfg.vocab, "token"); err != nil {
		return err
	}
	if err := inRange(b.MediaRows, n, "media row"); err != nil {
		return err
	}
	if err := inRange(b.Outputs, n, "output row"); err != nil {
		return err
	}
	if m.OnTap != nil {
		return m.forwardTapped(b, s, logits)
	}
	sh := m.cfg.shapeOf(s, b)
	err := m.exec.Run(sh, n <= few, b, logits, func() *layers.Step[*models.Batch] { return m.newStep(s, sh, nil) })
	if err != nil {
		return err
	}
	s.pos += n
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
func (m *Model) newStep(s *cache, sh shape, onTap func(*binding.Graph, *binding.Tensor, string, int)) *layers.Step[*models.Batch] {
	blocks := op.WindowBlocks(int64(sh.n), int64(max(sh.nKV, m.cfg.slidingWindow+sh.n)), int64(m.cfg.nHead))
	g := m.be.NewGraph((nodesPerLayer+nodesPerBlock*int(blocks))*m.cfg.blockCount + nodesPerLayer)
	g.OnTap = onTap
	st := newStep(g, m.cfg, s, sh)
	out := g.Output(st.build(g, m.w))
	return &layers.Step[*models.Batch]{Graph: g, Out: out, Fill: func(b *models.Batch) {
		for _, f := range st.fills {
			f(b)
		}
	}}
}

// forwardTapped is Forward on a graph of its own that keeps every named result.
func (m *Model) forwardTapped(b *models.Batch, s *cache, logits []float32) error {
	type tap struct {
		t     *binding.Tensor
		name  string
		layer int
	}
	var taps []tap
	exec := layers.NewExecutor[shape, *models.Batch](m.be)
	defer exec.Close()
	sh := m.cfg.shapeOf(s, b)
	err := exec.Run(sh, false, b, logits, func() *layers.Step[*models.Batch] {
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
	s.pos += len(b.Tokens)
	return nil
}

// Close frees the model. Its caches must be closed before.
func (m *Model) Close() {
	m.exec.Close()
	m.derived.Close()
	m.own.Close()
}
