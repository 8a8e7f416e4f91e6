package binding_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

func cpu(t testing.TB) *binding.Backend {
	t.Helper()
	be, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

// TestLargeExpertTensor reads the last expert of a bank of more than 2^31
// elements: an index of 32 bits would look elsewhere.
func TestLargeExpertTensor(t *testing.T) {
	const k, m, experts = 512, 256, 1<<31/(512*256) + 3
	be := cpu(t)
	mem := be.NewMemory(1)
	defer mem.Close()
	bank, err := mem.New("bank", binding.F16, k, m, experts)
	if err != nil {
		t.Fatal(err)
	}
	if bank.Elems() <= 1<<31 {
		t.Fatalf("%d elements only", bank.Elems())
	}
	if err := mem.Alloc(); err != nil { // zero pages: next to nothing of it is ever touched
		t.Fatal(err)
	}
	one := make([]byte, 2*k) // a row of 1.0 in F16
	for i := range k {
		one[2*i+1] = 0x3c
	}
	for row := range int64(m) { // the last expert: row r is r%8 ones
		bank.SetBytes(one[:2*(row%8)], bank.Bytes()-(int64(m)-row)*2*k)
	}
	g := be.NewGraph(8)
	defer g.Close()
	x, ids := g.Input("x", binding.F32, k, 1, 1), g.Input("ids", binding.I32, 2, 1)
	y := g.Output(g.MulMatID(bank, x, ids))
	al := be.NewAllocator()
	defer al.Close()
	if err := g.Alloc(al); err != nil {
		t.Fatal(err)
	}
	ones := make([]float32, k)
	for i := range ones {
		ones[i] = 1
	}
	x.SetFloats(ones)
	ids.SetInt32s([]int32{experts - 1, 5})
	if err := g.Compute(); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 2*m)
	y.Floats(got)
	for row := range m {
		if got[row] != float32(row%8) || got[m+row] != 0 {
			t.Fatalf("row %d: %g of the last expert and %g of an empty one, want %d and 0", row, got[row], got[m+row], row%8)
		}
	}
}

// TestMisuse: what ggml would abort on is a ShapeError that names the operands.
func TestMisuse(t *testing.T) {
	be := cpu(t)
	for name, build := range map[string]func(g *binding.Graph, a, b *binding.Tensor){
		"mul_mat":    func(g *binding.Graph, a, b *binding.Tensor) { g.MulMat(a, b) },
		"add":        func(g *binding.Graph, a, b *binding.Tensor) { g.Add(a, b) },
		"get_rows":   func(g *binding.Graph, a, b *binding.Tensor) { g.GetRows(a, b) },
		"set_rows":   func(g *binding.Graph, a, b *binding.Tensor) { g.SetRows(a, b, b) },
		"concat":     func(g *binding.Graph, a, b *binding.Tensor) { g.Concat(a, b, 0) },
		"reshape":    func(g *binding.Graph, a, _ *binding.Tensor) { g.Reshape(a, 5) },
		"view":       func(g *binding.Graph, a, _ *binding.Tensor) { g.Rows(a, 2, 2) },
		"permute":    func(g *binding.Graph, a, _ *binding.Tensor) { g.Permute(a, 0, 0, 1, 2) },
		"tensor_set": func(_ *binding.Graph, a, _ *binding.Tensor) { a.SetFloats(make([]float32, 13)) },
		"input":      func(g *binding.Graph, _, _ *binding.Tensor) { g.Input("x", binding.Q8_0, 33) },
		"graph": func(g *binding.Graph, a, _ *binding.Tensor) {
			for range 100 {
				g.Add(a, a)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := be.NewGraph(16)
			defer g.Close()
			a, b := g.Input("left", binding.F32, 4, 3), g.Input("right", binding.F32, 5, 2)
			err := binding.Guard(func() { build(g, a, b) })
			var shape *binding.ShapeError
			if !errors.As(err, &shape) || !strings.HasPrefix(shape.Op, name) {
				t.Errorf("error %v, want a ShapeError of %s", err, name)
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	be := cpu(t)
	g := be.NewGraph(8)
	defer g.Close()
	x := g.Input("x", binding.F32, 8)
	y := g.Output(g.Scale(x, 2))
	al := be.NewAllocator()
	defer al.Close()
	if err := g.Alloc(al); err != nil {
		t.Fatal(err)
	}
	in := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	x.SetFloats(in)
	be.Interrupt()
	if err := g.Compute(); !errors.Is(err, binding.ErrInterrupted) {
		t.Errorf("interrupted: error %v", err)
	}
	be.Resume()
	x.SetFloats(in) // a graph may reuse the memory of its inputs
	if err := g.Compute(); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 8)
	if y.Floats(got); got[7] != 16 {
		t.Errorf("computed %v", got)
	}
}

func TestMemoryErrors(t *testing.T) {
	be := cpu(t)
	mem := be.NewMemory(1)
	defer mem.Close()
	for _, ne := range [][]int64{{}, {0}, {1, 1, 1, 1, 1}, {1 << 40, 1 << 40}, {-1}} {
		if _, err := mem.New("x", binding.F32, ne...); err == nil {
			t.Errorf("shape %v: no error", ne)
		}
	}
	if _, err := mem.New("x", binding.DType(4), 32); err == nil { // a type that ggml removed
		t.Error("type 4: no error")
	}
	if _, err := mem.New("x", binding.F32, 1<<58); err != nil {
		t.Fatal(err)
	}
	if err := mem.Alloc(); err == nil {
		t.Error("2^60 bytes were allocated")
	}
}
