package op

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// eachFusing runs f on the devices that have fused operations.
func eachFusing(t *testing.T, f func(t *testing.T, be *binding.Backend)) {
	t.Helper()
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		if !be.Device().Fuses() {
			t.Skipf("%s has no fused operations", be.Device().Name())
		}
		f(t, be)
	})
}

// Sequences of the tests below: one that has wrapped around, two at the beginning,
// one idle.
var fusedFirst = []int{25, 1, 0, -1}

// fusedTable is a table of rings for the sequences lo to lo+len(first)-1.
type fusedTable struct {
	size, rows, lo, channels int
	values                   []float32
}

func newFusedTable(b *bench, n, lo, seqs, channels int) *fusedTable {
	size := n + 3 + 2
	c := &fusedTable{size: size, rows: size + 2, lo: lo, channels: channels}
	c.values = b.floats(1, int64(channels), int64(c.rows*(lo+seqs)))
	return c
}

func (c *fusedTable) row(s, p int) []float32 {
	at := ((c.lo+s)*c.rows + p%c.size) * c.channels
	return c.values[at : at+c.channels]
}

// conv computes Σ_j w[j, c]·x[c, t-3+j] for rows y and puts them into the table.
func (c *fusedTable) conv(y, w []float32, first []int, n int) []float64 {
	var out []float64
	for s, p := range first {
		at := func(t, ch int) float64 { // input of row t, which may be negative
			switch {
			case t >= 0:
				return float64(y[(s*n+t)*c.channels+ch])
			case p+t >= 0:
				return float64(c.row(s, p+t)[ch])
			}
			return 0
		}
		for t := range n {
			for ch := range c.channels {
				sum := 0.0
				for j := range 4 {
					sum += float64(w[ch*4+j]) * at(t-3+j, ch)
				}
				out = append(out, sum)
			}
		}
	}
	for s, p := range first {
		for t := range n {
			if p >= 0 {
				copy(c.row(s, p+t), y[(s*n+t)*c.channels:])
			}
		}
	}
	return out
}

// declare makes the operand of values as they are now; the check compares the table
// with what conv made of them since.
func (c *fusedTable) declare(b *bench, w []float32) (conv *Conv, check func(t *testing.T)) {
	table := b.persistent(binding.F32, slices.Clone(c.values), int64(c.channels), int64(len(c.values)/c.channels))
	conv = &Conv{W: b.persistent(binding.F32, w, 4, int64(c.channels)), Table: table, Size: c.size, Rows: c.rows, Lo: c.lo}
	return conv, func(t *testing.T) {
		t.Helper()
		got := make([]float32, len(c.values))
		table.Floats(got)
		if !slices.Equal(got, c.values) { // copies: exact
			t.Error("the table's rows are not the inputs")
		}
	}
}

func int32s(x []int) []int32 {
	var y []int32
	for _, v := range x {
		y = append(y, int32(v))
	}
	return y
}

// rmsNorm norms rows of len(w), and multiplies by w.
func rmsNorm(x []float64, w []float32, eps float64) []float64 {
	out := make([]float64, len(x))
	for r := 0; r < len(x); r += len(w) {
		sum := 0.0
		for _, v := range x[r : r+len(w)] {
			sum += v * v
		}
		for i := range w {
			out[r+i] = x[r+i] / math.Sqrt(sum/float64(len(w))+eps) * float64(w[i])
		}
	}
	return out
}

func finite(t *testing.T, what string, x []float32) {
	t.Helper()
	for i, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Fatalf("%s: element %d is %g", what, i, v)
		}
	}
}

func TestFusedConvAddNorm(t *testing.T) {
	const eps = 1e-6
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, channels := range []int{12, 128, 1020, 4096, 6144} { // a block, or a cluster of them
			for _, n := range []int{1, 2, 5, 8, 16, 19, 41, 130} { // from 17 on more than the ring holds beside those before them
				for _, first := range [][]int{{25}, fusedFirst} {
					for _, normed := range []bool{true, false} {
						t.Run(fmt.Sprintf("%d channels, n=%d, %d sequences, norm %t", channels, n, len(first), normed), func(t *testing.T) {
							b := newBench(t, be)
							rows := n * len(first)
							table := newFusedTable(b, min(n, 14), 1, len(first), channels)
							y, x := b.floats(1, int64(channels), int64(rows)), b.floats(1, int64(channels), int64(rows))
							w, weight := b.floats(1, 4, int64(channels)), b.floats(1, int64(channels))
							c, check := table.declare(b, w)
							var norm *binding.Tensor
							if normed {
								norm = b.persistent(binding.F32, weight, int64(channels))
							}
							sum, a, ok := FusedConvAddNorm(b.g, b.input(y, int64(channels), int64(rows)), b.input(x, int64(channels), int64(rows)), norm,
								b.inputI32(int32s(first), int64(len(first))), c, eps)
							if !ok {
								t.Fatal("not supported")
							}
							outs := []*binding.Tensor{b.g.Cont(sum)}
							if normed {
								outs = append(outs, b.g.Cont(a))
							}
							got := b.run(outs...)

							want := table.conv(y, w, first, n)
							for i := range want {
								want[i] += float64(x[i])
							}
							live := n * channels
							if len(first) > 1 {
								live *= len(first) - 1
							}
							// 5 terms of at most 1; the norm adds up as many squares as there are channels and
							// takes the card's reciprocal root.
							closeTo(t, "sum", got[0][:live], want[:live], 2e-6)
							finite(t, "sum", got[0])
							if normed {
								closeTo(t, "normed", got[1][:live], rmsNorm(want, weight, eps)[:live], 1e-5)
								finite(t, "normed", got[1])
							}
							check(t)
						})
					}
				}
			}
		}
	})
}

// TestFusedConvAddNormRefuses: rings that hold less than is read, and sequences that there are not.
func TestFusedConvAddNormRefuses(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		b := newBench(t, be)
		const channels = 128
		for _, c := range []struct {
			name     string
			size, lo int
			ok       bool
		}{{"as large as needed", 7, 0, true}, {"one less, so that it is written behind the convolution", 6, 0, true}, {"less than is read", 2, 0, false}, {"a sequence too many", 7, 1, false}} {
			conv := &Conv{W: b.g.Input("w", binding.F32, 4, channels), Table: b.g.Input("table", binding.F32, channels, 9), Size: c.size, Rows: c.size + 2, Lo: c.lo}
			x := b.g.Input("x", binding.F32, channels, 4)
			if _, _, ok := FusedConvAddNorm(b.g, x, x, nil, b.g.Input("first", binding.I32, 1), conv, 1e-6); ok != c.ok {
				t.Errorf("%s: %t, want %t", c.name, ok, c.ok)
			}
		}
	})
}

// TestHeadNorm: heads that are contiguous and heads that stand beside others, on every device.
func TestHeadNorm(t *testing.T) {
	const eps = 1e-6
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range []struct{ dh, heads, n, seqs, gap int64 }{{128, 4, 3, 1, 0}, {64, 2, 5, 2, 0}, {256, 3, 33, 1, 256}, {12, 5, 7, 2, 20}, {320, 2, 2, 1, 0}} {
			t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
				b := newBench(t, be)
				width := c.dh*c.heads + c.gap
				values, weight := b.floats(1, width, c.n*c.seqs), b.floats(1, c.dh)
				x := b.input(values, width, c.n*c.seqs)
				x = b.g.View(x, [4]int64{c.dh, c.heads, c.n, c.seqs}, 4*c.dh, 4*width, 4*width*c.n, 0)
				var rows []float64
				for r := range c.n * c.seqs {
					rows = append(rows, wide(values[r*width:r*width+c.dh*c.heads])...)
				}
				got := b.run(b.g.Cont(HeadNorm(b.g, x, b.persistent(binding.F32, weight, c.dh), eps)))[0]
				closeTo(t, "normed", got, rmsNorm(rows, weight, eps), 1e-5)
			})
		}
	})
}

// fusedHeads is a case of TestFusedQKV.
type fusedHeads struct {
	dh, heads, hkv, dRel, n int
	first                   []int
	cells                   binding.DType
	ring                    int
	tau                     bool
}

func (c fusedHeads) String() string {
	return fmt.Sprintf("heads %dx%d and %d, d_rel %d, n=%d, %d sequences, %s, ring %d, tau %t", c.heads, c.dh, c.hkv, c.dRel, c.n, len(c.first), c.cells, c.ring, c.tau)
}

func TestFusedQKV(t *testing.T) {
	var cases []fusedHeads
	for _, n := range []int{1, 3, 8} {
		for _, typ := range []binding.DType{binding.F32, binding.F16, binding.BF16, binding.Q8_0} {
			cases = append(cases,
				fusedHeads{128, 32, 8, 16, n, []int{25}, typ, 0, true},
				fusedHeads{128, 32, 8, 16, n, fusedFirst, typ, 13, false},
				fusedHeads{64, 8, 2, 16, n, fusedFirst, typ, 0, true},
			)
		}
		cases = append(cases,
			fusedHeads{16, 8, 4, 8, n, fusedFirst, binding.F16, 13, false},
			fusedHeads{256, 4, 1, 4, n, fusedFirst, binding.F16, 13, true},
			fusedHeads{192, 2, 2, 10, n, fusedFirst, binding.Q8_0, 0, true}, // half of the lanes' second values
		)
	}
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range cases {
			t.Run(c.String(), func(t *testing.T) { testFusedQKV(t, be, c) })
		}
	})
}

func testFusedQKV(t *testing.T, be *binding.Backend, c fusedHeads) {
	const eps, lo = 1e-6, 1
	b := newBench(t, be)
	n, seqs := c.n, len(c.first)
	rows, cells := n*seqs, 40
	perQ, perK, perR := c.dh*c.heads, c.dh*c.hkv, c.heads*c.dRel
	table := newFusedTable(b, n, lo, seqs, 2*perK)
	qkvr := b.floats(1, int64(perQ+2*perK+perR), int64(rows))
	w, qNorm, kNorm, tau := b.floats(1, 4, int64(2*perK)), b.floats(1, int64(c.dh)), b.floats(1, int64(c.dh)), b.floats(1, int64(rows))
	conv, check := table.declare(b, w)

	kv := [2]*binding.Tensor{}
	var views [2]*binding.Tensor
	for i := range kv {
		x, err := b.mem.New(fmt.Sprint("cells", i), c.cells, int64(c.dh), int64(cells), int64(c.hkv), int64(lo+seqs))
		if err != nil {
			t.Fatal(err)
		}
		kv[i] = x
		b.set = append(b.set, func() { x.SetBytes(make([]byte, x.Bytes()), 0) })
		views[i] = b.g.View(x, [4]int64{int64(c.dh), int64(cells), int64(c.hkv), int64(seqs)}, x.Stride(1), x.Stride(2), x.Stride(3), lo*x.Stride(3))
	}
	h := &Heads{
		QNorm: b.persistent(binding.F32, qNorm, int64(c.dh)), KNorm: b.persistent(binding.F32, kNorm, int64(c.dh)),
		K: views[0], V: views[1], Ring: c.ring, First: b.inputI32(int32s(c.first), int64(seqs)), NHead: int64(c.heads),
	}
	scale := func(row int) float64 { return 1 }
	if c.tau {
		h.Tau = b.input(tau, 1, int64(rows))
		scale = func(row int) float64 { return float64(tau[row]) }
	}
	q, r, ok := FusedQKV(b.g, b.input(qkvr, int64(perQ+2*perK+perR), int64(rows)), h, conv, eps)
	if !ok {
		t.Fatal("not supported")
	}
	// In this order: the cells are read when q was computed.
	got := b.run(b.g.Cont(q), b.g.Cont(r), b.g.Cast(kv[0], binding.F32), b.g.Cast(kv[1], binding.F32))

	part := func(off, per int) []float32 {
		var out []float32
		for row := range rows {
			at := row*(perQ+2*perK+perR) + off
			out = append(out, qkvr[at:at+per]...)
		}
		return out
	}
	wide := func(x []float32) []float64 {
		var out []float64
		for _, v := range x {
			out = append(out, float64(v))
		}
		return out
	}
	wantQ, wantR := rmsNorm(wide(part(0, perQ)), qNorm, eps), wide(part(perQ+2*perK, perR))
	for i := range wantQ {
		wantQ[i] *= scale(i / perQ)
	}
	for i := range wantR {
		wantR[i] *= scale(i / perR)
	}
	y := table.conv(part(perQ, 2*perK), w, c.first, n)
	wantK, wantV := make([]float64, kv[0].Elems()), make([]float64, kv[0].Elems())
	for s, first := range c.first {
		for i := range n {
			p := first + i
			if c.ring > 0 {
				p %= c.ring
			}
			if first < 0 {
				continue
			}
			for head := range c.hkv {
				at := (((lo+s)*c.hkv+head)*cells + p) * c.dh
				from := (s*n+i)*2*perK + head*c.dh
				copy(wantK[at:at+c.dh], rmsNorm(y[from:from+c.dh], kNorm, eps))
				copy(wantV[at:at+c.dh], y[from+perK:from+perK+c.dh])
			}
		}
	}
	liveQ, liveR := len(wantQ), len(wantR)
	if seqs > 1 {
		liveQ, liveR = liveQ/seqs*(seqs-1), liveR/seqs*(seqs-1)
	}
	closeTo(t, "q", got[0][:liveQ], wantQ[:liveQ], 1e-5) // the card's reciprocal root
	closeTo(t, "r", got[1][:liveR], wantR[:liveR], 1e-6)
	finite(t, "q", got[0])
	finite(t, "r", got[1])
	// Values of up to 4 are rounded to 11 or 8 bits, or to a 254th of the block's range.
	tol := map[binding.DType]float64{binding.F32: 1e-5, binding.F16: 2e-3, binding.BF16: 1.6e-2, binding.Q8_0: 1.7e-2}[c.cells]
	closeTo(t, "k", got[2], wantK, tol)
	closeTo(t, "v", got[3], wantV, tol)
	check(t)
}
