package binding_test

import (
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestPlanner measures more than any machine has, and what a graph on it takes:
// as much as beside memory that is there.
func TestPlanner(t *testing.T) {
	real := cpu(t)
	planner, err := binding.NewPlanner(binding.CPU())
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()

	huge := planner.NewMemory(1)
	defer huge.Close()
	x, err := huge.New("cells", binding.F16, 1<<20, 1<<25)
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Alloc(); err != nil {
		t.Fatal(err)
	}
	if got := huge.Size(); got != 2<<45 {
		t.Errorf("%d bytes, want %d", got, 2<<45)
	}
	x.SetBytes([]byte{1, 2}, 0)
	x.ZeroBytes(1<<30, 1<<40)
	if got := []byte{7}; func() bool { x.ReadBytes(got, 0); return got[0] != 7 }() {
		t.Error("a read changes what there is nothing for")
	}

	measure := func(be *binding.Backend) (graph, mem int64) {
		t.Helper()
		m := be.NewMemory(1)
		defer m.Close()
		w, err := m.New("w", binding.F32, 64, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Alloc(); err != nil {
			t.Fatal(err)
		}
		g := be.NewGraph(8)
		defer g.Close()
		in := g.Input("in", binding.F32, 64, 3)
		g.Output(g.Scale(g.MulMat(g.View(w, [4]int64{64, 500, 1, 1}, 256, 256*500, 256*500, 0), in), 2))
		return g.Measure(), m.Size()
	}
	wantGraph, wantMem := measure(real)
	gotGraph, gotMem := measure(planner)
	if gotGraph != wantGraph || gotMem != wantMem {
		t.Errorf("planned %d and %d bytes, want %d and %d", gotGraph, gotMem, wantGraph, wantMem)
	}
	if got := planner.Lacks(); len(got) > 0 {
		t.Errorf("the CPU lacks %v", got)
	}
	if wantGraph < 4*500*3 || wantGraph > 4*(2*500*3+64*3)+4096 {
		t.Errorf("a graph of 64*3 inputs and 500*3 results takes %d bytes", wantGraph)
	}
}
