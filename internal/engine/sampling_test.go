package engine

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		name   string
		logits []float32
		never  []int32
		want   int32
	}{
		{"largest", []float32{1, 3, 2}, nil, 1},
		{"first of equals", []float32{1, 3, 3}, nil, 1},
		{"never sampled", []float32{1, 3, 2}, []int32{1}, 2},
		{"NaN is passed over", []float32{nan, 1, 2}, nil, 2},
		{"all negative", []float32{-5, -4}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newSampler(Sampling{TopP: 1, RepeatPenalty: 1}, c.never, len(c.logits)).next(c.logits, nil)
			if err != nil || got != c.want {
				t.Errorf("chose %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

// TestNoFiniteLogit: a poisoned state is an error, never a token.
func TestNoFiniteLogit(t *testing.T) {
	for _, temp := range []float32{0, 1} {
		for _, logits := range [][]float32{{nan, nan}, {-inf, -inf}, {nan, -inf}} {
			s := DefaultSampling()
			s.Temperature = temp
			if id, err := newSampler(s, nil, 2).next(slices.Clone(logits), nil); !errors.Is(err, errNoLogit) {
				t.Errorf("temperature %g, logits %v: chose %d, %v", temp, logits, id, err)
			}
		}
	}
}

// frequencies draws n tokens.
func frequencies(t *testing.T, s Sampling, logits []float32, recent []int32, n int) []float64 {
	t.Helper()
	f := make([]float64, len(logits))
	smp := newSampler(s, nil, len(logits))
	for range n {
		id, err := smp.next(slices.Clone(logits), recent)
		if err != nil {
			t.Fatal(err)
		}
		f[id] += 1 / float64(n)
	}
	return f
}

// TestDistributions compares frequencies with the probabilities that the
// definition of each stage gives for logits ln 4, ln 3, ln 2, ln 1.
func TestDistributions(t *testing.T) {
	ln := func(x float64) float32 { return float32(math.Log(x)) }
	logits := []float32{ln(1), ln(4), ln(2), ln(3)}
	for _, c := range []struct {
		name   string
		change func(*Sampling)
		recent []int32
		want   []float64
	}{
		{"plain", func(*Sampling) {}, nil, []float64{0.1, 0.4, 0.2, 0.3}},
		{"temperature 0.5 squares", func(s *Sampling) { s.Temperature = 0.5 }, nil, []float64{1 / 30., 16 / 30., 4 / 30., 9 / 30.}},
		{"top-k 2", func(s *Sampling) { s.TopK = 2 }, nil, []float64{0, 4 / 7., 0, 3 / 7.}},
		{"top-k 3", func(s *Sampling) { s.TopK = 3 }, nil, []float64{0, 4 / 9., 2 / 9., 3 / 9.}},
		{"top-k above the vocabulary", func(s *Sampling) { s.TopK = 40 }, nil, []float64{0.1, 0.4, 0.2, 0.3}},
		{"top-p 0.65 takes two", func(s *Sampling) { s.TopP = 0.65 }, nil, []float64{0, 4 / 7., 0, 3 / 7.}},
		{"top-p 0.75 takes three", func(s *Sampling) { s.TopP = 0.75 }, nil, []float64{0, 4 / 9., 2 / 9., 3 / 9.}},
		{"top-p tiny takes one", func(s *Sampling) { s.TopP = 1e-6 }, nil, []float64{0, 1, 0, 0}},
		{"min-p 0.6 takes two", func(s *Sampling) { s.MinP = 0.6 }, nil, []float64{0, 4 / 7., 0, 3 / 7.}},
		{"min-p before temperature", func(s *Sampling) { s.MinP = 0.6; s.Temperature = 0.5 }, nil, []float64{0, 16 / 25., 0, 9 / 25.}},
		{"penalty 2 on a positive logit takes the root", func(s *Sampling) { s.RepeatPenalty = 2 }, []int32{1, 1}, []float64{1 / 8., 2 / 8., 2 / 8., 3 / 8.}},
		{"penalty looks back so far only", func(s *Sampling) { s.RepeatPenalty = 2; s.RepeatLastN = 1 }, []int32{1, 0}, []float64{0.1, 0.4, 0.2, 0.3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := DefaultSampling()
			s.Seed = 7
			c.change(&s)
			const n = 20000
			got := frequencies(t, s, logits, c.recent, n)
			chi2 := 0.0
			for i, p := range c.want {
				if p == 0 {
					if got[i] > 0 {
						t.Errorf("token %d came %g of the time, want never", i, got[i])
					}
					continue
				}
				chi2 += (got[i] - p) * (got[i] - p) / p * n
			}
			if chi2 > 16.3 { // 0.1 % for three degrees of freedom
				t.Errorf("frequencies %v, want %v (chi² %.1f)", got, c.want, chi2)
			}
		})
	}
}

func TestSeed(t *testing.T) {
	logits := make([]float32, 50)
	draw := func(seed uint64) (ids []int32) {
		s := DefaultSampling()
		s.Seed = seed
		smp := newSampler(s, nil, len(logits))
		for range 20 {
			id, err := smp.next(slices.Clone(logits), nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	if a, b := draw(1), draw(1); !slices.Equal(a, b) {
		t.Errorf("one seed gave %v and %v", a, b)
	}
	if a, b := draw(1), draw(2); slices.Equal(a, b) {
		t.Errorf("two seeds gave the same: %v", a)
	}
}

func TestSamplingValidate(t *testing.T) {
	for want, change := range map[string]func(*Sampling){
		"temperature":    func(s *Sampling) { s.Temperature = -1 },
		"top-k":          func(s *Sampling) { s.TopK = -1 },
		"top-p":          func(s *Sampling) { s.TopP = 0 },
		"min-p":          func(s *Sampling) { s.MinP = 2 },
		"repeat-penalty": func(s *Sampling) { s.RepeatPenalty = 0 },
		"repeat-last-n":  func(s *Sampling) { s.RepeatLastN = -2 },
	} {
		s := DefaultSampling()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s out of range: error %v", want, err)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	const vocab = 200_000
	for _, c := range []struct {
		name   string
		change func(*Sampling)
	}{
		{"greedy", func(s *Sampling) { s.Temperature = 0 }},
		{"plain", func(*Sampling) {}},
		{"top-k 40", func(s *Sampling) { s.TopK = 40 }},
		{"top-p 0.95", func(s *Sampling) { s.TopP = 0.95 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := DefaultSampling()
			c.change(&s)
			smp := newSampler(s, nil, vocab)
			src, logits := make([]float32, vocab), make([]float32, vocab)
			for i := range src {
				src[i] = float32(smp.rng.NormFloat64() * 3)
			}
			b.ReportAllocs()
			for b.Loop() {
				copy(logits, src)
				if _, err := smp.next(logits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
