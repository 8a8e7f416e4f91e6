package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
)

// bandCase is one geometry: n_q queries from position pos on.
type bandCase struct {
	dh, nHead, nHeadKV, dRel, E int
	window                      int // 0: none
	pos, nQ                     int
}

func (c bandCase) String() string {
	return fmt.Sprintf("heads=%d/%d dh=%d E=%d window=%d pos=%d n_q=%d", c.nHead, c.nHeadKV, c.dh, c.E, c.window, c.pos, c.nQ)
}

// bandData holds the operands of a case, positions 0 to pos+n_q-1.
type bandData struct {
	bandCase
	q, k, v, r, proj []float32 // q [n_q][nHead][dh], k and v [nHeadKV][n][dh], r [n_q][nHead][dRel], proj [E][dRel]
}

func newBandData(b *bench, c bandCase) *bandData {
	n := c.pos + c.nQ
	d := &bandData{
		bandCase: c,
		q:        b.floats(8, int64(c.nQ*c.nHead*c.dh)),
		k:        b.floats(4, int64(c.nHeadKV*n*c.dh)),
		v:        b.floats(1, int64(c.nHeadKV*n*c.dh)),
		r:        b.floats(1, int64(c.nQ*c.nHead*c.dRel)),
		proj:     b.floats(1.5, int64(c.E*c.dRel)),
	}
	for _, x := range [][]float32{d.k, d.v} { // exact in F16 and in F32
		for i := range x {
			x[i] = float32(math.Round(float64(x[i])*128)) / 128
		}
	}
	return d
}

// visible reports whether query i sees position j.
func (d *bandData) visible(i, j int) bool {
	dist := d.pos + i - j
	return dist >= 0 && (d.window == 0 || dist < d.window)
}

// ref is the definition, in float64: [n_q][nHead][dh].
func (d *bandData) ref(bias bool) []float64 {
	n, G := d.pos+d.nQ, d.nHead/d.nHeadKV
	out := make([]float64, d.nQ*d.nHead*d.dh)
	scores := make([]float64, n)
	for i := range d.nQ {
		for h := range d.nHead {
			top := math.Inf(-1)
			for j := range n {
				scores[j] = math.Inf(-1)
				if !d.visible(i, j) {
					continue
				}
				s := 0.0
				for x := range d.dh {
					s += float64(d.q[(i*d.nHead+h)*d.dh+x]) * float64(d.k[(h/G*n+j)*d.dh+x])
				}
				s /= float64(d.dh)
				if dist := d.pos + i - j; bias && dist < d.E {
					for m := range d.dRel {
						s += float64(d.r[(i*d.nHead+h)*d.dRel+m]) * float64(d.proj[dist*d.dRel+m])
					}
				}
				scores[j] = s
				top = max(top, s)
			}
			sum := 0.0
			for j, s := range scores {
				scores[j] = math.Exp(s - top)
				sum += scores[j]
			}
			o := out[(i*d.nHead+h)*d.dh:][:d.dh]
			for j, p := range scores {
				for x := range o {
					o[x] += p / sum * float64(d.v[(h/G*n+j)*d.dh+x])
				}
			}
		}
	}
	return out
}

func (d *bandData) reversed() []float32 {
	rev := make([]float32, len(d.proj))
	for e := range d.E {
		copy(rev[e*d.dRel:(e+1)*d.dRel], d.proj[(d.E-1-e)*d.dRel:])
	}
	return rev
}

// cells places K and V: cell(j) is where position j lies, negative if nowhere.
func (d *bandData) cells(nKV int, cell func(j int) int) (k, v []float32) {
	k, v = make([]float32, nKV*d.dh*d.nHeadKV), make([]float32, nKV*d.dh*d.nHeadKV)
	n := d.pos + d.nQ
	for h := range d.nHeadKV {
		for j := range n {
			if c := cell(j); c >= 0 {
				copy(k[(h*nKV+c)*d.dh:][:d.dh], d.k[(h*n+j)*d.dh:])
				copy(v[(h*nKV+c)*d.dh:][:d.dh], d.v[(h*n+j)*d.dh:])
			}
		}
	}
	return k, v
}

func maskValue(visible bool) float32 {
	if visible {
		return 0
	}
	return float32(math.Inf(-1))
}

// buildWindow builds the form for many queries.
func (d *bandData) buildWindow(b *bench, kv binding.DType, block int64) *binding.Tensor {
	a, projrev, mask, first := d.windowOperands(b, kv)
	a.Block = block
	return BandWindow(b.g, a, projrev, mask, first)
}

// windowOperands gives BandWindow's operands, on the keys from position pos-(window-1) on, or from 0.
func (d *bandData) windowOperands(b *bench, kv binding.DType) (a *Attention, projrev, mask *binding.Tensor, first int64) {
	j0 := 0
	if d.window > 0 {
		j0 = d.pos - (d.window - 1) // may be negative: cells without a key
	}
	nKV := (d.pos + d.nQ - j0 + 31) / 32 * 32
	a = joined{d}.attention(b, kv, nKV, func(_ *bandData, j int) int { return j - j0 }, false)
	values := make([]float32, nKV*d.nQ)
	for i := range d.nQ {
		for c := range nKV {
			values[i*nKV+c] = maskValue(j0+c >= 0 && d.visible(i, j0+c))
		}
	}
	projrev = b.persistent(binding.F32, d.reversed(), int64(d.dRel), int64(d.E))
	return a, projrev, b.input(values, int64(nKV), int64(d.nQ)), int64(d.pos - j0)
}

// joined holds several sequences of one geometry but for their positions.
type joined []*bandData

func (ds joined) seqs() int64 { return int64(len(ds)) }

// attention joins the operands of all sequences.
func (ds joined) attention(b *bench, kv binding.DType, nKV int, cell func(d *bandData, j int) int, flash bool) *Attention {
	var q, r, k, v []float32
	for _, d := range ds {
		q, r = append(q, d.q...), append(r, d.r...)
		kc, vc := d.cells(nKV, func(j int) int { return cell(d, j) })
		k, v = append(k, kc...), append(v, vc...)
	}
	d := ds[0]
	dh, hkv := int64(d.dh), int64(d.nHeadKV)
	return &Attention{
		Q:     b.input(q, dh, int64(d.nHead), int64(d.nQ), ds.seqs()),
		R:     b.input(r, int64(d.dRel), int64(d.nHead), int64(d.nQ), ds.seqs()),
		K:     b.persistent(kv, k, dh, int64(nKV), hkv, ds.seqs()),
		V:     b.persistent(kv, v, dh, int64(nKV), hkv, ds.seqs()),
		Scale: 1 / float32(d.dh),
		Flash: flash,
	}
}

// buildScatter builds the form for a full cache.
func (ds joined) buildScatter(b *bench, kv binding.DType, flash bool) *binding.Tensor {
	d0 := ds[0]
	nKV := 0
	for _, d := range ds {
		nKV = max(nKV, (d.pos+d.nQ+1+255)/256*256)
	}
	spare := nKV - 1
	a := ds.attention(b, kv, nKV, func(_ *bandData, j int) int { return j }, flash)
	P := d0.E + d0.nQ - 1
	rows := d0.nQ
	if flash {
		rows = (d0.nQ*d0.nHead + 63) / 64 * 64 // CUDA reads whole tiles of rows
	}
	var near, far []float32
	var cells []int64
	for _, d := range ds {
		one := make([]int64, P)
		for c := range P {
			if one[c] = int64(d.pos - d.E + 1 + c); one[c] < 0 {
				one[c] = int64(spare)
			}
		}
		for range d.nHeadKV {
			cells = append(cells, one...)
		}
		for i := range d.nQ {
			for c := range P {
				j := d.pos - d.E + 1 + c
				near = append(near, maskValue(j >= 0 && d.visible(i, j)))
			}
		}
		for i := range rows {
			for c := range nKV {
				far = append(far, maskValue(i < d.nQ && d.visible(i, c)))
			}
		}
	}
	base := b.input(far, int64(nKV), 1, int64(rows), ds.seqs())
	if flash {
		base = b.g.Cast(base, binding.F16)
	}
	hkv := int64(d0.nHeadKV)
	return BandScatter(b.g, a, b.persistent(binding.F32, d0.reversed(), int64(d0.dRel), int64(d0.E)),
		NearMask(b.g, b.input(near, int64(P), int64(d0.nQ), 1, ds.seqs()), hkv),
		b.inputI64(cells, int64(P), 1, hkv*ds.seqs()), FarMask(b.g, base, a.groups(), hkv))
}

// buildCells builds the form for a ring of R cells; position j lies in cell j mod R.
func (ds joined) buildCells(b *bench, kv binding.DType, flash bool) *binding.Tensor {
	d0 := ds[0]
	R := (d0.window + d0.nQ + 31) / 32 * 32
	a := ds.attention(b, kv, R, func(d *bandData, j int) int {
		if j < d.pos+d.nQ-R {
			return -1 // overwritten
		}
		return j % R
	}, flash)
	proj := append(append([]float32{}, d0.proj...), make([]float32, d0.dRel)...)
	var dist []int32
	var mask []float32
	for _, d := range ds {
		n := d.pos + d.nQ
		for i := range d.nQ {
			for c := range R {
				j := (n-1)/R*R + c // the last position in cell c
				if j >= n {
					j -= R
				}
				dd := d.pos + i - j
				mask = append(mask, maskValue(j >= 0 && d.visible(i, j)))
				if j < 0 || dd < 0 || dd >= d.E {
					dd = d.E
				}
				dist = append(dist, int32(dd))
			}
		}
	}
	return BandCells(b.g, a, b.persistent(binding.F32, proj, int64(d0.dRel), int64(d0.E+1)),
		b.inputI32(dist, int64(len(dist))), b.input(mask, int64(R), 1, int64(d0.nQ)*ds.seqs()))
}

// bandTolerance: F32 throughout is exact but for rounding; F16 rounds the bias
// (half an ulp at 8 to 16 is 0.004) and the sum over V.
func bandTolerance(kv binding.DType, flash bool) float64 {
	switch {
	case flash:
		return 1e-2
	case kv == binding.F16:
		return 2e-3
	}
	return 5e-6
}

func TestBandRel(t *testing.T) {
	full := []bandCase{
		{16, 2, 1, 8, 32, 0, 0, 1},
		{16, 2, 1, 8, 32, 0, 1, 1},
		{32, 8, 2, 8, 128, 0, 1022, 1},
		{32, 8, 2, 8, 128, 0, 1023, 1},
		{32, 8, 4, 8, 128, 0, 1024, 1},
		{32, 8, 2, 8, 512, 0, 4095, 1},
		{128, 64, 8, 16, 512, 0, 700, 1},
		{128, 64, 8, 16, 512, 0, 100, 1},
		{128, 64, 16, 16, 64, 0, 0, 1},
		{128, 32, 8, 16, 64, 0, 300, 5},
		{64, 8, 2, 16, 256, 0, 255, 8},
		{64, 8, 2, 16, 256, 0, 511, 3},
		{32, 8, 2, 8, 32, 0, 97, 33},
		{128, 32, 8, 16, 100, 0, 384, 128},
		{64, 8, 4, 16, 40, 0, 0, 70},
	}
	sliding := []bandCase{
		{128, 64, 16, 16, 128, 128, 900, 1},
		{64, 8, 4, 16, 128, 128, 50, 1},
		{64, 8, 4, 16, 128, 128, 128, 2},
		{64, 8, 4, 16, 128, 128, 389, 7},
		{32, 8, 4, 8, 16, 16, 0, 1},
		{32, 8, 4, 8, 16, 16, 61, 40},
		{128, 64, 16, 16, 128, 128, 100, 33},
		{64, 8, 2, 16, 256, 128, 300, 20}, // a band wider than the window
		{64, 8, 2, 16, 40, 128, 300, 20},  // and a narrower one
	}
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, kv := range []binding.DType{binding.F32, binding.F16} {
			for _, flash := range []bool{false, true} {
				for i, c := range append(append([]bandCase{}, full...), sliding...) {
					ring := i >= len(full)
					form := map[string]func(joined, *bench) *binding.Tensor{}
					if !flash {
						form["window"] = func(ds joined, b *bench) *binding.Tensor { return ds[0].buildWindow(b, kv, 0) }
					}
					if c.nQ <= 8 && !ring {
						form["scatter"] = func(ds joined, b *bench) *binding.Tensor { return ds.buildScatter(b, kv, flash) }
					}
					if c.nQ <= 8 && ring {
						form["cells"] = func(ds joined, b *bench) *binding.Tensor { return ds.buildCells(b, kv, flash) }
					}
					for name, build := range form {
						for _, seqs := range []int{1, 3} {
							if seqs > 1 && name == "window" {
								continue
							}
							t.Run(fmt.Sprintf("%s/%s/flash=%v/%s x%d", name, kv, flash, c, seqs), func(t *testing.T) {
								result := fmt.Sprintf("%s form, %s cache", name, kv)
								if flash {
									result += ", flash"
								}
								testBand(t, be, c, seqs, result, bandTolerance(kv, flash), build)
							})
						}
					}
				}
			}
		}
	})
}

// testBand compares seqs sequences of different lengths, computed at once, each with its own reference.
func testBand(t *testing.T, be *binding.Backend, c bandCase, seqs int, result string, tolerance float64, build func(joined, *bench) *binding.Tensor) {
	b := newBench(t, be)
	var ds joined
	for s := range seqs {
		c := c
		c.pos = c.pos * (seqs - s) / seqs
		d := newBandData(b, c)
		if s > 0 {
			d.proj = ds[0].proj
		}
		ds = append(ds, d)
	}
	got := b.run(build(ds, b))[0]
	per := c.nQ * c.nHead * c.dh
	for s, d := range ds {
		one := got[s*per : (s+1)*per]
		closeTo(t, fmt.Sprintf("%s: sequence %d", result, s), one, d.ref(true), tolerance)
		// The control: without the bias the result is another one, so the bias was really there.
		if d.pos > 0 && farthest(one, d.ref(false)) < 0.05 {
			t.Errorf("the bias changes nothing: the test shows nothing")
		}
	}
}

func farthest(got []float32, want []float64) float64 {
	worst := 0.0
	for i := range got {
		worst = max(worst, math.Abs(float64(got[i])-want[i]))
	}
	return worst
}

// TestBandWindowBlocks: cutting a prefill into blocks of queries changes nothing.
func TestBandWindowBlocks(t *testing.T) {
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	testutil.OnDevice(t, be.Device().Name(), be.Device().Description())
	for _, block := range []int64{1, 7, 50} {
		b := newBench(t, be)
		d := newBandData(b, bandCase{32, 8, 2, 8, 32, 0, 40, 50})
		got := b.run(d.buildWindow(b, binding.F32, block))
		closeTo(t, "attention", got[0], d.ref(true), 5e-6)
	}
}

// TestBandRelKeyCounts: one query behind key counts around the edges of
// windows, buckets and tiles, over a full cache and over a ring.
func TestBandRelKeyCounts(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, keys := range []int{1, 2, 15, 16, 17, 255, 256, 257, 258, 259, 260, 261, 511, 512, 513, 1023, 1024, 1025, 4096} {
			for _, flash := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d keys/flash=%v", keys, flash), func(t *testing.T) {
					full := bandCase{16, 4, 2, 16, 512, 0, keys - 1, 1}
					testBand(t, be, full, 1, "key counts, full", bandTolerance(binding.F16, flash), func(ds joined, b *bench) *binding.Tensor {
						return ds.buildScatter(b, binding.F16, flash)
					})
					sliding := bandCase{16, 4, 2, 8, 64, 64, keys - 1, 1}
					testBand(t, be, sliding, 1, "key counts, ring", bandTolerance(binding.F16, flash), func(ds joined, b *bench) *binding.Tensor {
						return ds.buildCells(b, binding.F16, flash)
					})
				})
			}
		}
	})
}

// TestBandRelFar: one query behind 65,535 and behind 1,048,575 keys. The bias
// is strong, so that a few near keys outweigh all others.
func TestBandRelFar(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		for _, pos := range []int{65535, 1048575} {
			c := bandCase{16, 2, 1, 16, 1024, 0, pos, 1}
			t.Run(c.String(), func(t *testing.T) {
				b := newBench(t, be)
				d := newBandData(b, c)
				for i := range d.r {
					d.r[i] *= 8
				}
				got := b.run(joined{d}.buildScatter(b, binding.F16, true))[0]
				closeTo(t, "attention", got, d.ref(true), 3e-2) // half an ulp of a bias of 32 to 64 is 0.016
				if farthest(got, d.ref(false)) < 0.2 {
					t.Error("the bias changes nothing: the test shows nothing")
				}
			})
		}
	})
}

// TestBandWindowHeads: kv heads one by one give the same as all at once.
func TestBandWindowHeads(t *testing.T) {
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		c := bandCase{64, 8, 4, 16, 40, 0, 60, 20}
		testBand(t, be, c, 1, "head by head", 5e-6, func(ds joined, b *bench) *binding.Tensor {
			d := ds[0]
			a, projrev, mask, first := d.windowOperands(b, binding.F32)
			var out *binding.Tensor
			for h := range a.K.Dim(2) {
				o := bandWindow(b.g, a.head(b.g, h), projrev, mask, first, 7)
				if out == nil {
					out = o
				} else {
					out = b.g.Concat(out, o, 0)
				}
			}
			return out
		})
	})
}
