package binding_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/mapped"
)

// TestReadAhead: of two banks of 8 experts, one page each, 3 experts are chosen by
// 2 rows of 2; they are counted once a bank, and in memory when they are chosen again.
func TestReadAhead(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("needs mincore")
	}
	page := int64(os.Getpagesize())
	const experts = 8
	path := filepath.Join(t.TempDir(), "banks")
	if err := os.WriteFile(path, make([]byte, 2*experts*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	be, err := binding.NewBackend(binding.CPU(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	mem := be.NewWeights(2)
	defer mem.Close()
	mapping, err := mem.Map(f.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var banks []*binding.Tensor
	for i := range int64(2) {
		b, err := mem.NewOn(nil, "bank", binding.F32, page/4/8, 8, experts)
		if err != nil {
			t.Fatal(err)
		}
		if err := mapping.Place(b, i*experts*page); err != nil {
			t.Fatal(err)
		}
		banks = append(banks, b)
	}
	if _, ok := be.Reads(); ok {
		t.Error("counts before CountReads")
	}
	be.CountReads()

	g := be.NewGraph(16)
	defer g.Close()
	x, ids := g.Input("x", binding.F32, page/4/8, 1, 2), g.Input("ids", binding.I32, 2, 2)
	g.ReadAhead(ids, banks...)
	for _, b := range banks {
		g.Output(g.MulMatID(b, x, ids))
	}
	a := be.NewAllocator()
	defer a.Close()
	if err := g.Alloc(a); err != nil {
		t.Fatal(err)
	}
	x.SetFloats(make([]float32, x.Elems()))
	ids.SetInt32s([]int32{5, 1, 7, 5})
	for round := range 2 {
		before, _ := be.Reads()
		if err := g.Compute(); err != nil {
			t.Fatal(err)
		}
		after, ok := be.Reads()
		did := after.Sub(before)
		if want := 2 * 3 * page; !ok || did.Chosen != want || round > 0 && did.Resident != want || did.Resident > want {
			t.Errorf("round %d: %+v, want %d bytes chosen, and all of them in memory the second time", round, did, want)
		}
	}
}

// TestHitRate: nothing chosen is nothing missed.
func TestHitRate(t *testing.T) {
	if got := (binding.Reads{}).HitRate(); got != 1 {
		t.Errorf("of nothing: %g, want 1", got)
	}
	if got := (binding.Reads{Chosen: 8, Resident: 6}).HitRate(); got != 0.75 {
		t.Errorf("6 of 8: %g, want 0.75", got)
	}
}
