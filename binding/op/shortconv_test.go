package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// refShortConv works on x [n, channels] row-major, w [channels, K] and the
// state [channels, K-1], and returns y and the next state.
func refShortConv(x, w, state []float32, n, channels, K int) (y, next []float64) {
	at := func(t, c int) float64 { // input at time t, from the state before 0
		if t < 0 {
			return float64(state[c*(K-1)+K-1+t])
		}
		return float64(x[t*channels+c])
	}
	for t := range n {
		for c := range channels {
			s := at(t, c)
			for j := range K {
				s += float64(w[c*K+j]) * at(t-(K-1)+j, c)
			}
			y = append(y, s)
		}
	}
	for c := range channels {
		for j := range K - 1 {
			next = append(next, at(n-(K-1)+j, c))
		}
	}
	return y, next
}

func TestShortConv(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, n := range []int{1, 2, 3, 4, 5, 37, 260} {
			for _, channels := range []int{128, 512} {
				for _, K := range []int{3, 4} {
					t.Run(fmt.Sprintf("n=%d channels=%d K=%d", n, channels, K), func(t *testing.T) {
						b := newBench(t, be)
						x := b.floats(1, int64(channels), int64(n))
						w := b.floats(1, int64(K), int64(channels))
						s := b.floats(1, int64(K-1), int64(channels))
						state := b.persistent(binding.F32, s, int64(K-1), int64(channels))
						y := ShortConv(b.g, b.input(x, int64(channels), int64(n)), b.persistent(binding.F32, w, int64(K), int64(channels)), state)
						got := b.run(y)
						next := make([]float32, len(s))
						state.Floats(next)
						wantY, wantNext := refShortConv(x, w, s, n, channels, K)
						closeTo(t, "y", got[0], wantY, 1e-6)
						closeTo(t, "state", next, wantNext, 0)
					})
				}
			}
		}
	})
}

// TestShortConvByHand: K 4, one channel repeated, weights 1, 10, 100, 1000; the
// last weight belongs to the current row, and the input itself is added.
func TestShortConvByHand(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		const channels = 128
		var x, w []float32
		for _, v := range []float32{1, 2, 3} {
			for range channels {
				x = append(x, v)
			}
		}
		for range channels {
			w = append(w, 1, 10, 100, 1000)
		}
		state := b.persistent(binding.F32, make([]float32, 3*channels), 3, channels)
		got := b.run(ShortConv(b.g, b.input(x, channels, 3), b.persistent(binding.F32, w, 4, channels), state))
		for i, want := range []float64{1001, 2102, 3213} {
			closeTo(t, fmt.Sprint("row ", i), got[0][i*channels:i*channels+1], []float64{want}, 0)
		}
	})
}
