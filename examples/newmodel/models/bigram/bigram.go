// Package bigram runs the made-up bigram architecture: embedding, feed-forward
// layers, unembedding. A row sees no other row.
package bigram

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

func init() { models.Register("bigram", open) }

// few is the number of rows of a sequence up to which several share a graph.
const few = 16

// weights are the tensors of the file.
type weights struct {
	Embd   *binding.Tensor `gguf:"token_embd.weight" ne:"n_embd,n_vocab"`
	Layers []*layer        `gguf:"blk"`
	Norm   *binding.Tensor `gguf:"output_norm.weight,f32" ne:"n_embd"`
	Output *binding.Tensor `gguf:"output.weight" ne:"n_embd,n_vocab"`
}

// layer is one block.
type layer struct {
	Norm *binding.Tensor `gguf:"ffn_norm.weight,f32" ne:"n_embd"`
	Gate *binding.Tensor `gguf:"ffn_gate.weight" ne:"n_embd,n_ff"`
	Up   *binding.Tensor `gguf:"ffn_up.weight" ne:"n_embd,n_ff"`
	Down *binding.Tensor `gguf:"ffn_down.weight" ne:"n_ff,n_embd"`
}

// Model is the decoder.
type Model struct {
	cfg  models.Config
	eps  float32
	w    *weights
	own  *models.Weights
	on   placement
	exec *layers.Executor[layers.Rows, []models.Batch]
	be   *binding.Backend
}

// placement is the device of each part.
type placement struct {
	embd, output *binding.Backend
	layers       []*binding.Backend
}

func open(f *gguf.File, p models.Params) (models.Model, error) {
	if p.MTP != nil {
		return nil, &models.UnsupportedError{File: p.MTP.Path(), Msg: "bigram has no layers for multi-token prediction"}
	}
	k := models.NewKeys(f, "bigram.")
	m := &Model{
		cfg: models.Config{
			Arch: "bigram", Embd: k.Int("embedding_length", 1), Vocab: k.Int("vocab_size", 1),
			Context: k.Int("context_length", 1), Layers: k.Int("block_count", 1),
		},
		eps: float32(k.Positive("attention.layer_norm_rms_epsilon")),
		w:   &weights{}, be: p.Backend, exec: layers.NewExecutor[layers.Rows, []models.Batch](p.Backend),
	}
	ff := k.Int("feed_forward_length", 1)
	if m.cfg.Layers > 1024 {
		k.Failf("block_count", "%d, want at most 1024", m.cfg.Layers)
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	m.on = placement{p.EmbeddingDevice(), p.OutputDevice(), p.LayerDevices(m.cfg.Layers)}
	for range m.cfg.Layers {
		m.w.Layers = append(m.w.Layers, &layer{})
	}
	var err error
	m.own, err = models.Bind(m.w, f, p, models.Dims{"n_embd": int64(m.cfg.Embd), "n_vocab": int64(m.cfg.Vocab), "n_ff": int64(ff)}, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Config returns what programs need to know of the model.
func (m *Model) Config() models.Config { return m.cfg }

// NewCache makes room for sequences, which is a number each.
func (m *Model) NewCache(seqs, size int, _ binding.DType) (models.Cache, error) {
	return newCache(seqs, size, m.cfg.Context)
}

// Forward computes batches behind the rows of c.
func (m *Model) Forward(c models.Cache, batches []models.Batch, out models.Outputs) error {
	s, ok := c.(*cache)
	if !ok {
		return models.ErrForeignCache
	}
	lim := layers.Limits{Tokens: m.cfg.Vocab, Embd: m.cfg.Embd, Vocab: m.cfg.Vocab}
	return layers.Forward(c, lim, few, batches, out, func(bs []models.Batch, out models.Outputs) error {
		rows := layers.RowsOf(bs, out)
		if err := m.exec.Run(rows, rows.N <= few, bs, [][]float32{out.Logits, out.Hidden}, func() *layers.Step[[]models.Batch] {
			return m.newStep(s, rows)
		}); err != nil {
			return err
		}
		for _, b := range bs {
			s.pos[b.Seq] += len(b.Tokens)
		}
		return nil
	})
}

// newStep builds the graph of a step.
func (m *Model) newStep(s *cache, rows layers.Rows) *layers.Step[[]models.Batch] {
	const perLayer, rest = 8, 16 // tensors, at most
	g := m.be.NewGraph(perLayer*m.cfg.Layers + rest)
	in := layers.NewInputs(g, rows, m.cfg.Embd)
	outs := m.build(g, in)
	return &layers.Step[[]models.Batch]{Graph: g, Outs: outs, Fill: func(bs []models.Batch) { in.Fill(bs, s) }}
}

// build records the decoder.
//
//	ids:    [n]            of in
//	logits: [vocab, outs]
//	hidden: [n_embd, outs]
func (m *Model) build(g *binding.Graph, in *layers.Inputs) []*binding.Tensor {
	g.On(m.on.embd)
	x := in.PutMedia(g, g.GetRows(m.w.Embd, in.IDs)) // [n_embd, n]
	g.Tap(x, "inputs_embeds", -1)
	for i, l := range m.w.Layers {
		g.On(m.on.layers[i])
		x = g.Add(x, layers.SwiGLU(g, l.Gate, l.Up, l.Down, g.RMSNorm(x, l.Norm, m.eps)))
		g.Tap(x, "layer", i)
	}
	g.On(m.on.output)
	x = g.RMSNorm(g.GetRows(x, in.OutRows), m.w.Norm, m.eps) // [n_embd, outs]
	return in.Outputs(g, x, func(x *binding.Tensor) *binding.Tensor { return g.MulMat(m.w.Output, x) })
}

// ComputeBytes measures the graph of rows rows.
func (m *Model) ComputeBytes(c models.Cache, rows int) (int64, error) {
	s, ok := c.(*cache)
	if !ok {
		return 0, models.ErrForeignCache
	}
	r := layers.Rows{N: min(rows, s.size), Seqs: 1, Outs: 1, Logits: true}
	return layers.Measure(func() *layers.Step[[]models.Batch] { return m.newStep(s, r) })
}

// WeightBytes is the size of all tensors.
func (m *Model) WeightBytes() int64 { return m.own.Size() }

// Close frees the model. Its caches must be closed before.
func (m *Model) Close() {
	m.exec.Close()
	m.own.Close()
}
