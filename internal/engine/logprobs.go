package engine

import "math"

// maxTopLogprobs bounds Request.TopLogprobs, as OpenAI's API does.
const maxTopLogprobs = 20

// logSumExp is ln Σ exp(x), the constant between logits and the logarithms of
// their probabilities.
func logSumExp(logits []float32) float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = max(top, float64(l))
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	return top + math.Log(sum)
}

// mostLikely returns the n largest logits, the best first.
func mostLikely(logits []float32, n int) []candidate {
	best := make([]candidate, 0, n)
	for i, l := range logits {
		best = keepBest(best, n, candidate{id: int32(i), logit: l})
	}
	sortBest(best)
	return best
}

// logprobs fills in the log-probabilities of a token, from the logits before
// any setting of the request.
func (t *task) logprobs(tok *Token, logits []float32) {
	if !t.r.Logprobs {
		return
	}
	norm := logSumExp(logits)
	tok.Logprob = float32(float64(logits[tok.ID]) - norm)
	for _, c := range mostLikely(logits, min(t.r.TopLogprobs, len(logits))) {
		tok.Top = append(tok.Top, TokenLogprob{ID: c.id, Piece: t.e.vocab.Piece(c.id), Logprob: float32(float64(c.logit) - norm)})
	}
}
