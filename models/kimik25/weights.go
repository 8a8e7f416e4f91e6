package kimik25

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// weights are the tensors of the text file.
type weights struct {
	Embd   *binding.Tensor `gguf:"token_embd.weight" ne:"n_embd,n_vocab"`
	Layers []*layer        `gguf:"blk"`
	Norm   *binding.Tensor `gguf:"output_norm.weight,f32" ne:"n_embd"`
	Output *binding.Tensor `gguf:"output.weight,optional" ne:"n_embd,n_vocab"` // absent: the embedding

	// Computed once at load: 1/f_i of the rotated pairs.
	invFreq *binding.Tensor // [rope/2]

	embdOn, outputOn *binding.Backend // the devices of Embd, and of what follows the last layer
}

// layer is one block: attention, then feed-forward.
type layer struct {
	AttnNorm *binding.Tensor `gguf:"attn_norm.weight,f32" ne:"n_embd"`
	Q        *directQuery    `gguf:""` // one of the two
	QLatent  *latentQuery    `gguf:""`
	KVA      *binding.Tensor `gguf:"attn_kv_a_mqa.weight" ne:"n_embd,kv_lora+rope"`
	KVANorm  *binding.Tensor `gguf:"attn_kv_a_norm.weight,f32" ne:"kv_lora"`
	KB       *binding.Tensor `gguf:"attn_k_b.weight" ne:"nope,kv_lora,n_head"`
	VB       *binding.Tensor `gguf:"attn_v_b.weight" ne:"kv_lora,n_value,n_head"`
	O        *binding.Tensor `gguf:"attn_output.weight" ne:"n_head*n_value,n_embd"`

	FFNNorm *binding.Tensor `gguf:"ffn_norm.weight,f32" ne:"n_embd"`
	Dense   *dense          `gguf:""`
	MoE     *moe            `gguf:""`
}

// directQuery projects queries in one step.
type directQuery struct {
	W *binding.Tensor `gguf:"attn_q.weight" ne:"n_embd,n_head*key"`
}

// latentQuery projects them through a latent.
type latentQuery struct {
	A    *binding.Tensor `gguf:"attn_q_a.weight" ne:"n_embd,q_lora"`
	Norm *binding.Tensor `gguf:"attn_q_a_norm.weight,f32" ne:"q_lora"`
	B    *binding.Tensor `gguf:"attn_q_b.weight" ne:"q_lora,n_head*key"`
}

type dense struct {
	Gate *binding.Tensor `gguf:"ffn_gate.weight" ne:"n_embd,n_ff"`
	Up   *binding.Tensor `gguf:"ffn_up.weight" ne:"n_embd,n_ff"`
	Down *binding.Tensor `gguf:"ffn_down.weight" ne:"n_ff,n_embd"`
}

type moe struct {
	Router *binding.Tensor `gguf:"ffn_gate_inp.weight,f32" ne:"n_embd,n_expert"`
	Bias   *binding.Tensor `gguf:"exp_probs_b.bias,optional,f32" ne:"n_expert"`
	Gate   *binding.Tensor `gguf:"ffn_gate_exps.weight" ne:"n_embd,n_ff_exp,n_expert"`
	Up     *binding.Tensor `gguf:"ffn_up_exps.weight" ne:"n_embd,n_ff_exp,n_expert"`
	Down   *binding.Tensor `gguf:"ffn_down_exps.weight" ne:"n_ff_exp,n_embd,n_expert"`
	Shared *shared         `gguf:""`
}

// shared are the experts that every row uses, side by side.
type shared struct {
	Gate *binding.Tensor `gguf:"ffn_gate_shexp.weight" ne:"n_embd,n_ff_sh"`
	Up   *binding.Tensor `gguf:"ffn_up_shexp.weight" ne:"n_embd,n_ff_sh"`
	Down *binding.Tensor `gguf:"ffn_down_shexp.weight" ne:"n_ff_sh,n_embd"`
}

// bindWeights opens the tensors of f on the backend's device.
func bindWeights(f *gguf.File, c *config, p models.Params) (*weights, *models.Weights, error) {
	w := &weights{embdOn: p.EmbeddingDevice(), outputOn: p.OutputDevice()}
	for i := range c.blockCount {
		l := &layer{}
		if c.qLora > 0 {
			l.QLatent = &latentQuery{}
		} else {
			l.Q = &directQuery{}
		}
		if i < c.denseBlocks {
			l.Dense = &dense{}
		} else if l.MoE = (&moe{}); c.ffSh > 0 {
			l.MoE.Shared = &shared{}
		}
		w.Layers = append(w.Layers, l)
	}
	own, err := models.Bind(w, f, p, models.Dims{
		"n_embd": int64(c.embd), "n_vocab": int64(c.vocab), "n_head": int64(c.nHead),
		"q_lora": int64(c.qLora), "kv_lora": int64(c.kvLora), "key": int64(c.nope + c.rope), "nope": int64(c.nope),
		"rope": int64(c.rope), "n_value": int64(c.valueLn),
		"n_ff": int64(c.ff), "n_ff_exp": int64(c.ffExp), "n_ff_sh": int64(c.ffSh), "n_expert": int64(c.nExpert),
	}, nil)
	if err == nil && w.Output == nil {
		w.Output = w.Embd
	}
	return w, own, err
}

// derive computes the table of the rotation.
func (w *weights) derive(be *binding.Backend, c *config) (*binding.Memory, error) {
	mem := be.NewMemory(1) // no weights: nodes of all devices read it
	var err error
	if w.invFreq, err = mem.New("rope_inverse_frequencies", binding.F32, int64(c.rope/2)); err == nil {
		err = mem.Alloc()
	}
	if err != nil {
		mem.Close()
		return nil, err
	}
	w.invFreq.SetFloats(c.rotation.inverseFrequencies(c.rope))
	return mem, nil
}
