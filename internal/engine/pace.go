package engine

import (
	"math"
	"slices"
)

// How pace looks for the best number of guesses.
const (
	probeRounds = 3    // that are measured at another number, behind one whose graph is new
	firstRounds = 8    // that are measured without guesses before there are any
	lookRounds  = 8    // between two looks at what is known
	leastHold   = 64   // rounds at one number before others are measured again
	mostHold    = 4096 // the same while that changes nothing
	worthwhile  = 1.02 // by which a number has to be faster than what is done now
)

// What guessing may lose, in rounds without guesses: so many at first, and later so
// many of what it has won, and a share of those that are made without guesses. The
// search leaves something for what is settled on. Over 500 tokens from the start this
// is less than 2 %, and what measurements and chance add stays below 3 %.
const (
	stake    = 7
	savings  = 10
	reserve  = 4
	interest = 0.005
)

// purse is what guessing may still lose. Steps of any number of sequences share it.
type purse struct{ rounds float64 }

// pace finds how many tokens to guess ahead: the number with the most tokens a
// second, of what rounds were measured to take and guesses to be worth. It
// begins without guesses, climbs as long as that may pay, and measures others
// than what it has settled on again from time to time. What that costs, and what
// guesses lose that have become wrong, is paid from a purse into which goes what
// guesses win; when it is empty there are none until it can pay for a trial.
type pace struct {
	most  int
	right *acceptance
	purse *purse
	cost  [MaxDraft + 1]float64 // seconds of a round by its guesses; 0: unknown
	age   [MaxDraft + 1]int     // rounds since that was measured
	extra [MaxDraft + 1]float64 // what the first round at a number takes longer, in rounds without guesses: a new graph, and guessing that has to catch up

	n       int // guesses of the round to come
	settled int // the best number at the last decision
	rest    int // rounds left of what it is at
	hold    int // rounds until the next measurement
	probing bool
	fresh   bool // the next round's graph is new

	first float64   // seconds of the round whose graph was
	trial []float64 // of the rounds of a measurement
	known float64   // cost of the number that is measured, before; 0: unknown
}

func newPace(most int, right *acceptance, purse *purse) *pace {
	p := &pace{most: most, right: right, purse: purse, hold: leastHold / 2, probing: true, rest: firstRounds, fresh: true}
	for n := range p.extra {
		p.extra[n] = 1
	}
	return p
}

// expect is what a round with n guesses takes, in rounds without guesses: what it was
// measured to, but more than with one guess less, and never measured for little more.
func (p *pace) expect(n int) float64 {
	const least, first, each = 0.02, 0.2, 0.1
	switch {
	case n == 0:
		return 1
	case p.cost[n] > 0:
		return max(p.cost[n]/p.cost[0], p.expect(n-1)+least)
	case n == 1:
		return 1 + first
	}
	return p.expect(n-1) + each
}

// rate is the expected speed with n guesses, that without being 1.
func (p *pace) rate(n int) float64 { return p.right.tokens(n) / p.expect(n) }

// price is what measuring n guesses is expected to lose, in rounds without guesses.
// Of what was never measured nothing good is expected here: that it takes half as
// much more as the number below does.
func (p *pace) price(n int) float64 {
	cost, extra := p.expect(n), p.extra[n]
	if n > 1 && p.cost[n] == 0 {
		cost = p.expect(n-1) + (p.expect(n-1)-p.expect(n-2))/2
		extra = max(extra, p.extra[n-1])
	}
	return extra + p.extra[p.settled] + probeRounds*max(0, cost-p.right.tokens(n))
}

// best is the fastest number of those that were measured, unless the one that it has
// settled on is nearly as fast and faster than none.
func (p *pace) best() int {
	best := p.settled
	rate := p.rate(best) * worthwhile
	for n := range p.most + 1 {
		if r := p.rate(n); p.cost[n] > 0 && r > rate {
			best, rate = n, r
		}
	}
	if p.rate(best) < 1 {
		return 0
	}
	return best
}

// note takes a round with n guesses, which may be fewer than wanted: how many
// tokens it made for each sequence, and how long it took.
func (p *pace) note(n int, tokens, seconds float64) {
	p.pay(n, tokens, seconds)
	switch {
	case n != p.n && (p.fresh || p.probing): // nothing was found to guess
		p.follow(n, seconds)
		return
	case p.fresh:
		if p.fresh, p.first = false, seconds; !p.probing {
			p.learn()
		}
		return
	case p.probing:
		p.try(seconds)
	default:
		p.follow(n, seconds)
	}
	for m := range p.age {
		p.age[m]++
	}
	p.rest--
	switch {
	case p.probing && (p.rest <= 0 || p.purse.rounds < 0 && p.n > 0):
		p.move()
	case p.probing:
	case p.purse.rounds < 0 && p.n > 0:
		p.right.doubt()
		p.settle(0)
	case p.rest <= 0:
		p.look()
	case p.rest%lookRounds == 0:
		if b := p.best(); b != p.n {
			p.settle(b)
		}
	}
}

// outlier bounds how many times longer than usual a round can be for what it counts.
const outlier = 3

// pay books what a round has won or lost.
func (p *pace) pay(n int, tokens, seconds float64) {
	plain := p.cost[0]
	if plain == 0 {
		return
	}
	switch c := p.cost[n]; {
	case n == 0 && !p.fresh:
		tokens, seconds = interest, 0
	case c > 0 && !p.fresh:
		seconds = min(seconds, outlier*c)
	}
	p.purse.rounds += tokens - seconds/plain
	p.purse.rounds = min(p.purse.rounds, savings)
}

// follow takes the time of a round with a number that was measured. All others
// follow with it: what makes one slower, as a longer text does, makes all so.
func (p *pace) follow(n int, seconds float64) {
	const memory = 8
	was := p.cost[n]
	if was == 0 {
		return
	}
	by := 1 + (min(seconds/was, outlier)-1)/memory
	for m := range p.cost {
		p.cost[m] *= by
	}
}

// try takes the time of a round of a measurement, which counts by the middle one of
// its rounds, and as a part only if it is not far from the measurements before.
func (p *pace) try(seconds float64) {
	p.trial = append(p.trial, seconds)
	c, m := &p.cost[p.n], median(p.trial)
	switch {
	case p.known == 0:
		*c = m // so far
	case len(p.trial) == probeRounds && math.Abs(m/p.known-1) > 0.25:
		*c = m
	case len(p.trial) == probeRounds:
		*c += (m - p.known) / 4
	}
}

// median is the lower one of the two in the middle, if there are two.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[(len(s)-1)/2]
}

// candidate is the number that promises most of those that are not settled on.
func (p *pace) candidate() int {
	best, rate := 0, 0.0
	for n := 1; n <= p.most; n++ {
		if r := p.rate(n); n != p.settled && r > rate {
			best, rate = n, r
		}
		if p.cost[n] == 0 {
			break
		}
	}
	return best
}

// look begins a measurement if it can be paid for: of what promises most, or, beside
// what pays, of the neighbour or of none, whichever was measured longest ago.
func (p *pace) look() {
	next, keep := p.candidate(), 0.0
	if p.settled > 0 {
		keep, next = reserve, 0
		for _, n := range []int{p.settled - 1, p.settled + 1} {
			if n <= p.most && p.age[n] > p.age[next] {
				next = n
			}
		}
	}
	if p.price(next) > p.purse.rounds-keep {
		p.rest = lookRounds
		return
	}
	p.probe(next)
}

// move ends a measurement and goes on to what is best, or to a number that was never
// measured, as long as that may be better.
func (p *pace) move() {
	if p.n > 0 {
		p.learn()
	}
	best := p.best()
	if n := slices.Index(p.cost[:p.most+1], 0); n > 0 && p.rate(n) > p.rate(best)*worthwhile && p.price(n) <= p.purse.rounds {
		p.probe(n)
		return
	}
	p.settle(best)
}

// learn takes what the first round at this number took longer than those behind it.
func (p *pace) learn() {
	took := max(p.first-p.cost[p.n], 0) / p.cost[0]
	p.extra[p.n] += (min(took, stake) - p.extra[p.n]) / 2
}

// probe measures n guesses.
func (p *pace) probe(n int) {
	p.trial, p.known, p.age[n] = p.trial[:0], p.cost[n], 0
	p.probing = true
	p.set(n, probeRounds)
}

// settle stays at n, the longer the more often it was best.
func (p *pace) settle(n int) {
	if p.hold = min(2*p.hold, mostHold); n != p.settled {
		p.hold = leastHold
	}
	p.settled, p.probing = n, false
	p.set(n, p.hold)
}

func (p *pace) set(n, rounds int) {
	p.fresh = n != p.n
	p.n, p.rest = n, rounds
}
