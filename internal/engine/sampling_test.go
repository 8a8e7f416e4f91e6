package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// choose is sampler.next with a workspace of its own, of an answer that has just begun.
func choose(s *sampler, logits []float32, prompt []int32) (int32, error) {
	return s.next(newWorkspace(len(logits)), logits, prompt, len(prompt), nil)
}

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
		{"all negative", []float32{-5, -4}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choose(newSampler(Sampling{TopP: 1, RepeatPenalty: 1}, c.never, nil), c.logits, nil)
			if err != nil || got != c.want {
				t.Errorf("chose %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

// TestNoFiniteLogit: a poisoned state is an error, never a token.
func TestNoFiniteLogit(t *testing.T) {
	for _, logits := range [][]float32{{nan, 1}, {1, nan}, {inf, 1}, {-inf, -inf, inf}} {
		if err := checkFinite(logits); !errors.Is(err, ErrNotFinite) {
			t.Errorf("logits %v: %v", logits, err)
		}
	}
	if err := checkFinite([]float32{-inf, 1, -math.MaxFloat32, math.MaxFloat32}); err != nil {
		t.Errorf("a probability of 0: %v", err)
	}
	for _, temp := range []float32{0, 1} {
		s := DefaultSampling()
		s.Temperature = temp
		if id, err := choose(newSampler(s, nil, nil), []float32{-inf, -inf}, nil); !errors.Is(err, ErrNotFinite) {
			t.Errorf("temperature %g: chose %d, %v", temp, id, err)
		}
	}
}

// frequencies draws n tokens.
func frequencies(t *testing.T, s Sampling, logits []float32, recent []int32, n int) []float64 {
	t.Helper()
	f := make([]float64, len(logits))
	smp, w := newSampler(s, nil, nil), newWorkspace(len(logits))
	for range n {
		id, err := smp.next(w, logits, recent, 0, nil)
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
		smp := newSampler(s, nil, nil)
		for range 20 {
			id, err := choose(smp, logits, nil)
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

		"presence-penalty":  func(s *Sampling) { s.PresencePenalty = nan },
		"frequency-penalty": func(s *Sampling) { s.FrequencyPenalty = 3 },
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

// TestNucleus: top-p and min-p leave what sorting all candidates would, also
// where many are left.
func TestNucleus(t *testing.T) {
	const vocab = 3000
	rng := rand.New(rand.NewPCG(1, 2))
	w := newWorkspace(vocab)
	for i := range w.logits {
		w.logits[i] = float32(math.Round(rng.NormFloat64()*20) / 10) // with equals
	}
	sorted := make([]candidate, vocab)
	for i, l := range w.logits {
		sorted[i] = candidate{id: int32(i), logit: l}
	}
	sortBest(sorted)
	for _, c := range []struct{ p, minP float32 }{{0.01, 0}, {0.5, 0}, {0.9, 0}, {0.9999, 0}, {1, 0.5}, {1, 0.01}, {0.5, 0.3}, {0.99, 1}} {
		s := DefaultSampling()
		s.TopP, s.MinP = c.p, c.minP
		got, err := newSampler(s, nil, nil).candidates(w)
		if err != nil {
			t.Fatal(err)
		}
		want := keepMinP(keepTopP(sorted, float64(c.p), sumExp(sorted, sorted[0].logit)), c.minP)
		sortBest(got)
		if !slices.EqualFunc(got, want, func(a, b candidate) bool { return a.id == b.id }) {
			t.Errorf("top-p %g, min-p %g: %d candidates, want %d", c.p, c.minP, len(got), len(want))
		}
	}
}

// TestPenalties: the changes of logits, against their formulas. The first two
// tokens are the prompt's.
func TestPenalties(t *testing.T) {
	ids := []int32{0, 1, 1, 2, 2, 2}
	logits := []float32{3, 3, 3, 3, -1}
	for _, c := range []struct {
		name   string
		change func(*Sampling)
		want   []float32
	}{
		{"presence", func(s *Sampling) { s.PresencePenalty = 0.5 }, []float32{3, 2.5, 2.5, 3, -1}},
		{"frequency", func(s *Sampling) { s.FrequencyPenalty = 0.5 }, []float32{3, 2.5, 1.5, 3, -1}},
		{"both", func(s *Sampling) { s.PresencePenalty, s.FrequencyPenalty = 1, -0.5 }, []float32{3, 2.5, 3.5, 3, -1}},
		{"repeat", func(s *Sampling) { s.RepeatPenalty, s.RepeatLastN = 2, -1 }, []float32{1.5, 1.5, 1.5, 3, -1}},
		{"all", func(s *Sampling) { s.RepeatPenalty, s.RepeatLastN, s.PresencePenalty = 2, 3, 1 }, []float32{3, 2, 0.5, 3, -1}},
	} {
		s := DefaultSampling()
		c.change(&s)
		smp, w := newSampler(s, nil, nil), newWorkspace(len(logits))
		for range 2 { // the second time finds a clean workspace
			copy(w.logits, logits)
			smp.penalise(w, ids, 2)
			if !slices.Equal(w.logits, c.want) {
				t.Errorf("%s: %v, want %v", c.name, w.logits, c.want)
			}
		}
	}
	smp, w := newSampler(Sampling{TopP: 1, RepeatPenalty: 2, RepeatLastN: -1}, nil, nil), newWorkspace(2)
	copy(w.logits, []float32{-1, 1})
	if smp.penalise(w, []int32{0, 7}, 1); !slices.Equal(w.logits, []float32{-2, 1}) {
		t.Errorf("a negative logit, and an id beyond the logits: %v", w.logits)
	}
}

// TestBias: a bias is added before anything else; what is never sampled stays so.
func TestBias(t *testing.T) {
	logits := []float32{1, 2, 3}
	for _, c := range []struct {
		bias map[int32]float32
		want int32
	}{
		{nil, 2},
		{map[int32]float32{0: 5}, 0},
		{map[int32]float32{2: -100}, 1},
		{map[int32]float32{3: 100}, 2},
	} {
		all := append(slices.Clone(logits), 0)
		id, err := choose(newSampler(Sampling{TopP: 1, RepeatPenalty: 1}, []int32{3}, c.bias), all, nil)
		if err != nil || id != c.want {
			t.Errorf("bias %v: chose %d, %v, want %d", c.bias, id, err, c.want)
		}
	}
}

// TestAllowed: only ids with a bit are chosen.
func TestAllowed(t *testing.T) {
	logits := make([]float32, 70)
	logits[3], logits[65] = 9, 5
	s := newSampler(Sampling{TopP: 1, RepeatPenalty: 1}, nil, nil)
	for _, c := range []struct {
		allowed []uint64
		want    int32
	}{{[]uint64{1 << 3, 2}, 3}, {[]uint64{1 << 4, 2}, 65}, {[]uint64{1 << 4, 0}, 4}} {
		if id, err := s.next(newWorkspace(70), logits, nil, 0, c.allowed); err != nil || id != c.want {
			t.Errorf("chose %d, %v, want %d", id, err, c.want)
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
		{"top-p 0.95, all equal", func(s *Sampling) { s.TopP = 0.95 }},
		{"penalties", func(s *Sampling) { s.TopK, s.RepeatPenalty, s.PresencePenalty, s.FrequencyPenalty = 40, 1.1, 0.5, 0.5 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := DefaultSampling()
			c.change(&s)
			smp, w := newSampler(s, nil, nil), newWorkspace(vocab)
			logits := make([]float32, vocab)
			for i := range logits {
				if c.name != "top-p 0.95, all equal" {
					logits[i] = float32(smp.rng.NormFloat64() * 3)
				}
			}
			ids := []int32{1, 2, 3, 4, 5}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := smp.next(w, logits, ids, 2, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
