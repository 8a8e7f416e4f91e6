// Package bigram describes checkpoints of the made-up bigram architecture to the
// converter.
package bigram

import (
	"fmt"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/token"
)

func init() { convert.Register(arch{}) }

// arch implements [convert.Arch].
type arch struct{}

// Name returns "bigram", the name of this folder.
func (arch) Name() string { return "bigram" }

// ModelTypes returns the one model_type.
func (arch) ModelTypes() []string { return []string{"bigram"} }

// Refuses knows no relatives of the architecture.
func (arch) Refuses(string) string { return "" }

// Optional reports that a checkpoint is whole or nothing.
func (arch) Optional(string) bool { return false }

// config is config.json, in its words.
type config struct {
	hiddenSize, intermediateSize, numHiddenLayers, vocabSize, maxPositions int64
	rmsNormEps                                                             float64
}

// parseConfig reads and bounds the config: its numbers become sizes of memory.
func parseConfig(f *convert.Fields) (config, error) {
	c := config{
		hiddenSize:       f.Int("hidden_size"),
		intermediateSize: f.Int("intermediate_size"),
		numHiddenLayers:  f.Int("num_hidden_layers"),
		vocabSize:        f.Int("vocab_size"),
		maxPositions:     f.Int("max_position_embeddings"),
		rmsNormEps:       f.Float("rms_norm_eps"),
	}
	f.Positive(map[string]int64{
		"hidden_size": c.hiddenSize, "intermediate_size": c.intermediateSize,
		"num_hidden_layers": c.numHiddenLayers, "vocab_size": c.vocabSize, "max_position_embeddings": c.maxPositions,
	})
	f.AtMost("num_hidden_layers", c.numHiddenLayers, 1024)
	f.MustBeStr("hidden_act", "silu")
	return c, f.Err()
}

// Plan describes the one output file.
func (arch) Plan(src *convert.Source) (*convert.Plan, error) {
	c, err := parseConfig(src.Config)
	if err != nil {
		return nil, err
	}
	p := &planner{convert.NewPlanner(src), c}
	tensors := p.tensors()
	if err := p.Err(); err != nil {
		return nil, err
	}
	vocabulary, err := p.vocabulary()
	if err != nil {
		return nil, err
	}
	text := convert.File{Kind: convert.Text, Arch: "bigram", KV: append(p.keys(), vocabulary...), Tensors: tensors}
	return &convert.Plan{Files: []convert.File{text}, Notes: p.Notes}, nil
}

// planner collects the parts of a plan.
type planner struct {
	convert.Planner
	c config
}

// tensors lists the tensors of the file with those of the checkpoint that they are
// made of. Err has what is missing, has another shape, or is left over.
func (p *planner) tensors() []convert.Tensor {
	h, f, v := p.c.hiddenSize, p.c.intermediateSize, p.c.vocabSize
	list := []convert.Tensor{p.find("token_embd.weight", "model.embed_tokens.weight", v, h)}
	for i := range p.c.numHiddenLayers {
		blk, layer := fmt.Sprintf("blk.%d.", i), fmt.Sprintf("model.layers.%d.", i)
		norm := p.find(blk+"ffn_norm.weight", layer+"norm.weight", h)
		norm.F32 = true
		// One tensor of the checkpoint has the rows of gate and up, one after the other.
		gate, up := convert.Blocked(f)
		list = append(list, norm,
			p.rows(blk+"ffn_gate.weight", layer+"mlp.gate_up_proj.weight", gate),
			p.rows(blk+"ffn_up.weight", layer+"mlp.gate_up_proj.weight", up),
			p.find(blk+"ffn_down.weight", layer+"mlp.down_proj.weight", h, f))
	}
	norm := p.find("output_norm.weight", "model.norm.weight", h)
	norm.F32 = true
	return append(list, norm, p.find("output.weight", "lm_head.weight", v, h))
}

// find looks up a tensor that keeps its data; shape is the checkpoint's, row-major.
func (p *planner) find(name, source string, shape ...int64) convert.Tensor {
	return p.Match.Find(name, convert.Reversed(shape), convert.Spelling{Name: source, Shape: shape})
}

// rows looks up half of a tensor [2·ff, hidden].
func (p *planner) rows(name, source string, rows convert.RowMap) convert.Tensor {
	h, f := p.c.hiddenSize, p.c.intermediateSize
	return p.Match.Find(name, []int64{h, f}, convert.Spelling{Name: source, Shape: []int64{2 * f, h}, Rows: rows})
}

// keys returns what the runtime reads of the config.
func (p *planner) keys() []convert.KV {
	return []convert.KV{
		{Key: "bigram.block_count", Value: uint32(p.c.numHiddenLayers)},
		{Key: "bigram.context_length", Value: uint32(p.c.maxPositions)},
		{Key: "bigram.embedding_length", Value: uint32(p.c.hiddenSize)},
		{Key: "bigram.feed_forward_length", Value: uint32(p.c.intermediateSize)},
		{Key: "bigram.vocab_size", Value: uint32(p.c.vocabSize)},
		{Key: "bigram.attention.layer_norm_rms_epsilon", Value: float32(p.c.rmsNormEps)},
	}
}

// vocabulary reads tokenizer.json.
func (p *planner) vocabulary() ([]convert.KV, error) {
	v, err := token.LoadTokenizerJSON(p.Src.Path("tokenizer.json"))
	if err != nil {
		return nil, err
	}
	return []convert.KV{
		{Key: token.KeyModel, Value: token.ModelGPT2},
		{Key: token.KeyPre, Value: v.Pre()},
		{Key: token.KeyTokens, Value: v.Tokens()},
		{Key: token.KeyTypes, Value: v.Types()},
		{Key: token.KeyMerges, Value: v.Merges()},
	}, nil
}
