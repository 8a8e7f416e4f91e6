package kimik25

import (
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
	OnTap layers.OnTap

	cfg     *config
	be      *binding.Backend
	w       *weights
	own     *models.Weights
	derived *binding.Memory
	exec    *layers.Executor[shape, []models.Batch]
	caches  uint64
}

func open(f *gguf.File, p models.Params) (models.Model, error) {
	if p.MTP != nil {
		return nil, &models.UnsupportedError{File: p.MTP.Path(), Msg: "layers for multi-token prediction are not supported for this architecture; leave them out by --mtp off"}
	}
	cfg, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	cfg.devices = p.LayerDevices(cfg.blockCount)
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
	return models.Config{Arch: "deepseek2", Embd: c.embd, Vocab: c.vocab, Context: c.contextLength, Layers: c.blockCount}
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

// Forward computes batches behind the rows of c. Batches of the same few rows
// share one graph, others take one after another.
func (m *Model) Forward(c models.Cache, batches []models.Batch, out models.Outputs) error {
	s, ok := c.(*cache)
	if !ok {
		return models.ErrForeignCache
	}
	lim := layers.Limits{Tokens: m.cfg.vocab, Embd: m.cfg.embd, Vocab: m.cfg.vocab}
	return layers.Forward(c, lim, few, batches, out, func(bs []models.Batch, out models.Outputs) error {
		return m.run(s, bs, out)
	})
}

// run computes batches that share one graph.
func (m *Model) run(s *cache, bs []models.Batch, out models.Outputs) error {
	for _, b := range bs {
		s.begin(b.Seq, len(b.Tokens))
	}
	sh := shapeOf(s, bs, out)
	err := m.exec.RunStep(sh, sh.few(), bs, [][]float32{out.Logits, out.Hidden}, m.OnTap, func(tap layers.GraphTap) *layers.Step[[]models.Batch] {
		return m.newStep(s, sh, tap)
	})
	if err != nil {
		return err
	}
	for _, b := range bs {
		s.seqs[b.Seq].pos += len(b.Tokens)
	}
	return nil
}

// What one layer adds to a graph, at most: tensors, tensors more for each
// expert that a token uses, and for each block of queries that a long prefill
// is cut into.
const (
	nodesPerLayer  = 128
	nodesPerExpert = 2
	nodesPerBlock  = 16
)

// newStep builds the graph of shape sh on the cache s.
func (m *Model) newStep(s *cache, sh shape, tap layers.GraphTap) *layers.Step[[]models.Batch] {
	blocks := op.LatentBlocks(int64(sh.rows.N), int64(sh.nKV), int64(m.cfg.nHead), int64(sh.rows.Seqs))
	perLayer := nodesPerLayer + nodesPerExpert*m.cfg.nExpertUsed + nodesPerBlock*int(blocks)
	g := m.be.NewGraph(perLayer*m.cfg.blockCount + nodesPerLayer)
	g.OnTap = tap
	st := newStep(g, m.cfg, s, sh)
	outs := st.build(g, m.w)
	return &layers.Step[[]models.Batch]{Graph: g, Outs: outs, Fill: st.filler()}
}

// ComputeBytes measures the graph of the last rows rows of a full cache.
func (m *Model) ComputeBytes(c models.Cache, rows int) (int64, error) {
	s, ok := c.(*cache)
	if !ok {
		return 0, models.ErrForeignCache
	}
	sh := shape{cache: s.id, rows: layers.Rows{N: min(rows, s.size), Seqs: 1, Outs: 1, Logits: true}, nKV: roundUp(s.size+1, cellPad)}
	return layers.Measure(func() *layers.Step[[]models.Batch] { return m.newStep(s, sh, nil) })
}

// Splits is the number of parts that the kept graphs are cut into, at most; see binding.Graph.Splits.
func (m *Model) Splits() int { return m.exec.Splits() }

// WeightBytes is the size of all tensors of the file.
func (m *Model) WeightBytes() int64 { return m.own.Size() }

// GraphBytes is the memory that intermediate results hold now.
func (m *Model) GraphBytes() int64 { return m.exec.Bytes() }

// Close frees the model. Its caches must be closed before.
func (m *Model) Close() {
	m.exec.Close()
	m.derived.Close()
	m.own.Close()
}
