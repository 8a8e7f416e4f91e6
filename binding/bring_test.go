//go:build cgo

package binding

import (
	"fmt"
	"slices"
	"testing"
)

// TestBring: rows come to the CPU as they are, whatever their distances, in one tensor.
// Beside another device what is expanded behind it is a part of its own, which that
// device begins before the CPU computes.
func TestBring(t *testing.T) {
	LoadModules()
	for _, main := range Devices() {
		for _, rows := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s, %d rows", main.Name(), rows), func(t *testing.T) { testBring(t, main, rows) })
		}
	}
}

func testBring(t *testing.T, main Device, rows int) {
	be, err := NewBackends([]Device{main, CPU()}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	const width, choices, used = 24, 7, 3
	g := be.NewGraph(64)
	defer g.Close()
	n := int64(rows)
	x, scores := g.Input("x", F32, width, n), g.Input("scores", F32, choices, n)
	ids := g.ArgsortTopK(scores, used)           // of more rows it lies apart
	best := g.Cols(g.Scale(scores, -1), 2, used) // likewise

	g.place.follows = be.host() // as Follow does for weights that lie there
	got := g.Bring(x, best, ids)
	g.place.follows = nil
	meanwhile := g.Scale(x, 2)
	g.Expand(meanwhile)
	g.place.follows = be.host()
	var outs []*Tensor
	for _, b := range got {
		outs = append(outs, g.Output(g.Cont(b)))
	}
	onCPU := g.Scale(outs[0], 3)
	g.place.follows = nil
	sum := g.Output(g.Add(meanwhile, onCPU))

	a := be.NewAllocator()
	defer a.Close()
	if err := g.Alloc(a); err != nil {
		t.Fatal(err)
	}
	if n := g.Ops()["BRING"]; n != 1 {
		t.Errorf("%d nodes that bring rows, want 1", n)
	}
	parts := 5 // rows, bring, meanwhile, what the CPU computes, sum
	if main.IsCPU() {
		parts = 1
	}
	if got := g.Splits(); got != parts {
		t.Errorf("%d parts, want %d", got, parts)
	}
	var xs, ss, wantBest, wantSum []float32
	var wantIDs []int32
	for r := range rows {
		for i := range width {
			v := float32(r) + float32(i)/32
			xs, wantSum = append(xs, v), append(wantSum, 5*v)
		}
		row := make([]float32, choices)
		for i := range row {
			row[i] = float32((i*3 + r) % choices) // all different
		}
		ss = append(ss, row...)
		for _, v := range row[2 : 2+used] {
			wantBest = append(wantBest, -v)
		}
		for k := range used {
			wantIDs = append(wantIDs, int32(slices.Index(row, float32(choices-1-k))))
		}
	}
	for range 3 { // run, recorded and replayed
		x.SetFloats(xs)
		scores.SetFloats(ss)
		if err := g.Compute(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			out  *Tensor
			want []float32
		}{{"rows", outs[0], xs}, {"columns", outs[1], wantBest}, {"sum", sum, wantSum}} {
			f := make([]float32, len(c.want))
			if c.out.Floats(f); !slices.Equal(f, c.want) {
				t.Errorf("%s: %v, want %v", c.name, f, c.want)
			}
		}
		f := make([]int32, len(wantIDs))
		if outs[2].Int32s(f); !slices.Equal(f, wantIDs) {
			t.Errorf("ids: %v, want %v", f, wantIDs)
		}
	}
}
