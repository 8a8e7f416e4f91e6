package inkling

import (
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// weights are the tensors of the text file. V is the padded vocabulary.
type weights struct {
	Embd     *binding.Tensor `gguf:"token_embd.weight" ne:"n_embd,n_vocab"`
	EmbdNorm *binding.Tensor `gguf:"token_embd_norm.weight,f32" ne:"n_embd"`
	Layers   []*layer        `gguf:"blk"`
	Norm     *binding.Tensor `gguf:"output_norm.weight,f32" ne:"n_embd"`
	Output   *binding.Tensor `gguf:"output.weight" ne:"n_embd,n_vocab"`

	embdOn, outputOn *binding.Backend // the devices of Embd, and of what follows the last layer
}

// layer is one block: attention, then feed-forward, each with a short
// convolution between the branch and the stream.
type layer struct {
	AttnNorm *binding.Tensor `gguf:"attn_norm.weight,f32" ne:"n_embd"`
	Q        *binding.Tensor `gguf:"attn_q.weight" ne:"n_embd,n_head*head_dim"`
	K        *binding.Tensor `gguf:"attn_k.weight" ne:"n_embd,n_head_kv*head_dim"`
	V        *binding.Tensor `gguf:"attn_v.weight" ne:"n_embd,n_head_kv*head_dim"`
	R        *binding.Tensor `gguf:"attn_r.weight" ne:"n_embd,n_head*d_rel"`
	O        *binding.Tensor `gguf:"attn_output.weight" ne:"n_head*head_dim,n_embd"`
	QNorm    *binding.Tensor `gguf:"attn_q_norm.weight,f32" ne:"head_dim"`
	KNorm    *binding.Tensor `gguf:"attn_k_norm.weight,f32" ne:"head_dim"`
	RelProj  *binding.Tensor `gguf:"attn_rel_proj.weight,f32" ne:"rel_extent,d_rel"`
	KConv    *binding.Tensor `gguf:"shortconv_k.weight,f32" ne:"shortconv_kernel,n_head_kv*head_dim"`
	VConv    *binding.Tensor `gguf:"shortconv_v.weight,f32" ne:"shortconv_kernel,n_head_kv*head_dim"`
	AttnConv *binding.Tensor `gguf:"shortconv_attn.weight,f32" ne:"shortconv_kernel,n_embd"`

	FFNNorm *binding.Tensor `gguf:"ffn_norm.weight,f32" ne:"n_embd"`
	GScale  *binding.Tensor `gguf:"ffn_gscale.weight,f32" ne:"1"`
	Dense   *dense          `gguf:""`
	MoE     *moe            `gguf:""`
	MLPConv *binding.Tensor `gguf:"shortconv_mlp.weight,f32" ne:"shortconv_kernel,n_embd"`

	dims models.Dims

	// Computed once at load: rel_proj with d_rel fastest, which is how the
	// graph multiplies by it.
	// Of the convolutions those of keys and values side by side, with the inner
	// residual in the weight of the current row.
	projRev *binding.Tensor // [d_rel, E], reversed along E
	proj    *binding.Tensor // [d_rel, E+1], the last row zero
	band    *binding.Tensor // [E, d_rel], rel_proj reversed along E; for op.BandSpans
	gscale  float32         // GScale's one value

	kvConv   *binding.Tensor // [K, 2*n_head_kv*head_dim]
	attnConv *binding.Tensor // [K, n_embd]
	mlpConv  *binding.Tensor // [K, n_embd]
}

// Dims lays the layer's own sizes over the model's.
func (l *layer) Dims() models.Dims { return l.dims }

type dense struct {
	Gate *binding.Tensor `gguf:"ffn_gate.weight" ne:"n_embd,n_ff"`
	Up   *binding.Tensor `gguf:"ffn_up.weight" ne:"n_embd,n_ff"`
	Down *binding.Tensor `gguf:"ffn_down.weight" ne:"n_ff,n_embd"`
}

type moe struct {
	Router   *binding.Tensor `gguf:"ffn_gate_inp.weight,f32" ne:"n_embd,n_expert+n_expert_shared"`
	Bias     *binding.Tensor `gguf:"exp_probs_b.bias,f32" ne:"n_expert"`
	Gate     *binding.Tensor `gguf:"ffn_gate_exps.weight" ne:"n_embd,n_ff_exp,n_expert"`
	Up       *binding.Tensor `gguf:"ffn_up_exps.weight" ne:"n_embd,n_ff_exp,n_expert"`
	Down     *binding.Tensor `gguf:"ffn_down_exps.weight" ne:"n_ff_exp,n_embd,n_expert"`
	GateShex *binding.Tensor `gguf:"ffn_gate_shexp.weight" ne:"n_embd,n_ff_exp,n_expert_shared"`
	UpShex   *binding.Tensor `gguf:"ffn_up_shexp.weight" ne:"n_embd,n_ff_exp,n_expert_shared"`
	DownShex *binding.Tensor `gguf:"ffn_down_shexp.weight" ne:"n_ff_exp,n_embd,n_expert_shared"`
}

// bindWeights opens the tensors of f on the backend's device. The ahead blocks
// behind the model's own are left for openMTP.
func bindWeights(f *gguf.File, c *config, p models.Params, ahead int) (*weights, *models.Weights, error) {
	w := &weights{embdOn: p.EmbeddingDevice(), outputOn: p.OutputDevice()}
	for i := range c.blockCount {
		w.Layers = append(w.Layers, newLayer(c, i))
	}
	own, err := models.Bind(w, f, p, c.dims(), func(name string) bool {
		i, ok := blockOf(name)
		return ok && i >= c.blockCount && i < c.blockCount+ahead || ahead > 0 && name == "nextn_chain_norm.weight"
	})
	return w, own, err
}

// newLayer is layer i without its tensors.
func newLayer(c *config, i int) *layer {
	l := &layer{dims: models.Dims{
		"n_head_kv":  int64(c.nHeadKV[i]),
		"head_dim":   int64(c.headDimOf(i)),
		"rel_extent": int64(c.extentOf(i)),
	}}
	if i < c.denseBlocks {
		l.Dense = &dense{}
	} else {
		l.MoE = &moe{}
	}
	return l
}

// dims are the sizes that all layers share.
func (c *config) dims() models.Dims {
	return models.Dims{
		"n_embd": int64(c.embd), "n_vocab": int64(c.vocab), "n_head": int64(c.nHead), "d_rel": int64(c.dRel),
		"shortconv_kernel": int64(c.shortconvKernel), "n_ff": int64(c.ff), "n_ff_exp": int64(c.ffExp),
		"n_expert": int64(c.nExpert), "n_expert_shared": int64(c.nExpertShared),
	}
}

// derive computes the tensors that are other layouts of small weights of layers.
func derive(be *binding.Backend, c *config, ls []*layer) (*binding.Memory, error) {
	mem := be.NewWeights(6 * len(ls))
	for i, l := range ls {
		if err := l.declare(mem, c, i); err != nil {
			mem.Close()
			return nil, err
		}
	}
	if err := mem.Alloc(); err != nil {
		mem.Close()
		return nil, err
	}
	for _, l := range ls {
		l.fill(c)
	}
	return mem, nil
}

// declare declares the tensors that layer i computes at load.
func (l *layer) declare(mem *binding.Memory, c *config, i int) error {
	E, dRel, K, embd := int64(c.extentOf(i)), int64(c.dRel), int64(c.shortconvKernel), int64(c.embd)
	for _, t := range []struct {
		t    **binding.Tensor
		name string
		ne   []int64
	}{
		{&l.projRev, "proj_rev", []int64{dRel, E}},
		{&l.proj, "proj", []int64{dRel, E + 1}},
		{&l.band, "band", []int64{E, dRel}},
		{&l.kvConv, "kv_conv", []int64{K, 2 * l.KConv.Dim(1)}},
		{&l.attnConv, "attn_conv", []int64{K, embd}},
		{&l.mlpConv, "mlp_conv", []int64{K, embd}},
	} {
		var err error
		if *t.t, err = mem.NewOn(c.on(i), fmt.Sprintf("blk.%d.%s", i, t.name), binding.F32, t.ne...); err != nil {
			return err
		}
	}
	return nil
}

// fill computes them.
func (l *layer) fill(c *config) {
	E := int(l.projRev.Dim(1))
	src := make([]float32, E*c.dRel) // [d_rel][E]
	l.RelProj.Floats(src)
	proj, rev, band := make([]float32, (E+1)*c.dRel), make([]float32, E*c.dRel), make([]float32, E*c.dRel)
	for m := range c.dRel {
		for d := range E {
			proj[d*c.dRel+m] = src[m*E+d]
			rev[(E-1-d)*c.dRel+m] = src[m*E+d]
			band[m*E+E-1-d] = src[m*E+d]
		}
	}
	l.projRev.SetFloats(rev)
	l.band.SetFloats(band)
	l.proj.SetFloats(proj)
	one := []float32{0}
	l.GScale.Floats(one)
	l.gscale = one[0]

	setConv(l.kvConv, l.KConv, l.VConv)
	setConv(l.attnConv, l.AttnConv)
	setConv(l.mlpConv, l.MLPConv)
}

// setConv puts the weights of convolutions side by side into dst and adds 1 to
// those of the current row.
//
//	dst: [K, all channels]
//	src: [K, channels] each
func setConv(dst *binding.Tensor, src ...*binding.Tensor) {
	var all []float32
	for _, t := range src {
		w := make([]float32, t.Elems())
		t.Floats(w)
		all = append(all, w...)
	}
	K := int(dst.Dim(0))
	for i := K - 1; i < len(all); i += K {
		all[i]++
	}
	dst.SetFloats(all)
}
