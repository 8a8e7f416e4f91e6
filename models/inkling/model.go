package inkling

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
	mtp     *mtp // nil without
}

func open(f *gguf.File, p models.Params) (models.Model, error) {
	if isMTP(f) {
		return nil, &models.UnsupportedError{File: f.Path(), Msg: "holds layers for multi-token prediction, not a text model; name the text file and give this one by --mtp"}
	}
	all, err := readConfig(f)
	if err != nil {
		return nil, err
	}
	cfg := all.trunk()
	cfg.devices = p.LayerDevices(cfg.blockCount)
	m := &Model{cfg: cfg, be: p.Backend, exec: layers.NewExecutor[shape, []models.Batch](p.Backend)}
	if m.w, m.own, err = bindWeights(f, cfg, p, all.ahead); err != nil {
		return nil, err
	}
	if m.derived, err = derive(p.Backend, cfg, m.w.Layers); err != nil {
		m.own.Close()
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	if p.MTP == nil && all.ahead > 0 && p.MTPDepths > 0 {
		p.MTP = f
	}
	if p.MTP != nil {
		if m.mtp, err = openMTP(p.MTP, m, p); err != nil {
			m.Close()
			return nil, err
		}
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
	c, err := newCache(m.be, m.cfg, m.caches, seqs, size, reach, kv)
	if err != nil {
		return nil, err
	}
	if m.mtp == nil {
		return c, nil
	}
	ahead, err := m.mtp.newCache(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return ahead, nil
}

// What one layer adds to a graph, at most: tensors, and tensors more for each
// block of queries that a long prefill is cut into.
const (
	nodesPerLayer = 192
	nodesPerBlock = 48
)

// Forward computes batches behind the rows of c. Batches of the same few rows
// share one graph, others take one after another.
func (m *Model) Forward(c models.Cache, batches []models.Batch, out models.Outputs) error {
	lim := layers.Limits{Tokens: m.cfg.vocab, Embd: m.cfg.embd, Vocab: m.cfg.unpadded}
	switch s := c.(type) {
	case *cache:
		return layers.Forward(c, lim, few, batches, out, func(bs []models.Batch, out models.Outputs) error {
			return m.run(s, bs, out, nil)
		})
	case *mtpCache:
		return layers.Forward(c, lim, few, batches, out, func(bs []models.Batch, out models.Outputs) error {
			all := s.room(bs)
			if err := m.run(s.cache, bs, out, all); err != nil {
				return err
			}
			s.note(bs, all)
			return nil
		})
	}
	return models.ErrForeignCache
}

// run computes batches that share one graph. all takes the hidden states of all
// rows, if the cache keeps them.
func (m *Model) run(s *cache, bs []models.Batch, out models.Outputs, all []float32) error {
	for _, b := range bs {
		s.begin(b.Seq, len(b.Tokens))
	}
	sh := shapeOf(s, bs, out)
	err := m.exec.RunStep(sh, sh.few(), bs, [][]float32{out.Logits, out.Hidden, all}, m.OnTap, func(tap layers.GraphTap) *layers.Step[[]models.Batch] {
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

// newStep builds the graph of shape sh on the cache s.
func (m *Model) newStep(s *cache, sh shape, tap layers.GraphTap) *layers.Step[[]models.Batch] {
	g := m.be.NewGraph(m.cfg.nodes(sh) + nodesPerLayer)
	g.OnTap = tap
	st := newStep(g, m.cfg, s, sh)
	outs := st.build(g, m.w)
	return &layers.Step[[]models.Batch]{Graph: g, Outs: outs, Fill: st.filler()}
}

// nodes bounds the tensors of the layers in a graph.
func (c *config) nodes(sh shape) int {
	if sh.few() {
		return nodesPerLayer * c.blockCount
	}
	blocks := int64(0) // that attention over many rows is cut into in one layer
	for i, sliding := range c.sliding {
		nKV := sh.nKV
		if sliding {
			nKV = roundUp(c.slidingWindow-1+sh.rows.N, op.SpanPad)
		}
		for _, of := range []func(dh, nHead, nHeadKV, nQ, nKV int64) int64{op.BandWindowBlocks, op.BandSpansBlocks} {
			blocks = max(blocks, of(int64(c.headDimOf(i)), int64(c.nHead), int64(c.nHeadKV[i]), int64(sh.rows.N), int64(nKV)))
		}
	}
	return (nodesPerLayer + nodesPerBlock*int(blocks)) * c.blockCount
}

// ComputeBytes measures the graph of the last rows rows of a full cache.
func (m *Model) ComputeBytes(c models.Cache, rows int) (int64, error) {
	extra := int64(0)
	s, ok := c.(*cache)
	if with, is := c.(*mtpCache); is {
		var err error
		if extra, err = with.computeBytes(rows); err != nil {
			return 0, err
		}
		s, ok = with.cache, true
	}
	if !ok {
		return 0, models.ErrForeignCache
	}
	rows = min(rows, s.size)
	sh := shape{cache: s.id, rows: layers.Rows{N: rows, Seqs: 1, Outs: 1, Logits: true}, nKV: roundUp(s.size+1, cellPad)}
	if !sh.few() {
		sh.pos = s.size - rows
	}
	n, err := layers.Measure(func() *layers.Step[[]models.Batch] { return m.newStep(s, sh, nil) })
	return n + extra, err
}

// Splits is the number of parts that the kept graphs are cut into, at most; see binding.Graph.Splits.
func (m *Model) Splits() int { return m.exec.Splits() }

// WeightBytes is the size of all tensors of the file, and of the layers for
// multi-token prediction.
func (m *Model) WeightBytes() int64 { return m.own.Size() + m.mtp.weightBytes() }

// GraphBytes is the memory that intermediate results hold now.
func (m *Model) GraphBytes() int64 { return m.exec.Bytes() + m.mtp.graphBytes() }

// Close frees the model. Its caches must be closed before.
func (m *Model) Close() {
	m.mtp.close()
	m.exec.Close()
	m.derived.Close()
	m.own.Close()
}
