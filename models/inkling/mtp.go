package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
	"github.com/inkling-go/inkling/models/layers"
)

// maxDepths bounds the layers for multi-token prediction that are used: twice
// as many rows are computed for a draft of all, and these must be few.
const maxDepths = few / 2

// mtp are layers for multi-token prediction. Depth d at row i combines a hidden
// state of row i with token i+d+1 and predicts token i+d+2: depth 0 takes what
// the model's final norm gave, each next one the output of the one before.
type mtp struct {
	trunk *Model
	cfg   *config   // of the depths, as layers of a model
	each  []*config // of each, as a model of one layer
	w     *mtpWeights
	own   *models.Weights

	derived *binding.Memory
	exec    *layers.Executor[mtpShape, []window]
	onTap   layers.OnTap
}

// mtpWeights are the tensors of the file. The depths are its blocks; in a model's
// own file they follow the model's.
type mtpWeights struct {
	Depths    []*depth        `gguf:"blk"`
	ChainNorm *binding.Tensor `gguf:"nextn_chain_norm.weight,optional,f32" ne:"n_embd"`
}

// depth is a layer and what makes its input of a hidden state and a token.
type depth struct {
	HNorm *binding.Tensor `gguf:"nextn.hnorm.weight,f32" ne:"n_embd"`
	ENorm *binding.Tensor `gguf:"nextn.enorm.weight,f32" ne:"n_embd"`
	Proj  *binding.Tensor `gguf:"nextn.eh_proj.weight" ne:"2*n_embd,n_embd"` // hidden half first
	Block *layer          `gguf:""`
}

// isMTP reports whether a file holds layers for multi-token prediction and no model.
func isMTP(f *gguf.File) bool {
	_, ok := f.Value(prefix + "nextn_predict_layers")
	return ok && !isText(f)
}

func isText(f *gguf.File) bool {
	_, ok := f.Tensor("token_embd.weight")
	return ok
}

// openMTP loads the first p.MTPDepths depths of f for the model trunk, whose own
// file f may be.
func openMTP(f *gguf.File, trunk *Model, p models.Params) (_ *mtp, err error) {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return nil, err
	}
	if arch != "inkling" || models.OwnDepths(f) == 0 {
		return nil, &models.UnsupportedError{File: f.Path(), Msg: "holds no layers for multi-token prediction (an mtp-*.gguf file of convert-inkling does)"}
	}
	cfg, chain, err := readMTP(f, trunk.cfg)
	if err != nil {
		return nil, err
	}
	first, all := cfg.first, cfg.blockCount
	cfg = cfg.blocks(0, min(all, p.MTPDepths, maxDepths))
	p.Place = p.Place.Behind() // all of it, beside what it goes on from
	cfg.devices = p.LayerDevices(cfg.blockCount)
	m := &mtp{trunk: trunk, cfg: cfg, w: &mtpWeights{Depths: make([]*depth, first)}, exec: layers.NewExecutor[mtpShape, []window](p.Backend)}
	var blocks []*layer
	for i := range cfg.blockCount {
		one := cfg.blocks(i, 1)
		one.devices = cfg.devices[i : i+1]
		m.each = append(m.each, one)
		blocks = append(blocks, newLayer(cfg, i))
		m.w.Depths = append(m.w.Depths, &depth{Block: blocks[i]})
	}
	m.own, err = models.Bind(m.w, f, p, cfg.dims(), func(name string) bool {
		i, ok := blockOf(name)
		return !ok && isText(f) || ok && i < first+all && (i < first || i >= first+cfg.blockCount)
	})
	if err != nil {
		return nil, err
	}
	m.w.Depths = m.w.Depths[first:]
	if m.derived, err = derive(p.Backend, cfg, blocks); err != nil {
		m.own.Close()
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	if chain != (m.w.ChainNorm != nil) {
		m.close()
		return nil, fmt.Errorf("%s: inkling.nextn_chain_norm is %t, but nextn_chain_norm.weight says otherwise", f.Path(), chain)
	}
	return m, nil
}

// blockOf is the number of the block that a tensor belongs to, if it does to one.
func blockOf(tensor string) (i int, ok bool) {
	_, err := fmt.Sscanf(tensor, "blk.%d.", &i)
	return i, err == nil
}

// readMTP reads the keys and compares them with those of the model.
func readMTP(f *gguf.File, trunk *config) (c *config, chain bool, err error) {
	if c, err = readConfig(f); err != nil {
		return nil, false, err
	}
	r := models.NewKeys(f, prefix)
	n := models.OwnDepths(f)
	if !isText(f) && (n != c.blockCount || n != c.denseBlocks) {
		r.Failf("block_count", "%d, and dense_block_count %d, of a file with %d layers for multi-token prediction", c.blockCount, c.denseBlocks, n)
	}
	chain = r.BoolOr("nextn_chain_norm", false)
	for _, k := range []struct {
		key        string
		got, model int
	}{{"embedding_length", c.embd, trunk.embd}, {"unpadded_vocab_size", c.unpadded, trunk.unpadded}} {
		if k.got != k.model {
			r.Failf(k.key, "%d, but the model has %d: the two files are of different models", k.got, k.model)
		}
	}
	if r.Err() != nil {
		return nil, false, r.Err()
	}
	c = c.blocks(c.blockCount-n, n)
	c.denseBlocks, c.contextLength = n, trunk.contextLength
	return c, chain, nil
}

func (m *mtp) weightBytes() int64 {
	if m == nil {
		return 0
	}
	return m.own.Size()
}

func (m *mtp) graphBytes() int64 {
	if m == nil {
		return 0
	}
	return m.exec.Bytes()
}

func (m *mtp) close() {
	if m == nil {
		return
	}
	m.exec.Close()
	m.derived.Close()
	m.own.Close()
}

// MaxDraft is the number of depths that were loaded.
func (m *Model) MaxDraft() int {
	if m.mtp == nil {
		return 0
	}
	return m.mtp.cfg.blockCount
}

// Draft guesses up to n tokens for each element, by the first n depths: those behind
// wait. Sequences that know the same number of rows share a graph.
func (m *Model) Draft(c models.Cache, ds []models.Draft, n int) error {
	s, ok := c.(*mtpCache)
	if !ok {
		return models.ErrForeignCache
	}
	if n < 1 || n > m.MaxDraft() {
		return fmt.Errorf("a draft of %d tokens: want 1 to %d", n, m.MaxDraft())
	}
	s.wanted = n
	groups := map[int][]int{} // elements of ds by the rows of their window
	for i := range ds {
		d := &ds[i]
		d.Guess = d.Guess[:0]
		if err := s.check(d, m.cfg.vocab); err != nil {
			return err
		}
		rows := s.windowRows(d.Seq, n)
		if rows == 0 {
			continue
		}
		if err := s.ready(d.Seq, n, s.Pos(d.Seq)-rows); err != nil {
			return err
		}
		groups[rows] = append(groups[rows], i)
	}
	for rows, group := range groups {
		var ws []window
		for _, i := range group {
			d := &ds[i]
			ws = append(ws, s.draft(d.Seq, rows, n, d.IDs[len(d.IDs)-1]))
		}
		ids, err := s.run(ws, 0, n, n)
		if err != nil {
			return err
		}
		for j, i := range group {
			ds[i].Guess = append(ds[i].Guess, ids[j]...)
		}
	}
	return nil
}

// Follow computes for rows that they lack the depths that the last draft wanted,
// all before the first one.
func (m *Model) Follow(c models.Cache, seqs ...int) error {
	s, ok := c.(*mtpCache)
	if !ok {
		return models.ErrForeignCache
	}
	for _, seq := range seqs {
		if seq < 0 || seq >= s.Seqs() {
			return fmt.Errorf("sequence %d is outside 0 to %d", seq, s.Seqs()-1)
		}
		if err := s.follow(seq, s.wanted, s.Pos(seq)-maxBehind); err != nil {
			return err
		}
	}
	return nil
}
