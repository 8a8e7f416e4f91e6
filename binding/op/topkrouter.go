package op

import (
	"math"

	"github.com/inkling-go/inkling/binding"
)

// Router is the rule by which tokens choose experts.
type Router struct {
	Used       int     // experts per token
	Groups     int     // experts form this many groups of equal size; 1: no groups
	GroupsUsed int     // and a token chooses within this many of them
	SoftMax    bool    // scores are softmax(logits), else sigmoid(logits)
	Normalize  bool    // weights are divided by their sum
	Scale      float32 // and multiplied by this
}

// TopKRouter chooses experts by score + bias and weighs them by their scores:
// the bias takes part in the choice only. A group stands for the sum of its two
// best choices; experts of groups that are not among the best have no chance.
//
//	logits:  [n_expert, n]    F32
//	bias:    [n_expert]       F32, or nil
//	ids:     [used, n]        I32, in no fixed order; of equal choices see topK
//	weights: [used, n]        in the order of ids
//
// Source: DeepseekV3TopkRouter of transformers 5.17 (topk_method noaux_tc).
func TopKRouter(g *binding.Graph, logits, bias *binding.Tensor, r Router) (ids, weights *binding.Tensor) {
	nExpert, n := logits.Dim(0), logits.Dim(1)
	var scores *binding.Tensor
	if r.SoftMax {
		scores = g.SoftMax(logits)
	} else {
		scores = g.Sigmoid(logits)
	}
	choice := scores
	if bias != nil {
		choice = g.Add(scores, bias)
	}
	if r.GroupsUsed < r.Groups {
		choice = bestGroups(g, choice, r)
	}
	k := int64(r.Used)
	ids = topK(g, choice, r.Used)
	weights = g.Reshape(g.GetRows(g.Reshape(scores, 1, nExpert, n), ids), k, n)
	if r.Normalize {
		// The reference's guard against a sum of zero.
		weights = g.Div(weights, g.ScaleBias(g.SumRows(weights), 1, 1e-20))
	}
	return ids, g.Scale(weights, r.Scale)
}

// bestGroups replaces the choices of all but the best groups by -inf.
//
//	choice: [n_expert, n]
//	res:    [n_expert, n]
func bestGroups(g *binding.Graph, choice *binding.Tensor, r Router) *binding.Tensor {
	nExpert, n := choice.Dim(0), choice.Dim(1)
	groups, per := int64(r.Groups), nExpert/int64(r.Groups)
	best := min(2, per)

	byGroup := g.Reshape(choice, per, groups, n)
	top := g.Reshape(g.Cont(g.ArgsortTopK(byGroup, int(best))), best, groups*n)
	values := g.GetRows(g.Reshape(choice, 1, per, groups*n), top) // [1, best, groups*n]
	score := g.Reshape(g.SumRows(g.Reshape(values, best, groups*n)), groups, n)
	kept := topK(g, score, r.GroupsUsed) // [groups_used, n]

	none := g.Fill(byGroup, float32(math.Inf(-1)))
	return g.Reshape(g.SetRows(none, g.GetRows(byGroup, kept), kept), nExpert, n)
}
