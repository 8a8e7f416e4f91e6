package inkling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// TestFusedSteps: steps of few rows of one and of several sequences, some of which
// are idle, behind prompts, behind rows that were taken back, and around the rings,
// give the CPU's logits on a device with fused operations.
func TestFusedSteps(t *testing.T) {
	be := newBackend(t)
	if !be.Device().Fuses() {
		t.Skipf("%s has no fused operations", be.Device().Name())
	}
	cpu, err := binding.NewBackend(binding.CPU(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cpu.Close)
	for name, files := range map[string]func(testing.TB) tinymodel.Files{"random": randomFiles, "trained": tinyFiles} {
		for _, kv := range []binding.DType{binding.F32, binding.F16} {
			t.Run(fmt.Sprint(name, "/", kv), func(t *testing.T) { testFusedSteps(t, openGGUF(t, files(t).Model), be, cpu, kv) })
		}
	}
}

func testFusedSteps(t *testing.T, file *gguf.File, devices, cpu *binding.Backend, kv binding.DType) {
	var ms [2]models.Model
	var cs [2]models.Cache
	for i, be := range []*binding.Backend{devices, cpu} {
		m, err := models.Open(file, models.Params{Backend: be})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		c, err := m.NewCache(4, 400, kv)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		ms[i], cs[i] = m, c
	}
	var ops map[string]int
	devices.Watch = func(g *binding.Graph) { ops = g.Ops() }
	defer func() { devices.Watch = nil }()
	// F16 keys differ in their last bit where the sums before them do, which may turn a
	// near tie of the router around: few steps may be off by an expert then.
	const most = 0.05
	steps, off := 0, 0
	compare := func(what string, got, want []float32) {
		t.Helper()
		steps++
		if kv != binding.F16 {
			testutil.Close(t, what, got, want, testutil.Tol{Abs: 2e-3, Rel: 2e-3})
		} else if far := farthest(got, want); far > 0.1 {
			t.Logf("%s: off by %g", what, far)
			off++
		}
	}

	rng := rand.New(rand.NewPCG(7, 0))
	step := func(n int, seqs ...int) {
		t.Helper()
		var bs []models.Batch
		for _, seq := range seqs {
			b := models.Batch{Seq: seq, Outputs: []int32{int32(n - 1)}}
			for range n {
				b.Tokens = append(b.Tokens, rng.Int32N(100))
			}
			bs = append(bs, b)
		}
		var got [2][]float32
		for i, m := range ms {
			got[i] = make([]float32, len(seqs)*m.Config().Vocab)
			if err := m.Forward(cs[i], bs, models.Outputs{Logits: got[i]}); err != nil {
				t.Fatal(err)
			}
		}
		compare(fmt.Sprintf("%d rows of %v at %d", n, seqs, cs[0].Pos(seqs[0])), got[0], got[1])
		if n <= 16 && (ops["SSM_CONV"] > 0 || ops["CUSTOM"] == 0) {
			t.Errorf("%d rows of %v: a composition was taken: %v", n, seqs, ops)
		}
	}
	back := func(seq, rows int) {
		t.Helper()
		for _, c := range cs {
			if err := c.Truncate(seq, c.Pos(seq)-rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(1, 2) // from the beginning
	step(3, 2)
	step(40, 0)
	step(5, 1)
	step(150, 3)
	step(1, 0)
	step(1, 0, 1, 3) // 2 is idle
	step(3, 1, 3)
	step(8, 0)
	step(16, 3)
	step(5, 0, 1, 2, 3) // 20 rows: more than products take
	back(0, 7)
	step(2, 0, 3)
	back(3, 1)
	for range 60 { // a ring of the random model is shorter
		step(3, 3)
	}
	if float64(off) > most*float64(steps) {
		t.Errorf("%d of %d steps are off", off, steps)
	}
}

// farthest is the largest difference of two lists of values.
func farthest(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}
