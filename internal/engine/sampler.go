package engine

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// workspace is the memory for choosing a token. All samplers of an engine share
// one: it holds nothing from token to token.
type workspace struct {
	logits []float32 // [vocab], changed by the stages
	counts []int32   // [vocab], 0
	cands  []candidate
	best   []candidate
}

func newWorkspace(vocab int) *workspace {
	return &workspace{
		logits: make([]float32, vocab), counts: make([]int32, vocab),
		cands: make([]candidate, 0, vocab), best: make([]candidate, 0, vocab),
	}
}

func (w *workspace) vocab() int { return len(w.logits) }

// candidate is a token that may be chosen.
type candidate struct {
	id    int32
	logit float32
	p     float64 // not normalised
}

// bias is added to a logit.
type bias struct {
	id int32
	v  float32
}

// sampler chooses the tokens of one answer.
type sampler struct {
	Sampling
	rng    *rand.Rand
	never  []int32
	biases []bias
}

func newSampler(s Sampling, never []int32, biases map[int32]float32) *sampler {
	smp := &sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0)), never: never}
	for id, v := range biases {
		smp.biases = append(smp.biases, bias{id, v})
	}
	return smp
}

// next chooses a token. Equal logits count in the order of ids. ErrNotFinite
// says that no token has a finite logit.
//
//	logits:  [vocab], not changed
//	ids:     the tokens so far, the last at the end
//	answer:  where the answer begins in them
//	allowed: a bit for each id that may be chosen; nil: all
func (s *sampler) next(w *workspace, logits []float32, ids []int32, answer int, allowed []uint64) (int32, error) {
	if s.plainGreedy() {
		if id, err := argmax(logits); err != nil || s.mayBe(id, allowed) {
			return id, err
		}
	}
	copy(w.logits, logits)
	for _, b := range s.biases {
		w.logits[b.id] += b.v
	}
	for _, id := range s.never {
		w.logits[id] = float32(math.Inf(-1))
	}
	if allowed != nil {
		keepAllowed(w.logits, allowed)
	}
	s.penalise(w, ids, answer)
	if s.Temperature == 0 {
		return argmax(w.logits)
	}
	c, err := s.candidates(w)
	if err != nil {
		return 0, err
	}
	return s.draw(c), nil
}

// keepAllowed takes the others out of the choice.
func keepAllowed(logits []float32, allowed []uint64) {
	for i, word := range allowed {
		for out := ^word; out != 0; out &= out - 1 {
			id := i*64 + bits.TrailingZeros64(out)
			if id >= len(logits) {
				return
			}
			logits[id] = float32(math.Inf(-1))
		}
	}
}

// errNoLogit is of a choice among nothing.
var errNoLogit = fmt.Errorf("no token has a finite logit: %w", ErrNotFinite)

// checkFinite is an error if a logit is NaN or infinite: the weights or the
// state are broken, and no token of such a row means anything. Minus infinity is
// a probability of 0.
func checkFinite(logits []float32) error {
	const exponent, sign = 0x7f800000, 1 << 31
	for id, l := range logits {
		if b := math.Float32bits(l); b&exponent == exponent && b != exponent|sign {
			return fmt.Errorf("the logit of token %d is %v: %w", id, l, ErrNotFinite)
		}
	}
	return nil
}

// plainGreedy reports that the best logit decides, if it is one that may be chosen.
func (s *sampler) plainGreedy() bool {
	return s.Temperature == 0 && len(s.biases) == 0 && s.PresencePenalty == 0 && s.FrequencyPenalty == 0 &&
		(s.RepeatPenalty == 1 || s.RepeatLastN == 0)
}

func (s *sampler) mayBe(id int32, allowed []uint64) bool {
	return !slices.Contains(s.never, id) && (allowed == nil || allowed[id/64]>>(id%64)&1 == 1)
}

// argmax is the first of the largest logits.
func argmax(logits []float32) (int32, error) {
	// Four at a time do not wait for each other.
	m0 := float32(math.Inf(-1))
	m1, m2, m3 := m0, m0, m0
	rest := logits
	for ; len(rest) >= 4; rest = rest[4:] {
		l := (*[4]float32)(rest)
		if l[0] > m0 {
			m0 = l[0]
		}
		if l[1] > m1 {
			m1 = l[1]
		}
		if l[2] > m2 {
			m2 = l[2]
		}
		if l[3] > m3 {
			m3 = l[3]
		}
	}
	best := max(m0, m1, m2, m3)
	for _, l := range rest {
		best = max(best, l)
	}
	if math.IsInf(float64(best), 0) {
		return 0, errNoLogit
	}
	return int32(slices.Index(logits, best)), nil
}

// better orders candidates by logit, then by id.
func better(a, b candidate) int {
	switch {
	case a.logit > b.logit:
		return -1
	case a.logit < b.logit:
		return 1
	}
	return int(a.id) - int(b.id)
}

func sortBest(c []candidate) { slices.SortFunc(c, better) }

// candidates returns those that the stages leave, at least one.
func (s *sampler) candidates(w *workspace) ([]candidate, error) {
	all := w.cands[:0]
	for i, l := range w.logits {
		if l > float32(math.Inf(-1)) {
			all = append(all, candidate{id: int32(i), logit: l})
		}
	}
	switch {
	case len(all) == 0:
		return nil, errNoLogit
	case s.TopK > 0 && s.TopK < len(all):
		best := selectBest(w.best[:0], all, s.TopK)
		return keepMinP(keepTopP(best, float64(s.TopP), sumExp(best, best[0].logit)), s.MinP), nil
	}
	return likelyEnough(nucleus(all, float64(s.TopP)), s.MinP), nil
}

// selectBest appends the best k of all to dst, the best first.
func selectBest(dst, all []candidate, k int) []candidate {
	for _, x := range all {
		dst = keepBest(dst, k, x)
	}
	sortBest(dst)
	return dst
}

// keepBest adds x to the heap of the best k so far, which has the worst on top.
func keepBest(h []candidate, k int, x candidate) []candidate {
	switch {
	case len(h) < k:
		h = append(h, x)
		siftUp(h)
	case k > 0 && better(x, h[0]) < 0:
		h[0] = x
		siftDown(h)
	}
	return h
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

// sumExp is Σ exp(logit - top).
func sumExp(c []candidate, top float32) float64 {
	sum := 0.0
	for _, x := range c {
		sum += math.Exp(float64(x.logit) - float64(top))
	}
	return sum
}

// keepTopP cuts the sorted candidates where their share of sum adds up to p; at
// least one stays.
func keepTopP(c []candidate, p, sum float64) []candidate {
	if p == 1 {
		return c
	}
	acc := 0.0
	for i, x := range c {
		if acc += math.Exp(float64(x.logit) - float64(c[0].logit)); acc >= p*sum {
			return c[:i+1]
		}
	}
	return c
}

// keepMinP cuts the sorted candidates below the share minP of the best; at
// least one stays.
func keepMinP(c []candidate, minP float32) []candidate {
	if minP == 0 {
		return c
	}
	least := leastLogit(c[0].logit, minP)
	for i, x := range c {
		if x.logit < least {
			return c[:max(i, 1)]
		}
	}
	return c
}

// draw picks a candidate by its probability at the temperature.
func (s *sampler) draw(c []candidate) int32 {
	top := best(c)
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
