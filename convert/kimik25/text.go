package kimik25

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// names are the prefixes that tensors of one spelling have.
type names struct {
	text string // layers, norms and embedding
	head string // full name of the unembedding
}

// Spellings of the text model: as published with a tower, as a part of the port's
// multimodal class, and alone, which is the same in both.
var (
	publishedText = names{"language_model.model.", "language_model.lm_head.weight"}
	portText      = names{"model.language_model.", "lm_head.weight"}
	textOnly      = names{"model.", "lm_head.weight"}
)

// textNames returns the spelling of the text model in this checkpoint.
func (p *planner) textNames() names {
	switch {
	case p.Src.HasPrefix(portText.text):
		return portText
	case p.Src.HasPrefix("model.layers.") || p.Src.HasPrefix("model.embed_tokens."):
		return textOnly
	}
	return publishedText
}

// renamed is a tensor that changes its name and nothing else. The shape is
// torch's: row-major, [out, in] for a matrix.
type renamed struct {
	gguf, source string // below the layer, or the top
	shape        []int64
	f32          bool // beyond what the converter keeps F32 anyway
}

// textTensors lists the tensors of the text file, layer after layer.
func (p *planner) textTensors() []convert.Tensor {
	t := &p.c.text
	n := p.textNames()
	matrix := []int64{t.vocabSize, t.hiddenSize}
	out := []convert.Tensor{p.rename("", n.text, renamed{"token_embd.weight", "embed_tokens.weight", matrix, false})}
	for il := range t.numHiddenLayers {
		gguf, layer := fmt.Sprintf("blk.%d.", il), fmt.Sprintf("%slayers.%d.", n.text, il)
		for _, r := range t.attentionTensors() {
			out = append(out, p.rename(gguf, layer, r))
		}
		out = append(out, p.latentTensors(gguf, layer)...)
		if il < t.denseLayers {
			for _, r := range mlp("mlp.", "", t.hiddenSize, t.denseSize) {
				out = append(out, p.rename(gguf, layer, r))
			}
		} else {
			out = append(out, p.expertTensors(gguf, layer)...)
		}
	}
	out = append(out, p.rename("", n.text, renamed{"output_norm.weight", "norm.weight", []int64{t.hiddenSize}, true}))
	if !p.Src.Has(n.head) && !p.c.untied {
		p.Notef("the output is tied to the embedding: there is no %s", n.head)
		return out
	}
	if p.c.tied && p.Src.Has(n.head) {
		p.Notef("tie_word_embeddings is true, but the checkpoint has %s, which is used", n.head)
	}
	return append(out, p.Match.Find("output.weight", convert.Reversed(matrix), convert.Spelling{Name: n.head, Shape: matrix}))
}

// rename looks up a tensor that keeps its data. gguf and layer go before the names.
func (p *planner) rename(gguf, layer string, r renamed) convert.Tensor {
	t := p.Match.Find(gguf+r.gguf, convert.Reversed(r.shape), convert.Spelling{Name: layer + r.source, Shape: r.shape})
	t.F32 = r.f32
	return t
}

// attentionTensors lists the tensors of a layer's attention and norms that keep
// their data. Rotary pairs stay interleaved.
func (t *textConfig) attentionTensors() []renamed {
	h, heads := t.hiddenSize, t.numAttentionHeads
	q := heads * (t.nopeDim + t.ropeDim)
	list := []renamed{
		{"attn_norm.weight", "input_layernorm.weight", []int64{h}, true},
		{"ffn_norm.weight", "post_attention_layernorm.weight", []int64{h}, true},
		{"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", []int64{t.kvLoraRank + t.ropeDim, h}, false},
		{"attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", []int64{t.kvLoraRank}, true},
		{"attn_output.weight", "self_attn.o_proj.weight", []int64{h, heads * t.valueDim}, false},
	}
	if t.qLoraRank == 0 {
		return append(list, renamed{"attn_q.weight", "self_attn.q_proj.weight", []int64{q, h}, false})
	}
	return append(list,
		renamed{"attn_q_a.weight", "self_attn.q_a_proj.weight", []int64{t.qLoraRank, h}, false},
		renamed{"attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", []int64{t.qLoraRank}, true},
		renamed{"attn_q_b.weight", "self_attn.q_b_proj.weight", []int64{q, t.qLoraRank}, false})
}

// latentTensors splits kv_b_proj, which makes keys and values of the latent. Its
// rows are, head by head, those of the key part and those of the value. The key
// part is stored transposed: at run time it is applied to the query.
func (p *planner) latentTensors(gguf, layer string) []convert.Tensor {
	t := &p.c.text
	name, slab := layer+"self_attn.kv_b_proj.weight", t.nopeDim+t.valueDim
	shape := []int64{t.numAttentionHeads * slab, t.kvLoraRank}
	keys := convert.Tensor{Name: gguf + "attn_k_b.weight", Dims: []int64{t.nopeDim, t.kvLoraRank, t.numAttentionHeads}}
	for head := range t.numAttentionHeads {
		keys.Parts = append(keys.Parts, p.Match.Part(t.kvLoraRank, convert.Spelling{
			Name: name, Shape: shape, Rows: convert.Slice(head*slab, t.nopeDim), Transposed: true,
		}))
	}
	values := p.Match.Find(gguf+"attn_v_b.weight", []int64{t.kvLoraRank, t.valueDim, t.numAttentionHeads}, convert.Spelling{
		Name: name, Shape: shape, Rows: convert.RowMap{Slab: slab, Count: t.valueDim, First: t.nopeDim, Step: 1},
	})
	return []convert.Tensor{keys, values}
}

// mlp lists a gated feed-forward block of f hidden units. suffix goes between the
// GGUF name and .weight.
func mlp(source, suffix string, h, f int64) []renamed {
	return []renamed{
		{"ffn_gate" + suffix + ".weight", source + "gate_proj.weight", []int64{f, h}, false},
		{"ffn_up" + suffix + ".weight", source + "up_proj.weight", []int64{f, h}, false},
		{"ffn_down" + suffix + ".weight", source + "down_proj.weight", []int64{h, f}, false},
	}
}

// expertTensors lists the feed-forward part of a layer with experts.
func (p *planner) expertTensors(gguf, layer string) []convert.Tensor {
	t := &p.c.text
	h, f, e := t.hiddenSize, t.expertSize, t.experts
	out := []convert.Tensor{
		p.rename(gguf, layer, renamed{"ffn_gate_inp.weight", "mlp.gate.weight", []int64{e, h}, true}),
	}
	if t.bias {
		out = append(out, p.rename(gguf, layer, renamed{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias", []int64{e}, true}))
	}
	gate, up := convert.Blocked(f)
	out = append(out,
		p.bank(gguf+"ffn_gate_exps.weight", layer, "gate_proj", "gate_up_proj", f, h, []int64{e, 2 * f, h}, gate),
		p.bank(gguf+"ffn_up_exps.weight", layer, "up_proj", "gate_up_proj", f, h, []int64{e, 2 * f, h}, up),
		p.bank(gguf+"ffn_down_exps.weight", layer, "down_proj", "down_proj", h, f, []int64{e, h, f}, convert.RowMap{}))
	for _, r := range mlp("mlp.shared_experts.", "_shexp", h, f*t.sharedExperts) {
		out = append(out, p.rename(gguf, layer, r))
	}
	return out
}

// bank looks up one matrix [rows, cols] of all experts: a tensor for each expert
// as published, or rows of one stack as the port saves them.
func (p *planner) bank(name, layer, single, stack string, rows, cols int64, shape []int64, of convert.RowMap) convert.Tensor {
	experts := p.c.text.experts
	t := convert.Tensor{Name: name, Dims: []int64{cols, rows, experts}}
	if stack = layer + "mlp.experts." + stack; p.Src.Has(stack) {
		return p.Match.Find(name, t.Dims, convert.Spelling{Name: stack, Shape: shape, Rows: of})
	}
	for e := range experts {
		t.Parts = append(t.Parts, p.Match.Part(rows, convert.Spelling{
			Name: fmt.Sprintf("%smlp.experts.%d.%s.weight", layer, e, single), Shape: []int64{rows, cols},
		}))
	}
	return t
}

// isMTP reports whether a tensor belongs to the layers for multi-token prediction
// by its name alone.
func isMTP(name string) bool {
	return strings.HasPrefix(name, "mtp.") || strings.HasPrefix(name, "model.mtp.")
}

// Optional reports that the layers for multi-token prediction need not be there.
func (arch) Optional(tensor string) bool { return isMTP(tensor) }

// computed end the names of tables that some checkpoints carry although every
// reader computes them: rotary frequencies and the tower's time rows.
var computed = []string{".rotary_emb.inv_freq", ".pos_emb.time_weight"}

// skipRest leaves out tables and the layers for multi-token prediction, which are
// numbered on from those of the trunk.
func (p *planner) skipRest() {
	layers, mtp := p.textNames().text+"layers.", 0
	for _, name := range p.Src.Weights.Names() {
		if slices.ContainsFunc(computed, func(s string) bool { return strings.HasSuffix(name, s) }) {
			p.Match.Skip(name)
			continue
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(name, layers), ".")
		il, err := strconv.ParseInt(number, 10, 32)
		beyond := err == nil && strings.HasPrefix(name, layers) && il >= p.c.text.numHiddenLayers
		if beyond || isMTP(name) {
			p.Match.Skip(name)
			mtp++
		}
	}
	if mtp > 0 {
		p.Notef("the layers for multi-token prediction (%d tensors) are left out", mtp)
	}
}
