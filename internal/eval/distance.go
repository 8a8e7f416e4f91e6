package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Distance is how far the predictions of a model are from those of a reference.
type Distance struct {
	Tokens int `json:"tokens"`

	// KL is the Kullback-Leibler divergence of the model from the reference, in nats:
	// sum p log(p/q) over the vocabulary, p of the reference and q of the model.
	Mean        float64      `json:"kl_mean"`
	Error       float64      `json:"kl_standard_error"`
	Percentiles []Percentile `json:"kl_percentiles"`

	Top1      float64    `json:"top1_agreement"` // share of tokens where both find the same one most likely
	Model     Perplexity `json:"model"`
	Reference Perplexity `json:"reference"`
	DeltaP    float64    `json:"delta_p_rms"` // of the probability of the token that is there

	kl []float64
}

// Percentile is the KL below which a share of the tokens are.
type Percentile struct {
	P  float64 `json:"percentile"`
	KL float64 `json:"kl"`
}

// percentiles that are reported.
var percentiles = [...]float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100}

// prediction is what is kept of a reference's logits.
type prediction struct {
	logp []float32
	top  int
}

// Against compares s with a reference over windows. Both must have the same
// vocabulary. progress, which may be nil, is told after each window.
func (s *Scorer) Against(ctx context.Context, ref *Scorer, windows []Window, progress func(done int, mean float64)) (*Distance, error) {
	if err := s.sameVocabulary(ref); err != nil {
		return nil, err
	}
	d := new(Distance)
	var kl, model, reference, delta sums
	same, done := 0, 0
	finish := func() *Distance {
		d.Tokens = kl.n
		d.Mean, d.Error = kl.mean()
		d.Model, d.Reference = model.perplexity(done), reference.perplexity(done)
		if kl.n > 0 {
			d.Top1 = float64(same) / float64(kl.n)
			d.DeltaP = math.Sqrt(delta.ofSquare / float64(delta.n))
		}
		d.rank()
		return d
	}
	for _, w := range windows {
		want := map[int]prediction{}
		err := ref.logits(ctx, w, func(i int, logits []float32) error {
			want[i] = predict(logits)
			return nil
		})
		if err == nil {
			err = s.logits(ctx, w, func(i int, logits []float32) error {
				p, q := want[i], predict(logits)
				x := divergence(p.logp, q.logp)
				if math.IsNaN(x) || math.IsInf(x, 0) {
					return fmt.Errorf("%s: the divergence at token %d is %v", s.Path, i, x)
				}
				kl.add(x)
				d.kl = append(d.kl, x)
				if p.top == q.top {
					same++
				}
				id := w.IDs[i]
				reference.add(-float64(p.logp[id]))
				model.add(-float64(q.logp[id]))
				delta.add(math.Exp(float64(q.logp[id])) - math.Exp(float64(p.logp[id])))
				return nil
			})
		}
		if err != nil {
			return finish(), err
		}
		done++
		if progress != nil {
			mean, _ := kl.mean()
			progress(done, mean)
		}
	}
	return finish(), nil
}

// predict turns logits into logarithms of probabilities.
func predict(logits []float32) prediction {
	total := logSum(logits)
	p := prediction{make([]float32, len(logits)), argmax(logits)}
	for i, x := range logits {
		p.logp[i] = float32(float64(x) - total)
	}
	return p
}

// divergence is sum p (log p - log q), at least 0 but for rounding. What p has no
// chance of does not count.
func divergence(p, q []float32) float64 {
	sum := 0.0
	for i, lp := range p {
		if prob := math.Exp(float64(lp)); prob > 0 {
			sum += prob * (float64(lp) - float64(q[i]))
		}
	}
	return max(sum, 0)
}

// rank finds the percentiles.
func (d *Distance) rank() {
	d.Percentiles = []Percentile{}
	if len(d.kl) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(d.kl))
	for _, p := range percentiles {
		i := int(math.Ceil(p/100*float64(len(sorted)))) - 1 // nearest rank
		d.Percentiles = append(d.Percentiles, Percentile{p, sorted[max(i, 0)]})
	}
}

// sameVocabulary is an error if ids do not mean the same to both.
func (s *Scorer) sameVocabulary(ref *Scorer) error {
	if a, b := s.model.Config().Vocab, ref.model.Config().Vocab; a != b {
		return fmt.Errorf("%s predicts %d tokens, %s %d: they can not be compared", s.Path, a, ref.Path, b)
	}
	for id := range int32(s.model.Config().Vocab) {
		a, _ := s.Vocab.Token(id)
		b, _ := ref.Vocab.Token(id)
		if string(a) != string(b) {
			return fmt.Errorf("token %d is %q of %s and %q of %s: they can not be compared", id, a, s.Path, b, ref.Path)
		}
	}
	return nil
}
