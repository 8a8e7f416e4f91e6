package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how the next token is chosen from the logits. The stages run
// in llama.cpp's order: repeat penalty, top-k, top-p, min-p, temperature.
type Sampling struct {
	Temperature   float32 // 0: the most likely token, always
	TopK          int     // keep the k most likely; 0: all
	TopP          float32 // keep the most likely that together have this probability; 1: all
	MinP          float32 // keep those with at least this share of the most likely one's probability; 0: all
	RepeatPenalty float32 // divides (or multiplies, if negative) the logits of recent tokens; 1: off
	RepeatLastN   int     // how many tokens are recent; -1: the whole context

	// Taken from the logits of tokens that the answer holds: once, and for each
	// time that it holds them; 0: off.
	PresencePenalty, FrequencyPenalty float32

	Seed uint64 // of the random numbers; the same seed gives the same text
}

// DefaultSampling is plain sampling at temperature 1.
func DefaultSampling() Sampling {
	return Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1, RepeatLastN: 64}
}

// Validate names the first setting that is out of range.
func (s Sampling) Validate() error {
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	switch {
	case !finite(s.Temperature) || s.Temperature < 0:
		return fmt.Errorf("temperature %g: want 0 or more", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top-k %d: want 0 (all) or more", s.TopK)
	case !finite(s.TopP) || s.TopP <= 0 || s.TopP > 1:
		return fmt.Errorf("top-p %g: want more than 0, at most 1", s.TopP)
	case !finite(s.MinP) || s.MinP < 0 || s.MinP > 1:
		return fmt.Errorf("min-p %g: want 0 to 1", s.MinP)
	case !finite(s.RepeatPenalty) || s.RepeatPenalty <= 0:
		return fmt.Errorf("repeat-penalty %g: want more than 0 (1: off)", s.RepeatPenalty)
	case !(abs(s.PresencePenalty) <= 2):
		return fmt.Errorf("presence-penalty %g: want -2 to 2", s.PresencePenalty)
	case !(abs(s.FrequencyPenalty) <= 2):
		return fmt.Errorf("frequency-penalty %g: want -2 to 2", s.FrequencyPenalty)
	case s.RepeatLastN < -1:
		return fmt.Errorf("repeat-last-n %d: want -1 (whole context), 0 (off) or more", s.RepeatLastN)
	}
	return nil
}

func abs(v float32) float32 { return float32(math.Abs(float64(v))) }

// candidate is a token that may be chosen.
type candidate struct {
	id    int32
	logit float32
	p     float64 // not normalised
}

// sampler chooses tokens. It keeps its memory from token to token.
type sampler struct {
	Sampling
	rng   *rand.Rand
	never []int32
	cands []candidate
}

func newSampler(s Sampling, never []int32, vocab int) *sampler {
	return &sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0)), never: never, cands: make([]candidate, 0, vocab)}
}

// next chooses a token. It changes logits. recent are the tokens so far, the
// last at the end. Equal logits count in the order of ids. It is an error if
// no logit is finite.
func (s *sampler) next(logits []float32, recent []int32) (int32, error) {
	for _, id := range s.never {
		logits[id] = float32(math.Inf(-1))
	}
	s.penalise(logits, recent)
	if s.Temperature == 0 {
		return argmax(logits)
	}
	c := s.keepTopK(logits)
	if len(c) == 0 {
		return 0, errNoLogit
	}
	c = keepTopP(c, float64(s.TopP), s.MinP)
	return s.draw(c), nil
}

var errNoLogit = fmt.Errorf("no token has a finite logit: the weights or the state hold NaN or infinite values")

// argmax is the first of the largest logits.
func argmax(logits []float32) (int32, error) {
	best := -1
	for i, l := range logits {
		if !math.IsNaN(float64(l)) && (best < 0 || l > logits[best]) {
			best = i
		}
	}
	if best < 0 || math.IsInf(float64(logits[best]), 0) {
		return 0, errNoLogit
	}
	return int32(best), nil
}

// penalise weakens recent tokens, each once, as the repetition penalty of CTRL
// (Keskar et al. 2019, section 4.1) in the form that divides positive and
// multiplies negative logits.
func (s *sampler) penalise(logits []float32, recent []int32) {
	if s.RepeatPenalty == 1 || s.RepeatLastN == 0 {
		return
	}
	if s.RepeatLastN > 0 {
		recent = recent[max(0, len(recent)-s.RepeatLastN):]
	}
	for i, id := range recent {
		if int(id) >= len(logits) || slices.Contains(recent[:i], id) {
			continue
		}
		if logits[id] > 0 {
			logits[id] /= s.RepeatPenalty
		} else {
			logits[id] *= s.RepeatPenalty
		}
	}
}

// better orders candidates by logit, then by id.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
}

// keepTopK returns the candidates that are left, the best first, unless all of
// them stay and no later stage needs an order.
func (s *sampler) keepTopK(logits []float32) []candidate {
	c := s.cands[:0]
	if k := s.TopK; k > 0 && k < len(logits) {
		// A heap of the best k with the worst on top.
		for i, l := range logits {
			x := candidate{id: int32(i), logit: l}
			if !(l > float32(math.Inf(-1))) || math.IsInf(float64(l), 1) { // NaN too
				continue
			}
			switch {
			case len(c) < k:
				c = append(c, x)
				siftUp(c)
			case better(x, c[0]) < 0:
				c[0] = x
				siftDown(c)
			}
		}
		slices.SortFunc(c, better)
	} else {
		for i, l := range logits {
			if l > float32(math.Inf(-1)) && !math.IsInf(float64(l), 1) {
				c = append(c, candidate{id: int32(i), logit: l})
			}
		}
		if s.TopP < 1 || s.MinP > 0 {
			slices.SortFunc(c, better)
		}
	}
	s.cands = c[:0]
	return c
}

func siftUp(h []candidate) {
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if better(h[i], h[parent]) <= 0 {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func siftDown(h []candidate) {
	for i := 0; ; {
		worst := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && better(h[child], h[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

// keepTopP cuts the sorted candidates where their probability adds up to p,
// and those below the share minP of the best; at least one stays.
func keepTopP(c []candidate, p float64, minP float32) []candidate {
	if p < 1 {
		top, sum := float64(c[0].logit), 0.0
		for i := range c {
			c[i].p = math.Exp(float64(c[i].logit) - top)
			sum += c[i].p
		}
		acc := 0.0
		for i := range c {
			if acc += c[i].p; acc >= p*sum {
				c = c[:i+1]
				break
			}
		}
	}
	if minP > 0 {
		least := c[0].logit + float32(math.Log(float64(minP)))
		for i := range c {
			if c[i].logit < least {
				return c[:max(i, 1)]
			}
		}
	}
	return c
}

// draw picks a candidate by its probability at the temperature.
func (s *sampler) draw(c []candidate) int32 {
	top := c[0].logit
	for _, x := range c {
		top = max(top, x.logit)
	}
	sum := 0.0
	for i := range c {
		c[i].p = math.Exp(float64(c[i].logit-top) / float64(s.Temperature))
		sum += c[i].p
	}
	r := s.rng.Float64() * sum
	for _, x := range c {
		if r -= x.p; r < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}
