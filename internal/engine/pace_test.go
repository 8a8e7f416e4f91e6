package engine

import (
	"math/rand/v2"
	"testing"
)

// TestPace: on machines of different cost it comes to the number of guesses that
// is fastest, and where none pays the search costs next to nothing.
func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cost  func(n int) float64 // of a round
		right []float64
		want  int
		least float64 // of its speed, as a share of the best number's
	}{
		{"launches count, not rows", func(n int) float64 { return 1 + 0.02*float64(n) }, []float64{0.85, 0.7, 0.6}, 3, 0.96},
		{"a row costs half", func(n int) float64 { return 1 + 0.5*float64(n) }, []float64{0.85, 0.7, 0.6}, 1, 0.95},
		{"a row costs as much as a step", func(n int) float64 { return 1 + float64(n) }, []float64{0.85, 0.7, 0.6}, 0, 0.97},
		{"nothing is right", func(n int) float64 { return 1 + 0.1*float64(n) }, []float64{0, 0, 0}, 0, 0.97},
		{"all is right", func(n int) float64 { return 1 + 0.3*float64(n) }, []float64{1, 1, 1, 1, 1, 1, 1, 1}, 8, 0.95},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			p := newPace(len(tc.right), &acceptance{})
			time, tokens := 0.0, 0.0
			for range 4000 {
				n := p.n
				tokens++
				for d := range n {
					hit := rng.Float64() < tc.right[d]
					p.right.note(d, hit)
					if !hit {
						break
					}
					tokens++
				}
				seconds := tc.cost(n) * (1 + 0.1*rng.Float64())
				time += seconds
				p.note(n, seconds)
			}
			if p.settled != tc.want {
				t.Errorf("settled on %d guesses, want %d", p.settled, tc.want)
			}
			var truth acceptance
			for d, share := range tc.right {
				truth.share[d], truth.tested[d] = share, 1
			}
			best := truth.tokens(tc.want) / (tc.cost(tc.want) * 1.05)
			if got := tokens / time; got < tc.least*best {
				t.Errorf("%.3f tokens a second, want %.2f of %.3f", got, tc.least, best)
			}
		})
	}
}

// TestPaceFollows: when guesses stop being right it stops guessing, and begins
// again when they are right again.
func TestPaceFollows(t *testing.T) {
	p := newPace(2, &acceptance{})
	run := func(rounds int, right bool) {
		for range rounds {
			for d := range p.n {
				if p.right.note(d, right); !right {
					break
				}
			}
			p.note(p.n, 1+0.3*float64(p.n))
		}
	}
	run(300, true)
	if p.settled != 2 {
		t.Fatalf("settled on %d with right guesses, want 2", p.settled)
	}
	run(200, false)
	if p.settled != 0 {
		t.Fatalf("settled on %d with wrong guesses, want 0", p.settled)
	}
	run(3000, true)
	if p.settled != 2 {
		t.Errorf("settled on %d when they are right again, want 2", p.settled)
	}
}

// TestPaceRoom: rounds that could not have as many guesses as wanted count for
// what they were.
func TestPaceRoom(t *testing.T) {
	p := newPace(2, &acceptance{})
	for range 500 {
		p.note(0, 1)
	}
	if p.cost[1] != 0 || p.cost[2] != 0 || p.cost[0] == 0 {
		t.Errorf("costs %v, want that of no guesses only", p.cost[:3])
	}
}
