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
			s := 0.0
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

// convTable lays the states of several sequences out as ShortConv's table:
// for each a ring of size rows, then a zero row; pos is the next step of each.
// It returns the table, and the rows to read, which are the new ones too if back is
// set, and to write.
func convTable(states [][]float32, pos []int, n, channels, K, size int, back bool) (table []float32, read []int32, write []int64) {
	for s, state := range states {
		base := s * (size + 1)
		rows := make([]float32, (size+1)*channels)
		for j := range K - 1 {
			if p := pos[s] - (K - 1) + j; p >= 0 {
				for c := range channels {
					rows[p%size*channels+c] = state[c*(K-1)+j]
				}
				read = append(read, int32(base+p%size))
			} else {
				read = append(read, int32(base+size))
			}
		}
		table = append(table, rows...)
		m := min(n, size)
		for i := n - m; i < n; i++ {
			write = append(write, int64(base+(pos[s]+i)%size))
			if back {
				read = append(read, int32(base+(pos[s]+i)%size))
			}
		}
	}
	return table, read, write
}

func TestShortConv(t *testing.T) {
	const size = 11 // rows of a ring
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, n := range []int{1, 2, 3, 4, 5, 37, 260} {
			for _, seqs := range []int{1, 3} {
				for _, c := range []struct {
					K    int
					back bool // new rows are read back
				}{{3, false}, {4, false}, {4, true}} {
					K := c.K
					if c.back && n > size-(K-1) {
						continue
					}
					form := map[string]func(g *binding.Graph, x, w, table, read, write *binding.Tensor) *binding.Tensor{"": ShortConv, " composed": composedConv}
					for name, conv := range form {
						t.Run(fmt.Sprintf("n=%d sequences=%d K=%d back=%v%s", n, seqs, K, c.back, name), func(t *testing.T) {
							const channels = 128
							b := newBench(t, be)
							x := b.floats(1, channels, int64(n), int64(seqs))
							w := b.floats(1, int64(K), channels)
							var states [][]float32
							pos := []int{25, 1, 0}[:seqs]
							for s := range seqs {
								state := b.floats(1, int64(K-1), channels)
								for c := range channels {
									for j := range K - 1 {
										if pos[s]-(K-1)+j < 0 { // before the beginning
											state[c*(K-1)+j] = 0
										}
									}
								}
								states = append(states, state)
							}
							rows, read, write := convTable(states, pos, n, channels, K, size, c.back)
							table := b.persistent(binding.F32, rows, channels, int64(len(rows)/channels))
							got := b.run(conv(b.g, b.input(x, channels, int64(n), int64(seqs)), b.persistent(binding.F32, w, int64(K), channels), table,
								b.inputI32(read, int64(len(read))), b.inputI64(write, int64(len(write)))))
							after := make([]float32, len(rows))
							table.Floats(after)
							for s := range seqs {
								want, next := refShortConv(x[s*n*channels:(s+1)*n*channels], w, states[s], n, channels, K)
								closeTo(t, fmt.Sprint("y: sequence ", s), got[0][s*n*channels:(s+1)*n*channels], want, 1e-6)
								for j := range K - 1 {
									p := pos[s] + n - (K - 1) + j
									if p < 0 {
										continue
									}
									for c := range channels {
										if have := after[(s*(size+1)+p%size)*channels+c]; have != float32(next[c*(K-1)+j]) {
											t.Fatalf("sequence %d: the table has %g for step %d, want %g", s, have, p, next[c*(K-1)+j])
										}
									}
								}
							}
						})
					}
				}
			}
		}
	})
}

// TestShortConvByHand: K 4, weights 1, 10, 100, 1000; the last weight belongs to
// the current row.
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
		table := b.persistent(binding.F32, make([]float32, 9*channels), channels, 9)
		got := b.run(ShortConv(b.g, b.input(x, channels, 3, 1), b.persistent(binding.F32, w, 4, channels), table,
			b.inputI32([]int32{8, 8, 8}, 3), b.inputI64([]int64{0, 1, 2}, 3)))
		for i, want := range []float64{1000, 2100, 3210} {
			closeTo(t, fmt.Sprint("y: row ", i), got[0][i*channels:i*channels+1], []float64{want}, 0)
		}
	})
}
