package binding_test

import (
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestParts computes through the scheduler, on two backends that are both the CPU's.
func TestParts(t *testing.T) {
	be, err := binding.NewBackends([]binding.Device{binding.CPU(), binding.CPU()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	parts := be.Parts()
	if len(parts) != 2 {
		t.Fatalf("%d parts, want 2", len(parts))
	}
	mem := be.NewWeights(2)
	defer mem.Close()
	a, err := mem.NewOn(parts[0], "a", binding.F32, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := mem.NewOn(parts[1], "b", binding.F32, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.Alloc(); err != nil {
		t.Fatal(err)
	}
	a.SetFloats([]float32{1, 2, 3, 4})
	b.SetFloats([]float32{0, 1, 1, 0}) // exchanges two values

	g := be.NewGraph(16)
	defer g.Close()
	x := g.Input("x", binding.F32, 2)
	g.On(parts[0])
	y := g.MulMat(a, x) // [1 2; 3 4]·(1, 1) = (3, 7)
	g.On(parts[1])
	z := g.MulMat(b, y)
	g.On(nil)
	out := g.Output(g.Scale(z, 2))
	al := be.NewAllocator()
	defer al.Close()
	if err := g.Alloc(al); err != nil {
		t.Fatal(err)
	}
	x.SetFloats([]float32{1, 1})
	if err := g.Compute(); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 2)
	out.Floats(got)
	if want := []float32{14, 6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := g.Splits(); got != 1 {
		t.Errorf("%d splits, want 1: the scheduler joins what reads the same memory", got)
	}
	if mem.Size() != mem.SizeOn(parts[0])+mem.SizeOn(parts[1]) || mem.SizeOn(parts[1]) == 0 {
		t.Errorf("%d bytes, of which %d and %d", mem.Size(), mem.SizeOn(parts[0]), mem.SizeOn(parts[1]))
	}

	be.Interrupt()
	if err := g.Compute(); err != binding.ErrInterrupted {
		t.Errorf("interrupted: %v, want %v", err, binding.ErrInterrupted)
	}
	be.Resume()
	if err := g.Compute(); err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

// TestPartsRefused: the CPU must be there, and last.
func TestPartsRefused(t *testing.T) {
	for _, devs := range [][]binding.Device{nil, {binding.CPU()}} {
		if be, err := binding.NewBackends(devs, 1); err == nil {
			be.Close()
			t.Errorf("%d devices: no error", len(devs))
		}
	}
}
