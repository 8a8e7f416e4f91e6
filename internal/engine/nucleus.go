package engine

import (
	"math"
	"slices"
)

// nucleus keeps the most likely candidates that together have the share p of all
// probability, in no order. They are found by parts, as quickselect finds the k-th
// of all: each round splits at one of them and goes on in the part where the sum is
// reached, so that the time grows with the candidates however many are kept.
func nucleus(c []candidate, p float64) []candidate {
	if p == 1 {
		return c
	}
	top := best(c)
	sum := 0.0
	for i := range c {
		c[i].p = math.Exp(float64(c[i].logit) - float64(top))
		sum += c[i].p
	}
	need := p * sum
	lo, hi := 0, len(c) // below lo is kept, from hi on is not
	const few = 64
	for hi-lo > few {
		n, mass := split(c[lo:hi])
		if mass >= need {
			hi = lo + n
		} else {
			need -= mass
			lo += n
		}
	}
	sortBest(c[lo:hi])
	for i := lo; i < hi; i++ {
		if need -= c[i].p; need <= 0 {
			return c[:i+1]
		}
	}
	return c[:hi]
}

// split puts the better ones of more than two candidates first. It returns how many
// these are, at least one and not all, and their probability.
func split(c []candidate) (n int, mass float64) {
	// The median of three is between the others: neither part is empty.
	three := [3]candidate{c[0], c[len(c)/2], c[len(c)-1]}
	sortBest(three[:])
	pivot := three[1]
	for i, x := range c {
		if better(x, pivot) < 0 {
			mass += x.p
			c[i], c[n] = c[n], x
			n++
		}
	}
	return n, mass
}

// best is the largest logit.
func best(c []candidate) float32 {
	top := float32(math.Inf(-1))
	for _, x := range c {
		top = max(top, x.logit)
	}
	return top
}

// likelyEnough keeps those with the share minP of the best one's probability, in
// no order; at least one stays.
func likelyEnough(c []candidate, minP float32) []candidate {
	if minP == 0 {
		return c
	}
	least := leastLogit(best(c), minP)
	return slices.DeleteFunc(c, func(x candidate) bool { return x.logit < least })
}

// leastLogit is that of the share minP of the best one's probability.
func leastLogit(top, minP float32) float32 { return top + float32(math.Log(float64(minP))) }
