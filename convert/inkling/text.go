package inkling

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// names are the prefixes that tensors of one spelling have.
type names struct {
	published bool
	text      string // layers, norms and embedding
	head      string // full name of the unembedding
}

// Spellings of the text model: as published, as a part of the port's multimodal
// class, as the port's text-only class, and as MLX's converter nests it.
var (
	publishedText = names{published: true, text: "model.llm.", head: "model.llm.unembed.weight"}
	portText      = names{text: "model.language_model.", head: "lm_head.weight"}
	portTextOnly  = names{text: "model.", head: "lm_head.weight"}
	mlxText       = names{text: "language_model.model.", head: "language_model.lm_head.weight"}
)

// textNames returns the spelling of the text model in this checkpoint.
func (p *planner) textNames() names {
	switch {
	case p.Src.HasPrefix(portText.text):
		return portText
	case p.Src.HasPrefix(mlxText.text):
		return mlxText
	case p.Src.HasPrefix("model.layers.", "model.embed_tokens."):
		return portTextOnly
	}
	return publishedText
}

// renamed is a tensor that changes its name and nothing else. The layouts are
// torch's: row-major, [out, in] for a matrix.
type renamed struct {
	gguf, published, port string // below the layer, or the top
	shape                 []int64
	f32                   bool // beyond what the converter keeps F32 anyway
}

// textTensors lists the tensors of the text file, layer after layer.
func (p *planner) textTensors() []convert.Tensor {
	t := &p.c.text
	n := p.textNames()
	matrix := []int64{t.vocabSize, t.hiddenSize}
	vector := []int64{t.hiddenSize}
	out := []convert.Tensor{
		p.rename(n, "", "", renamed{"token_embd.weight", "embed.weight", "embed_tokens.weight", matrix, false}),
		p.rename(n, "", "", renamed{"token_embd_norm.weight", "embed_norm.weight", "embed_norm.weight", vector, true}),
	}
	p.settleExpertSize(n)
	for il := range t.numHiddenLayers {
		gguf, layer := fmt.Sprintf("blk.%d.", il), fmt.Sprintf("layers.%d.", il)
		out = append(out, p.attention(n, gguf, layer, t.local[il])...)
		if il < t.denseLayers {
			out = append(out, p.denseTensors(n, gguf, layer)...)
		} else {
			out = append(out, p.expertTensors(n, gguf, layer)...)
		}
	}
	return append(out,
		p.rename(n, "", "", renamed{"output_norm.weight", "norm.weight", "norm.weight", vector, true}),
		p.Match.Find("output.weight", convert.Reversed(matrix), convert.Spelling{Name: n.head, Shape: matrix}))
}

// rename looks up a tensor that keeps its data. gguf and layer go before the names.
func (p *planner) rename(n names, gguf, layer string, r renamed) convert.Tensor {
	var spellings []convert.Spelling
	if n.published {
		spellings = []convert.Spelling{{Name: n.text + layer + r.published, Shape: r.shape}}
	} else {
		for _, name := range append([]string{r.port}, mlxNames(r.port)...) {
			spellings = append(spellings, convert.Spelling{Name: n.text + layer + name, Shape: r.shape})
		}
	}
	t := p.Match.Find(gguf+r.gguf, convert.Reversed(r.shape), spellings...)
	t.F32 = r.f32
	return t
}

// attention lists what every layer has, with the sizes of a local or a global one.
func (p *planner) attention(n names, gguf, layer string, local bool) []convert.Tensor {
	list := p.c.text.attentionTensors(local)
	fused := n.text + layer + "self_attn.qkvr_proj.weight"
	var out []convert.Tensor
	if p.Src.Has(fused) {
		out = p.fusedProjections(gguf, fused, list)
		list = slices.DeleteFunc(list, isProjection)
	}
	for _, r := range list {
		out = append(out, p.rename(n, gguf, layer, r))
	}
	return out
}

// attentionTensors lists what every layer has.
func (t *textConfig) attentionTensors(local bool) []renamed {
	h, k := t.hiddenSize, t.sconvKernelSize
	hd, kv, extent := t.headDim, t.numKVHeads, t.relExtent
	if local {
		hd, kv, extent = t.swaHeadDim, t.swaKVHeads, t.slidingWindow
	}
	q, kvw, rel := t.numAttentionHeads*hd, kv*hd, t.numAttentionHeads*t.dRel
	return []renamed{
		{"attn_norm.weight", "attn_norm.weight", "input_layernorm.weight", []int64{h}, true},
		{"attn_q.weight", "attn.wq_du.weight", "self_attn.q_proj.weight", []int64{q, h}, false},
		{"attn_k.weight", "attn.wk_dv.weight", "self_attn.k_proj.weight", []int64{kvw, h}, false},
		{"attn_v.weight", "attn.wv_dv.weight", "self_attn.v_proj.weight", []int64{kvw, h}, false},
		{"attn_r.weight", "attn.wr_du.weight", "self_attn.r_proj.weight", []int64{rel, h}, false},
		{"attn_output.weight", "attn.wo_ud.weight", "self_attn.o_proj.weight", []int64{h, q}, false},
		{"attn_q_norm.weight", "attn.q_norm.weight", "self_attn.q_norm.weight", []int64{hd}, true},
		{"attn_k_norm.weight", "attn.k_norm.weight", "self_attn.k_norm.weight", []int64{hd}, true},
		{"attn_rel_proj.weight", "attn.rel_logits_proj.proj", "self_attn.rel_logits_proj.proj", []int64{t.dRel, extent}, true},
		{"shortconv_k.weight", "attn.k_sconv.weight", "self_attn.k_sconv.conv1d.weight", []int64{kvw, k}, true},
		{"shortconv_v.weight", "attn.v_sconv.weight", "self_attn.v_sconv.conv1d.weight", []int64{kvw, k}, true},
		{"shortconv_attn.weight", "attn_sconv.weight", "attn_sconv.conv1d.weight", []int64{h, k}, true},
		{"shortconv_mlp.weight", "mlp_sconv.weight", "mlp_sconv.conv1d.weight", []int64{h, k}, true},
		{"ffn_norm.weight", "mlp_norm.weight", "post_attention_layernorm.weight", []int64{h}, true},
	}
}

// denseTensors lists the feed-forward part of a dense layer.
func (p *planner) denseTensors(n names, gguf, layer string) []convert.Tensor {
	t := &p.c.text
	h, f := t.hiddenSize, t.denseSize
	return append(
		p.gateAndUp(n, gateUp{
			gate: gguf + "ffn_gate.weight", up: gguf + "ffn_up.weight",
			published: n.text + layer + "mlp.w13_dn.weight",
			port:      n.text + layer + "mlp.", suffix: ".weight",
			rows: f, cols: h,
		}),
		p.rename(n, gguf, layer, renamed{"ffn_down.weight", "mlp.w2_md.weight", "mlp.down_proj.weight", []int64{h, f}, false}),
		p.rename(n, gguf, layer, renamed{"ffn_gscale.weight", "mlp.global_scale", "mlp.global_scale", []int64{1}, true}),
	)
}

// expertTensors lists the feed-forward part of a layer with experts.
func (p *planner) expertTensors(n names, gguf, layer string) []convert.Tensor {
	t := &p.c.text
	h, f, e, s := t.hiddenSize, t.expertSize, t.experts, t.sharedExperts
	shape := func(dims ...int64) []int64 { return dims }
	return slices.Concat(
		[]convert.Tensor{
			p.rename(n, gguf, layer, renamed{"ffn_gate_inp.weight", "mlp.gate.weight", "mlp.gate.weight", shape(e+s, h), true}),
			p.rename(n, gguf, layer, renamed{"exp_probs_b.bias", "mlp.gate.bias", "mlp.gate.e_score_correction_bias", shape(e), true}),
			p.rename(n, gguf, layer, renamed{"ffn_gscale.weight", "mlp.gate.global_scale", "mlp.gate.global_scale", shape(1), true}),
		},
		p.gateAndUp(n, gateUp{
			gate: gguf + "ffn_gate_exps.weight", up: gguf + "ffn_up_exps.weight",
			published: n.text + layer + "mlp.experts.w13_weight",
			port:      n.text + layer + "mlp.experts.",
			rows:      f, cols: h, stack: shape(e),
		}),
		[]convert.Tensor{p.rename(n, gguf, layer, renamed{
			"ffn_down_exps.weight", "mlp.experts.w2_weight", "mlp.experts.down_proj", shape(e, h, f), false,
		})},
		p.gateAndUp(n, gateUp{
			gate: gguf + "ffn_gate_shexp.weight", up: gguf + "ffn_up_shexp.weight",
			published: n.text + layer + "mlp.shared_experts.shared_w13_weight",
			port:      n.text + layer + "mlp.shared_experts.",
			rows:      f, cols: h, stack: shape(s),
		}),
		[]convert.Tensor{p.rename(n, gguf, layer, renamed{
			"ffn_down_shexp.weight", "mlp.shared_experts.shared_w2_weight", "mlp.shared_experts.down_proj", shape(s, h, f), false,
		})},
	)
}

// gateUp is a pair of projections of the same shape, gate and up.
type gateUp struct {
	gate, up   string // of the output
	published  string // one tensor with the rows of both by turns
	port       string // prefix of gate_proj and up_proj, or of gate_up_proj with the rows of gate before those of up
	suffix     string // of the port's names
	rows, cols int64  // of one of the two
	stack      []int64
}

// gateAndUp looks up a pair. Whether rows are interleaved is known by the name.
func (p *planner) gateAndUp(n names, g gateUp) []convert.Tensor {
	one := slices.Concat(g.stack, []int64{g.rows, g.cols})
	both := slices.Concat(g.stack, []int64{2 * g.rows, g.cols})
	spell := func(single string, interleaved, blocked convert.RowMap) []convert.Spelling {
		if n.published {
			return []convert.Spelling{{Name: g.published, Shape: both, Rows: interleaved}}
		}
		return []convert.Spelling{
			{Name: g.port + single + g.suffix, Shape: one},
			{Name: g.port + "gate_up_proj" + g.suffix, Shape: both, Rows: blocked},
			{Name: mlxExperts(g.port) + single + ".weight", Shape: one},
			{Name: mlxExperts(g.port) + "gate_up_proj.weight", Shape: both, Rows: blocked},
		}
	}
	gateI, upI := convert.Interleaved(g.rows)
	gateB, upB := convert.Blocked(g.rows)
	return []convert.Tensor{
		p.Match.Find(g.gate, convert.Reversed(one), spell("gate_proj", gateI, gateB)...),
		p.Match.Find(g.up, convert.Reversed(one), spell("up_proj", upI, upB)...),
	}
}

// settleExpertSize takes the width of an expert from a tensor where the one in the
// config may be a class default. Elsewhere the two must agree.
func (p *planner) settleExpertSize(n names) {
	t := &p.c.text
	name := fmt.Sprintf("%slayers.%d.mlp.experts.down_proj", n.text, t.denseLayers)
	down, ok := p.Src.Weights.Find(name)
	if !p.c.expertSizeUnsure || !ok || len(down.Shape) != 3 {
		return
	}
	if found := down.Shape[2]; found != t.expertSize {
		p.Notef("moe_intermediate_size %d is a class default, the width of the experts' tensors, %d, is used", t.expertSize, found)
		t.expertSize = found
	}
}
