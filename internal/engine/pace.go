package engine

// How pace looks for the best number of guesses.
const (
	probeRounds = 3    // that are measured at another number, behind one whose graph is new
	lookRounds  = 16   // between two looks at what is known
	leastHold   = 128  // rounds at one number before its neighbours are measured
	mostHold    = 4096 // the same while that changes nothing
	worthwhile  = 1.02 // by which guessing has to be faster than not guessing
)

// acceptance is the share of guesses that were right, by how far ahead they
// were, among those whose predecessors were right.
type acceptance struct {
	share  [MaxDraft]float64
	tested [MaxDraft]int
}

// firstShare stands for the share of what was never tested.
const firstShare = 0.8

// note takes the result of one guess. Old results fade.
func (a *acceptance) note(depth int, right bool) {
	const memory = 64
	a.tested[depth]++
	hit := 0.0
	if right {
		hit = 1
	}
	a.share[depth] += (hit - a.share[depth]) / float64(min(a.tested[depth], memory))
}

// tokens is the expected number of tokens of a round with n guesses.
func (a *acceptance) tokens(n int) float64 {
	sum, all := 1.0, 1.0
	for d := range n {
		share := firstShare
		if a.tested[d] > 0 {
			share = a.share[d]
		}
		all *= share
		sum += all
	}
	return sum
}

// pace finds how many tokens to guess ahead: the number with the most tokens a
// second, of what rounds were measured to take and guesses to be worth. It
// begins without guesses, climbs as long as that pays, and measures the
// neighbours of what it has settled on from time to time.
type pace struct {
	most  int
	right *acceptance
	cost  [MaxDraft + 1]float64 // seconds of a round by its guesses; 0: unknown

	n       int   // guesses of the round to come
	settled int   // the best number at the last decision
	plan    []int // numbers to measure
	rest    int   // rounds left of what it is at
	hold    int   // rounds until the next measurement
	probing bool
	fresh   bool // the next round's graph is new
}

func newPace(most int, right *acceptance) *pace {
	return &pace{most: most, right: right, hold: leastHold, probing: true, rest: probeRounds, fresh: true, plan: []int{min(1, most)}}
}

// rate is the tokens a second with n guesses, 0 if it is not known.
func (p *pace) rate(n int) float64 {
	if p.cost[n] == 0 {
		return 0
	}
	return p.right.tokens(n) / p.cost[n]
}

// best is the fastest number that was measured.
func (p *pace) best() int {
	best, rate := 0, p.rate(0)*worthwhile
	for n := 1; n <= p.most; n++ {
		if r := p.rate(n); r > rate {
			best, rate = n, r
		}
	}
	return best
}

// note takes the time of a round with n guesses, which may be fewer than wanted.
func (p *pace) note(n int, seconds float64) {
	if p.fresh {
		p.fresh = n != p.n
		return
	}
	if c := &p.cost[n]; *c == 0 {
		*c = seconds
	} else {
		const memory, outlier = 8, 3
		*c += (min(seconds, outlier**c) - *c) / memory
	}
	if p.rest--; p.rest <= 0 {
		p.move()
	} else if !p.probing && p.rest%lookRounds == 0 {
		if b := p.best(); b != p.n {
			p.settle(b)
		}
	}
}

// move goes on to the next measurement, or to what is best.
func (p *pace) move() {
	if !p.probing { // the time of one number is over
		p.probing = true
		for _, n := range []int{p.settled - 1, p.settled + 1} {
			if n >= 0 && n <= p.most {
				p.plan = append(p.plan, n)
			}
		}
	} else if len(p.plan) == 0 {
		if b := p.best(); b < p.most && p.cost[b+1] == 0 && b > 0 {
			p.plan = append(p.plan, b+1)
		}
	}
	if len(p.plan) > 0 {
		p.set(p.plan[0], probeRounds)
		p.plan = p.plan[1:]
		return
	}
	p.settle(p.best())
}

// settle stays at n, the longer the more often it was best.
func (p *pace) settle(n int) {
	if p.hold = min(2*p.hold, mostHold); n != p.settled {
		p.hold = leastHold
	}
	p.settled, p.probing, p.plan = n, false, nil
	p.set(n, p.hold)
}

func (p *pace) set(n, rounds int) {
	p.fresh = n != p.n
	p.n, p.rest = n, rounds
}
