package eval

import (
	"context"
	"fmt"
	"math"
)

// Perplexity is how well a model predicts a text: the exponential of the mean of
// -log p over the scored tokens.
type Perplexity struct {
	Value   float64 `json:"perplexity"`
	Error   float64 `json:"standard_error"`
	Tokens  int     `json:"tokens"` // scored
	Windows int     `json:"windows"`
}

// sums adds up logarithms of probabilities.
type sums struct {
	n             int
	sum, ofSquare float64
}

func (s *sums) add(x float64) {
	s.n++
	s.sum += x
	s.ofSquare += x * x
}

// mean returns the mean and its standard error.
func (s *sums) mean() (mean, deviation float64) {
	if s.n == 0 {
		return 0, 0
	}
	n := float64(s.n)
	mean = s.sum / n
	if s.n > 1 {
		deviation = math.Sqrt(max(s.ofSquare/n-mean*mean, 0) / (n - 1))
	}
	return mean, deviation
}

// perplexity is that of a sum of -log p. The error of the exponential is, to first
// order, the error of the mean times it.
func (s *sums) perplexity(windows int) Perplexity {
	mean, deviation := s.mean()
	value := math.Exp(mean)
	return Perplexity{value, value * deviation, s.n, windows}
}

// Perplexity scores windows of a text. progress, which may be nil, is told after
// each.
func (s *Scorer) Perplexity(ctx context.Context, windows []Window, progress func(done int, so Perplexity)) (Perplexity, error) {
	var total sums
	for i, w := range windows {
		err := s.logits(ctx, w, func(i int, logits []float32) error {
			x := logSum(logits) - float64(logits[w.IDs[i]])
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("%s: -log p of token %d is %v", s.Path, i, x)
			}
			total.add(x)
			return nil
		})
		if err != nil {
			return total.perplexity(i), err
		}
		if progress != nil {
			progress(i+1, total.perplexity(i+1))
		}
	}
	return total.perplexity(len(windows)), nil
}
