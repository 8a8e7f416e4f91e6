package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// fusedBand is a case of the tests of fused attention.
type fusedBand struct {
	bandCase
	kv   binding.DType
	seqs int // of different lengths; of several the last is idle
}

func (c fusedBand) String() string { return fmt.Sprintf("%s/%s x%d", c.kv, c.bandCase, c.seqs) }

// round makes keys and values exact in the cells' type; in F32 and F16 they are.
func (d *bandData) round(t *testing.T, kv binding.DType) {
	t.Helper()
	for _, x := range [][]float32{d.k, d.v} {
		switch kv {
		case binding.BF16:
			for i, v := range x {
				x[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
			}
		case binding.Q8_0:
			if err := binding.Dequantise(kv, x, encoded(t, kv, x, int64(d.dh))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// encoded gives rows of cols values in type kv; BF16 is cut off.
func encoded(t testing.TB, kv binding.DType, x []float32, cols int64) []byte {
	t.Helper()
	switch kv {
	case binding.F16:
		return f16Bytes(x)
	case binding.BF16:
		raw := make([]byte, 0, 2*len(x))
		for _, v := range x {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(v)>>16))
		}
		return raw
	}
	raw := make([]byte, kv.Size()*int64(len(x))/kv.BlockSize())
	if err := binding.Quantise(kv, raw, x, cols, nil); err != nil {
		t.Fatal(err)
	}
	return raw
}

// persistentCells is persistent for any type of cells.
func (b *bench) persistentCells(kv binding.DType, x []float32, ne ...int64) *binding.Tensor {
	b.t.Helper()
	if kv == binding.F32 {
		return b.persistent(kv, x, ne...)
	}
	p, err := b.mem.New(fmt.Sprint("p", len(b.set)), kv, ne...)
	if err != nil {
		b.t.Fatal(err)
	}
	raw := encoded(b.t, kv, x, ne[0])
	b.set = append(b.set, func() { p.SetBytes(raw, 0) })
	return p
}

// newFusedBand draws the operands of all sequences; first holds -1 for an idle one.
func newFusedBand(t *testing.T, b *bench, c fusedBand) (ds joined, first []int32) {
	t.Helper()
	for s := range c.seqs {
		one := c.bandCase
		one.pos = c.pos * (c.seqs - s) / c.seqs
		d := newBandData(b, one)
		if d.round(t, c.kv); s > 0 {
			d.proj = ds[0].proj
		}
		ds, first = append(ds, d), append(first, int32(one.pos))
	}
	if c.seqs > 1 {
		first[c.seqs-1] = -1
	}
	return ds, first
}

// place gives the operands with the cells where the model has them: a ring is longer
// than the window and the new rows, and has one cell more than it holds positions.
func (ds joined) place(b *bench, kv binding.DType) (*Attention, Cells) {
	d0 := ds[0]
	c := Cells{Extent: d0.E, Window: d0.window}
	n := 0
	for _, d := range ds {
		n = max(n, (d.pos+d.nQ+256)/256*256)
	}
	if d0.window > 0 {
		n = (d0.window + d0.nQ + 16 + 31) / 32 * 32
		c.Ring = n - 1
	}
	var q, r, k, v []float32
	for _, d := range ds {
		q, r = append(q, d.q...), append(r, d.r...)
		kc, vc := d.cells(n, func(j int) int {
			switch {
			case c.Ring == 0:
				return j
			case j < d.pos+d.nQ-c.Ring:
				return -1 // overwritten
			}
			return j % c.Ring
		})
		k, v = append(k, kc...), append(v, vc...)
	}
	dh, hkv := int64(d0.dh), int64(d0.nHeadKV)
	return &Attention{
		Q:     b.input(q, dh, int64(d0.nHead), int64(d0.nQ), ds.seqs()),
		R:     b.input(r, int64(d0.dRel), int64(d0.nHead), int64(d0.nQ), ds.seqs()),
		K:     b.persistentCells(kv, k, dh, int64(n), hkv, ds.seqs()),
		V:     b.persistentCells(kv, v, dh, int64(n), hkv, ds.seqs()),
		Scale: 1 / float32(d0.dh),
	}, c
}

func (b *bench) tickets(n int64) *binding.Tensor {
	b.t.Helper()
	p, err := b.mem.New("tickets", binding.I32, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// TestFusedAttention: the products take F32 as two F16 values, 22 bits, and the
// exponential is CUDA's fast one; what is left is far below one rounding to F16. Cells of
// Q8_0 are rounded to F16, half an ulp of 2 to 4 is 0.001.
func TestFusedAttention(t *testing.T) {
	var cases []fusedBand
	add := func(kv binding.DType, seqs int, c bandCase) { cases = append(cases, fusedBand{c, kv, seqs}) }
	// dh, n_head, n_head_kv, d_rel, E, window, pos, n_q
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		add(binding.F16, 1, bandCase{128, 32, 8, 16, 1024, 0, 2100, n})
		add(binding.F16, 4, bandCase{128, 32, 8, 16, 512, 512, 3000, n})
		add(binding.F16, 3, bandCase{64, 8, 4, 16, 256, 0, 300, n})
	}
	for _, kv := range []binding.DType{binding.F32, binding.BF16, binding.Q8_0} {
		for _, n := range []int{1, 4, 8} {
			add(kv, 1, bandCase{128, 32, 8, 16, 300, 0, 700, n})
			add(kv, 2, bandCase{128, 64, 16, 16, 128, 128, 1000, n})
			add(kv, 2, bandCase{64, 8, 4, 8, 64, 128, 77, n})
		}
	}
	for _, pos := range []int{0, 1, 15, 62, 63, 64, 255, 256, 510, 511, 512, 574, 575, 576} {
		add(binding.F16, 1, bandCase{128, 8, 2, 16, 512, 512, pos, 1})
		add(binding.F16, 1, bandCase{128, 8, 2, 16, 100, 0, pos, 2})
	}
	add(binding.F16, 1, bandCase{128, 6, 2, 16, 64, 0, 400, 5})  // three heads a kv head
	add(binding.F16, 1, bandCase{128, 4, 4, 16, 64, 0, 400, 16}) // one
	add(binding.F16, 1, bandCase{64, 16, 1, 8, 64, 0, 400, 3})   // sixteen
	add(binding.F16, 32, bandCase{128, 32, 8, 16, 512, 512, 900, 1})
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range cases {
			t.Run(c.String(), func(t *testing.T) {
				b := newBench(t, be)
				ds, first := newFusedBand(t, b, c)
				a, cells := ds.place(b, c.kv)
				tickets := b.tickets(int64(2 * c.nHead * c.seqs))
				proj := b.persistent(binding.F32, ds[0].proj, int64(c.dRel), int64(c.E))
				o, ok := FusedAttention(b.g, a, proj, b.inputI32(first, int64(c.seqs)), tickets, cells)
				if !ok {
					t.Fatal("not supported")
				}
				got := b.run(o, b.g.Scale(o, 1))[0] // twice would show tickets that are left
				tol := 3e-5
				if c.kv == binding.Q8_0 {
					tol = 1e-3
				}
				per := c.nQ * c.nHead * c.dh
				for s, d := range ds {
					want := make([]float64, per)
					if first[s] >= 0 {
						want = d.ref(true)
					}
					closeTo(t, fmt.Sprintf("fused attention, %s: sequence %d", c.kv, s), got[s*per:(s+1)*per], want, tol)
				}
				left := make([]int32, tickets.Elems())
				tickets.Int32s(left)
				for i, x := range left {
					if x != 0 {
						t.Fatalf("ticket %d is %d", i, x)
					}
				}
			})
		}
	})
}

// TestFusedAttentionRefuses: what the kernel does not do is refused, not computed wrongly.
func TestFusedAttentionRefuses(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for name, c := range map[string]bandCase{
			"heads of 32":       {32, 4, 2, 16, 64, 0, 40, 1},
			"r of 32":           {64, 4, 2, 32, 64, 0, 40, 1},
			"17 rows":           {64, 4, 2, 16, 64, 0, 40, 17},
			"a size of r of 6":  {64, 4, 2, 6, 64, 0, 40, 1},
			"a ring that short": {64, 4, 2, 16, 64, 64, 40, 1},
		} {
			b := newBench(t, be)
			ds, first := newFusedBand(t, b, fusedBand{c, binding.F16, 1})
			a, cells := ds.place(b, binding.F16)
			if c.window > 0 {
				cells.Ring = c.window - 1
			}
			proj := b.persistent(binding.F32, ds[0].proj, int64(c.dRel), int64(c.E))
			if _, ok := FusedAttention(b.g, a, proj, b.inputI32(first, 1), b.tickets(int64(2*c.nHead)), cells); ok {
				t.Errorf("%s: supported", name)
			}
		}
	})
}

// TestFusedPrefill: q, r, proj and the weights of the softmax are rounded to F16, 11
// bits, as in flash attention; a bias of 8 is off by up to 0.004 then, and a
// weight by that much of itself.
func TestFusedPrefill(t *testing.T) {
	var cases []fusedBand
	add := func(kv binding.DType, c bandCase) { cases = append(cases, fusedBand{c, kv, 1}) }
	for _, n := range []int{17, 33, 64, 200} {
		for _, pos := range []int{0, 100, 700} {
			add(binding.F16, bandCase{128, 32, 8, 16, 1024, 0, pos, n})
			add(binding.F16, bandCase{128, 32, 8, 16, 300, 0, pos, n})
			add(binding.F16, bandCase{128, 32, 8, 16, 128, 128, pos, n})
			add(binding.F16, bandCase{64, 8, 4, 8, 64, 128, pos, n})
		}
	}
	add(binding.BF16, bandCase{128, 64, 8, 16, 256, 0, 300, 50})
	add(binding.BF16, bandCase{128, 64, 16, 16, 128, 128, 20, 50})
	add(binding.BF16, bandCase{128, 64, 16, 16, 128, 128, 300, 50})
	add(binding.Q8_0, bandCase{128, 64, 8, 16, 256, 0, 300, 50})
	add(binding.Q8_0, bandCase{128, 64, 16, 16, 128, 128, 300, 50})
	add(binding.F16, bandCase{128, 6, 2, 16, 64, 0, 40, 70})
	add(binding.F16, bandCase{128, 2, 2, 16, 64, 64, 90, 140})
	add(binding.F16, bandCase{64, 16, 1, 16, 64, 0, 40, 70})
	add(binding.F16, bandCase{128, 4, 1, 16, 512, 0, 9000, 40}) // keys are shared out
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, c := range cases {
			t.Run(c.String(), func(t *testing.T) {
				b := newBench(t, be)
				ds, _ := newFusedBand(t, b, c)
				d := ds[0]
				a, fresh, cells := d.placePrefill(b, c.kv)
				proj := b.g.Cast(b.persistent(binding.F32, d.proj, int64(c.dRel), int64(c.E)), binding.F16)
				o, ok := FusedPrefill(b.g, a, proj, c.pos, fresh, cells)
				if !ok {
					t.Fatal("not supported")
				}
				closeTo(t, fmt.Sprintf("fused prefill, %s", c.kv), b.run(o)[0], d.ref(true), 6e-3)
			})
		}
	})
}

// placePrefill gives the operands with new rows beside the ring, if there is one; the
// cells that they will overwrite hold what they did before, those never filled NaN.
func (d *bandData) placePrefill(b *bench, kv binding.DType) (*Attention, *Fresh, Cells) {
	if d.window == 0 {
		a, c := joined{d}.place(b, kv)
		return a, nil, c
	}
	n := (d.window + 32 + 31) / 32 * 32
	c := Cells{Extent: d.E, Window: d.window, Ring: n - 1}
	k, v := d.cells(n, func(j int) int {
		if j >= d.pos || j < d.pos-c.Ring {
			return -1
		}
		return j % c.Ring
	})
	if kv == binding.BF16 { // the type that NaN is easily written in
		for h := range d.nHeadKV {
			for cell := min(d.pos, c.Ring); cell < n; cell++ {
				for x := range d.dh {
					at := (h*n+cell)*d.dh + x
					k[at], v[at] = float32(math.NaN()), float32(math.NaN())
				}
			}
		}
	}
	newRows := func(x []float32) *binding.Tensor {
		var out []float32
		for h := range d.nHeadKV {
			out = append(out, x[(h*(d.pos+d.nQ)+d.pos)*d.dh:(h+1)*(d.pos+d.nQ)*d.dh]...)
		}
		return b.persistentCells(kv, out, int64(d.dh), int64(d.nQ), int64(d.nHeadKV))
	}
	dh, hkv := int64(d.dh), int64(d.nHeadKV)
	return &Attention{
		Q:     b.input(d.q, dh, int64(d.nHead), int64(d.nQ)),
		R:     b.input(d.r, int64(d.dRel), int64(d.nHead), int64(d.nQ)),
		K:     b.persistentCells(kv, k, dh, int64(n), hkv),
		V:     b.persistentCells(kv, v, dh, int64(n), hkv),
		Scale: 1 / float32(d.dh),
	}, &Fresh{newRows(d.k), newRows(d.v)}, c
}
