package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// clockwork is a machine with a clock of its own that makes rounds as pace wants
// them. The unit of time is a round without guesses.
type clockwork struct {
	cost  func(n int) float64
	build float64 // of a graph that is not one of the last two
	late  float64 // of a depth that is behind by as many rows as it can be, to catch up
	noise float64
	right []float64 // share of guesses that are right, by how far ahead

	rng    *rand.Rand
	graphs [2]int
	behind [MaxDraft]float64 // rows, by depth
	time   float64
	tokens float64
}

// round makes a round of n guesses.
func (c *clockwork) round(n int, note func(depth int, right bool)) (tokens, seconds float64) {
	tokens = 1
	for d := range n {
		hit := c.rng.Float64() < c.right[d]
		note(d, hit)
		if !hit {
			break
		}
		tokens++
	}
	seconds = c.cost(n) * (1 + c.noise*c.rng.Float64())
	if i := slices.Index(c.graphs[:], n); i < 0 {
		c.graphs = [2]int{n, c.graphs[0]}
		seconds += c.build
	} else if i == 1 {
		c.graphs = [2]int{n, c.graphs[0]}
	}
	const most = 96
	for d := range c.behind {
		if d < n {
			seconds += c.late * min(c.behind[d]/most, 1)
			c.behind[d] = 0
		} else {
			c.behind[d] += tokens
		}
	}
	c.time += seconds
	c.tokens += tokens
	return tokens, seconds
}

// truth is the speed with n guesses.
func (c *clockwork) truth(n int) float64 {
	sum, all := 1.0, 1.0
	for _, share := range c.right[:n] {
		all *= share
		sum += all
	}
	return sum / (c.cost(n) * (1 + c.noise/2))
}

// run lets p choose until there are so many tokens.
func (c *clockwork) run(p *pace, tokens int) {
	for end := c.tokens + float64(tokens); c.tokens < end; {
		n := p.n
		got, seconds := c.round(n, p.right.note)
		p.note(n, got, seconds)
	}
}

// Machines: rounds by their guesses, with what guessing itself takes, and what a new
// graph and catching up take.
var machines = []struct {
	name  string
	cost  func(n int) float64
	build float64
	late  float64
}{
	{"a GPU that waits for launches", func(n int) float64 { return 1 + 0.02*float64(n) }, 2, 0.5},
	{"a GPU", func(n int) float64 { return 1 + 0.2*float64(n) + 0.1*float64(min(n, 1)) }, 2, 0.3},
	{"a CPU", func(n int) float64 { return 1 + 0.35*float64(n) + 0.15*float64(min(n, 1)) }, 0.2, 1.2},
	{"a row costs as much as a step", func(n int) float64 { return 1 + float64(n) }, 0.2, 1.2},
	{"a GPU whose steps of two rows take 2.7 of one", func(n int) float64 { return 1 + 1.7*float64(min(n, 1)) + 0.1*float64(max(n-1, 0)) }, 2, 0.5},
}

var regimes = [][]float64{
	{0, 0, 0}, {0.3, 0.3, 0.3}, {0.6, 0.6, 0.6}, {0.85, 0.7, 0.6}, {0.9, 0.9, 0.9}, {0.99, 0.99, 0.99}, {1, 1, 1},
}

const seeds = 20

// TestPaceSteady: wherever guesses are right equally often all the time it is, over
// 500 tokens from the start, never slower than 0.97 of no guesses, and in the long
// run 0.95 of the best number.
func TestPaceSteady(t *testing.T) {
	for _, m := range machines {
		for _, right := range regimes {
			for most := 1; most <= 3; most++ {
				t.Run(fmt.Sprintf("%s/%v/%d", m.name, right, most), func(t *testing.T) {
					long, best := 0.0, 0.0
					for seed := range uint64(seeds) {
						c := &clockwork{cost: m.cost, build: m.build, late: m.late, noise: 0.1, right: right, rng: rand.New(rand.NewPCG(seed, 2))}
						p := newPace(most, &acceptance{}, &purse{stake})
						c.run(p, 500)
						if got, plain := c.tokens/c.time, c.truth(0); got < 0.97*plain {
							t.Errorf("seed %d: %.3f of no guesses over 500 tokens", seed, got/plain)
						}
						c.run(p, 3500)
						from, start := c.tokens, c.time
						c.run(p, 4000)
						long += (c.tokens - from) / (c.time - start) / seeds
						for n := range most + 1 {
							best = max(best, c.truth(n))
						}
					}
					if long < 0.95*best {
						t.Errorf("%.3f of the best number", long/best)
					}
				})
			}
		}
	}
}

// TestPaceLate: where guesses that were not wanted for long have much to catch up with
// the number in the long run is still nearly the best.
func TestPaceLate(t *testing.T) {
	for _, m := range machines {
		for _, right := range regimes {
			t.Run(fmt.Sprintf("%s/%v", m.name, right), func(t *testing.T) {
				long, best := 0.0, 0.0
				for seed := range uint64(seeds) {
					c := &clockwork{cost: m.cost, build: m.build, late: 3 * m.late, noise: 0.1, right: right, rng: rand.New(rand.NewPCG(seed, 2))}
					p := newPace(3, &acceptance{}, &purse{stake})
					c.run(p, 4000)
					from, start := c.tokens, c.time
					c.run(p, 4000)
					long += (c.tokens - from) / (c.time - start) / seeds
				}
				for n := range 4 {
					best = max(best, (&clockwork{cost: m.cost, noise: 0.1, right: right}).truth(n))
				}
				if long < 0.92*best {
					t.Errorf("%.3f of the best number", long/best)
				}
			})
		}
	}
}

// TestPaceChanges: guesses that are right at times and wrong at times: over every
// 500 tokens it is not slower than 0.97 of no guesses.
func TestPaceChanges(t *testing.T) {
	for _, m := range machines {
		for _, length := range []int{20, 60, 250, 500, 1500} {
			t.Run(fmt.Sprintf("%s/every %d", m.name, length), func(t *testing.T) {
				for seed := range uint64(seeds) {
					rng := rand.New(rand.NewPCG(seed, 3))
					c := &clockwork{cost: m.cost, build: m.build, late: m.late, noise: 0.1, rng: rand.New(rand.NewPCG(seed, 4))}
					p := newPace(2, &acceptance{}, &purse{stake})
					type point struct{ tokens, time float64 }
					points := []point{{}}
					for range 6000 / length {
						c.right = regimes[rng.IntN(len(regimes))]
						for range length / 20 {
							c.run(p, 20)
							points = append(points, point{c.tokens, c.time})
						}
					}
					plain := c.truth(0)
					for i := range points[:len(points)-25] {
						a, b := points[i], points[i+25]
						if got := (b.tokens - a.tokens) / (b.time - a.time); got < 0.965*plain {
							t.Fatalf("seed %d: %.3f of no guesses over %.0f tokens from %.0f on", seed, got/plain, b.tokens-a.tokens, a.tokens)
						}
					}
				}
			})
		}
	}
}

// TestPaceTogether: the number of sequences in a step changes, and each has to be
// learned; what the search costs is bounded for all together.
func TestPaceTogether(t *testing.T) {
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 5))
				right, purse := &acceptance{}, &purse{stake}
				time, tokens := 0.0, 0.0
				paces := map[int]*pace{}
				clocks := map[int]*clockwork{}
				for tokens < 500 {
					seqs := 1 + rng.IntN(4)
					if paces[seqs] == nil {
						paces[seqs] = newPace(2, right, purse)
						clocks[seqs] = &clockwork{cost: m.cost, build: m.build, late: m.late, noise: 0.1, right: regimes[seed%3], rng: rng}
					}
					c := clocks[seqs]
					was, before := c.tokens, c.time
					c.run(paces[seqs], 10+rng.IntN(40))
					tokens, time = tokens+c.tokens-was, time+c.time-before
				}
				if got, plain := tokens/time, 1/1.05; got < 0.97*plain {
					t.Errorf("seed %d: %.3f of no guesses", seed, got/plain)
				}
			}
		})
	}
}

// TestPaceFollows: when guesses stop being right it stops guessing, and begins
// again when they are right again.
func TestPaceFollows(t *testing.T) {
	c := &clockwork{cost: func(n int) float64 { return 1 + 0.3*float64(n) }, right: []float64{1, 1}, rng: rand.New(rand.NewPCG(1, 1))}
	p := newPace(2, &acceptance{}, &purse{stake})
	for _, phase := range []struct {
		right  []float64
		tokens int
		want   int
	}{{[]float64{1, 1}, 300, 2}, {[]float64{0, 0}, 60, 0}, {[]float64{1, 1}, 1500, 2}} {
		c.right = phase.right
		c.run(p, phase.tokens)
		if p.settled != phase.want {
			t.Fatalf("settled on %d where %v are right, want %d", p.settled, phase.right, phase.want)
		}
	}
}

// TestPaceRoom: rounds that could not have as many guesses as wanted count for
// what they were.
func TestPaceRoom(t *testing.T) {
	p := newPace(2, &acceptance{}, &purse{stake})
	for i := range 500 {
		p.note(0, 1, 1+float64(i)/500)
	}
	if p.n != 1 || p.cost[1] != 0 || p.cost[0] < 1.9 {
		t.Errorf("wants %d guesses, costs %v, want a measurement of 1 to wait, and the cost of none", p.n, p.cost[:3])
	}
}

// TestPaceSlower: what makes all rounds slower, as a longer text does, is no reason
// against guesses.
func TestPaceSlower(t *testing.T) {
	slower := 1.0
	c := &clockwork{cost: func(n int) float64 { return slower * (1 + 0.3*float64(n)) }, right: []float64{0.8, 0.8}, rng: rand.New(rand.NewPCG(1, 1))}
	p := newPace(2, &acceptance{}, &purse{stake})
	c.run(p, 300)
	for range 100 {
		slower *= 1.02
		c.run(p, 20)
		if p.settled == 0 {
			t.Fatalf("no guesses any more where rounds are %.2f times slower", slower)
		}
	}
}
