package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
)

// spanLayout is where BandSpans finds keys: a cache whose cell is the position, a
// window's worth of them in order, or a ring.
type spanLayout struct {
	cells int
	cell  func(d *bandData, j int) int
	spans func(d *bandData, i int) [6]int32
	seen  bool // keys in order: blocks of queries look at what they see
}

// fullLayout: position j lies in cell j.
func fullLayout(c bandCase) spanLayout {
	return spanLayout{
		cells: c.pos + c.nQ + 9,
		cell:  func(_ *bandData, j int) int { return j },
		spans: func(d *bandData, i int) [6]int32 {
			first := 0
			if d.window > 0 {
				first = max(0, d.pos+i-d.window+1)
			}
			n := d.pos + i + 1 - first
			return [6]int32{int32(first), int32(n), int32(n - 1)}
		},
	}
}

// ringLayout: position j lies in cell j mod R.
func ringLayout(c bandCase) spanLayout {
	R := c.window + c.nQ + 5
	return spanLayout{
		cells: R + 3,
		cell: func(d *bandData, j int) int {
			if j < d.pos+d.nQ-R {
				return -1 // overwritten
			}
			return j % R
		},
		spans: func(d *bandData, i int) [6]int32 {
			at := d.pos + i
			first := max(0, at-d.window+1)
			if first/R == at/R {
				return [6]int32{int32(first % R), int32(at - first + 1), int32(at - first)}
			}
			return [6]int32{0, int32(at%R + 1), int32(at % R), int32(first % R), int32(R - first%R), int32(at - first)}
		},
	}
}

// buildSpans builds BandSpans for several sequences. Cells that no query sees hold NaN.
func (ds joined) buildSpans(b *bench, kv binding.DType, l spanLayout, block int64, transposed bool) *binding.Tensor {
	d := ds[0]
	a := ds.attention(b, kv, l.cells, l.cell, false)
	if transposed {
		g := b.g
		a.VT, a.V = g.Cont(g.Transpose(a.V)), nil
	}
	var spans []int32
	for _, d := range ds {
		for i := range d.nQ {
			s := l.spans(d, i)
			spans = append(spans, s[:]...)
		}
	}
	band := make([]float32, len(d.proj))
	for e := range d.E {
		for m := range d.dRel {
			band[m*d.E+e] = d.proj[(d.E-1-e)*d.dRel+m]
		}
	}
	a.Band = b.persistent(binding.F32, band, int64(d.E), int64(d.dRel))
	a.Spans = b.inputI32(spans, 3, 2, int64(d.nQ), ds.seqs())
	a.Block = block
	if l.seen {
		a.Seen = func(i, n int64) (first, count int64) {
			from, to := l.spans(d, int(i)), l.spans(d, int(i+n-1))
			return int64(from[0]), int64(to[0] + to[1] - from[0])
		}
	}
	return BandSpans(b.g, a)
}

// onCPU opens the CPU with a number of threads.
func onCPU(t *testing.T, threads int) *binding.Backend {
	t.Helper()
	be, err := binding.NewBackend(binding.CPU(), threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	testutil.OnDevice(t, be.Device().Name(), be.Device().Description())
	return be
}

func TestBandSpans(t *testing.T) {
	cases := []bandCase{
		{16, 2, 1, 8, 32, 0, 0, 1},
		{32, 8, 2, 8, 128, 0, 1023, 1},
		{128, 64, 8, 16, 512, 0, 100, 1},
		{64, 8, 2, 16, 256, 0, 511, 3},
		{32, 8, 2, 8, 32, 0, 97, 33},
		{64, 6, 3, 5, 19, 0, 50, 9}, // heads that are no whole group, an odd extent
		{32, 8, 2, 8, 100, 0, 84, 128},
		{64, 8, 4, 16, 40, 0, 0, 70},
		{64, 8, 4, 16, 128, 128, 50, 1},
		{64, 8, 4, 16, 128, 128, 389, 7},
		{32, 8, 4, 8, 16, 16, 61, 40},
		{64, 8, 2, 16, 256, 128, 300, 20}, // a band wider than the window
		{64, 8, 2, 16, 40, 128, 300, 20},  // and a narrower one
	}
	be := onCPU(t, 1)
	for _, kv := range []binding.DType{binding.F32, binding.F16} {
		for _, c := range cases {
			layouts := map[string]spanLayout{"full": fullLayout(c)}
			if c.window > 0 {
				layouts["ring"] = ringLayout(c)
			}
			for name, l := range layouts {
				for _, seqs := range []int{1, 3} {
					for _, transposed := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s/%s/transposed=%v/%s x%d", name, kv, transposed, c, seqs), func(t *testing.T) {
							testBand(t, be, c, seqs, "spans, "+kv.String()+" cache", bandTolerance(kv, false), func(ds joined, b *bench) *binding.Tensor {
								return ds.buildSpans(b, kv, l, 0, transposed)
							})
						})
					}
				}
			}
		}
	}
}

// TestBandSpansBlocks: blocks of queries, over all keys or those that they see, change nothing.
func TestBandSpansBlocks(t *testing.T) {
	be := onCPU(t, 1)
	for _, c := range []bandCase{{32, 8, 2, 8, 32, 0, 40, 50}, {32, 8, 2, 8, 32, 32, 90, 150}, {32, 8, 2, 8, 32, 0, 90, 300}} {
		for _, block := range []int64{0, 5, 50} {
			for _, seen := range []bool{false, true} {
				l := fullLayout(c)
				l.seen = seen
				testBand(t, be, c, 1, "spans", 5e-6, func(ds joined, b *bench) *binding.Tensor {
					return ds.buildSpans(b, binding.F32, l, block, false)
				})
			}
		}
	}
}

// TestBandSoftMax: the operation against ggml's softmax of the same scores with the
// bias added: the same to 1e-6. A query may see keys in two runs, or none.
func TestBandSoftMax(t *testing.T) {
	const nKV, G, nQ, hkv, dRel, E = 91, 3, 4, 2, 5, 37
	spans := [nQ][6]int32{{0, 91, 90}, {3, 20, 19, 40, 51, 70}, {10, 1, E}, {}}
	for _, threads := range []int{1, 2} {
		b := newBench(t, onCPU(t, threads))
		scores, r := b.floats(20, nKV*G*nQ*hkv), b.floats(2, dRel*G*hkv*nQ)
		band := b.floats(1, E*dRel)
		biased := make([]float32, len(scores)) // what ggml's softmax gets
		for row := range G * nQ * hkv {
			h, q := row/(G*nQ)*G+row%G, row/G%nQ
			for c := range nKV {
				at := row*nKV + c
				biased[at] = maskValue(false)
				for s := range 2 {
					first, n, far := int(spans[q][3*s]), int(spans[q][3*s+1]), int(spans[q][3*s+2])
					if c < first || c >= first+n {
						continue
					}
					biased[at] = scores[at] / 4
					if d := far - (c - first); d < E {
						for m := range dRel {
							biased[at] += r[(q*G*hkv+h)*dRel+m] * band[m*E+E-1-d]
						}
					}
				}
			}
			if spans[q][1] == 0 {
				biased[row*nKV] = 0 // ggml's softmax of nothing is NaN
			}
		}
		var flat []int32
		for _, s := range spans {
			flat = append(flat, s[:]...)
		}
		got := b.run(
			b.g.BandSoftMax(b.g.Scale(b.input(scores, nKV, G, nQ, hkv), 1), b.input(r, dRel, G*hkv, nQ), b.persistent(binding.F32, band, E, dRel),
				b.inputI32(flat, 3, 2, nQ), binding.F32, 0.25, 0),
			b.g.SoftMax(b.input(biased, nKV, G, nQ, hkv)))
		for i, p := range got[0] {
			want := float64(got[1][i])
			if spans[i/nKV/G%nQ][1] == 0 {
				want = 0
			}
			if math.Abs(float64(p)-want) > 1e-6 {
				t.Fatalf("%d threads: column %d of row %d: %g, want %g", threads, i%nKV, i/nKV, p, want)
			}
		}
	}
}
