package op

import "github.com/inkling-go/inkling/binding"

// SinkRouter chooses experts by σ(logit) + bias and weighs the chosen and the
// shared experts together: w = σ(v)/Σσ(v)·scale over the logits v of both,
// which is softmax over log σ(v). The bias takes part in the choice only.
//
//	logits:  [n_expert+n_shared, n_tokens]   F32; the last n_shared rows belong to the shared experts
//	bias:    [n_expert]                      F32
//	ids:     [n_used, n_tokens]              I32, in no fixed order; of equal choices see topK
//	weights: [n_used+n_shared, n_tokens]     the routed ones in the order of ids, then the shared ones
//
// Source: InklingTopkRouter of transformers 5.17 (norm_after_topk with shared_expert_sink).
func SinkRouter(g *binding.Graph, logits, bias *binding.Tensor, nUsed int, scale float32) (ids, weights *binding.Tensor) {
	nExpert, n := bias.Dim(0), logits.Dim(1)
	nShared := logits.Dim(0) - nExpert
	sig := g.Sigmoid(logits)
	routed := gathered(g, g.Cols(sig, 0, nExpert))
	ids = topK(g, g.Add(routed, bias), nUsed)
	weights = g.Reshape(g.GetRows(g.Reshape(routed, 1, nExpert, n), ids), int64(nUsed), n)
	if nShared > 0 {
		weights = g.Concat(weights, gathered(g, g.Cols(sig, nExpert, nShared)), 0)
	}
	weights = g.Scale(g.Div(weights, g.SumRows(weights)), scale)
	return ids, weights
}

// gathered is a, or a copy of it if its elements do not lie together.
func gathered(g *binding.Graph, a *binding.Tensor) *binding.Tensor {
	if a.Contiguous() {
		return a
	}
	return g.Cont(a)
}
