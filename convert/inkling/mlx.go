package inkling

import (
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// mlxNames returns the other names, below a layer, that MLX's converters give a tensor
// with this name in the port.
func mlxNames(port string) []string {
	if base, ok := strings.CutSuffix(port, ".conv1d.weight"); ok { // [C, K, 1], the same order of elements
		return []string{base + ".conv.weight"}
	}
	switch port {
	case "self_attn.rel_logits_proj.proj":
		return []string{"self_attn.rel_proj", "self_attn.rel_proj.weight"}
	case "mlp.gate.weight":
		return []string{"mlp.gate_weight"}
	case "mlp.gate.e_score_correction_bias":
		return []string{"mlp.e_score_correction_bias"}
	case "mlp.gate.global_scale":
		return []string{"mlp.global_scale"}
	case "mlp.experts.down_proj", "mlp.shared_experts.down_proj":
		base, name, _ := strings.Cut(strings.TrimPrefix(port, "mlp."), ".")
		return []string{mlxExperts("mlp."+base+".") + name + ".weight"}
	}
	return nil
}

// mlxExperts returns MLX's form of a prefix of experts: routed ones are in a module of
// its own kind.
func mlxExperts(prefix string) string {
	if base, ok := strings.CutSuffix(prefix, ".experts."); ok {
		return base + ".switch_mlp."
	}
	return prefix
}

// isProjection reports whether a tensor is one of those that some publishers stack.
func isProjection(r renamed) bool {
	switch r.gguf {
	case "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_r.weight":
		return true
	}
	return false
}

// fusedProjections takes the projections q, k, v and r out of one tensor that has
// their rows one after the other. Codes and scales are by row, so that this is exact.
func (p *planner) fusedProjections(gguf, fused string, list []renamed) []convert.Tensor {
	var rows, cols int64
	for _, r := range list {
		if isProjection(r) {
			rows, cols = rows+r.shape[0], r.shape[1]
		}
	}
	var out []convert.Tensor
	first := int64(0)
	for _, r := range list {
		if isProjection(r) {
			out = append(out, p.Match.Find(gguf+r.gguf, convert.Reversed(r.shape), convert.Spelling{
				Name: fused, Shape: []int64{rows, cols}, Rows: convert.Slice(first, r.shape[0]),
			}))
			first += r.shape[0]
		}
	}
	return out
}
