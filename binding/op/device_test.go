package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
)

// eachDevice runs f on every device of this build and machine; INKLING_BACKENDS
// names the folder of GPU modules.
func eachDevice(t *testing.T, f func(t *testing.T, be *binding.Backend)) {
	t.Helper()
	binding.LoadModules()
	for _, d := range binding.Devices() {
		t.Run(d.Name(), func(t *testing.T) {
			be, err := binding.NewBackend(d, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer be.Close()
			testutil.OnDevice(t, d.Name(), d.Description())
			f(t, be)
		})
	}
}

// bench builds one graph with persistent tensors and inputs, and runs it.
type bench struct {
	t   testing.TB
	mem *binding.Memory
	g   *binding.Graph
	rng *rand.Rand
	set []func()
}

func newBench(t testing.TB, be *binding.Backend) *bench {
	b := &bench{t: t, mem: be.NewMemory(64), g: be.NewGraph(2048), rng: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() { b.g.Close(); b.mem.Close() })
	return b
}

func product(ne []int64) int {
	n := int64(1)
	for _, v := range ne {
		n *= v
	}
	return int(n)
}

// floats draws values in ±scale.
func (b *bench) floats(scale float32, ne ...int64) []float32 {
	x := make([]float32, product(ne))
	for i := range x {
		x[i] = (b.rng.Float32()*2 - 1) * scale
	}
	return x
}

// persistent declares a tensor that outlives the graph and holds x.
func (b *bench) persistent(t binding.DType, x []float32, ne ...int64) *binding.Tensor {
	b.t.Helper()
	p, err := b.mem.New(fmt.Sprint("p", len(b.set)), t, ne...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.set = append(b.set, func() {
		if t == binding.F16 {
			p.SetBytes(f16Bytes(x), 0)
			return
		}
		p.SetFloats(x)
	})
	return p
}

func (b *bench) input(x []float32, ne ...int64) *binding.Tensor {
	p := b.g.Input(fmt.Sprint("x", len(b.set)), binding.F32, ne...)
	b.set = append(b.set, func() { p.SetFloats(x) })
	return p
}

func (b *bench) inputI32(x []int32, ne ...int64) *binding.Tensor {
	p := b.g.Input(fmt.Sprint("x", len(b.set)), binding.I32, ne...)
	b.set = append(b.set, func() { p.SetInt32s(x) })
	return p
}

func (b *bench) inputI64(x []int64, ne ...int64) *binding.Tensor {
	p := b.g.Input(fmt.Sprint("x", len(b.set)), binding.I64, ne...)
	b.set = append(b.set, func() { p.SetInt64s(x) })
	return p
}

// ready gives the graph of outs memory and data; step computes it. It fails if the
// device lacks a kernel for any node.
func (b *bench) ready(outs ...*binding.Tensor) (step, done func()) {
	b.t.Helper()
	for _, o := range outs {
		b.g.Output(o)
	}
	if ops := b.g.Unsupported(); len(ops) > 0 {
		if d := b.g.Device(); !d.IsCPU() && onlyFlash(ops) { // models ask before, and take the exact form
			b.t.Skipf("%s has no kernel for %v", d.Name(), ops)
		}
		b.t.Fatalf("no kernel for %v", ops)
	}
	if err := b.mem.Alloc(); err != nil {
		b.t.Fatal(err)
	}
	al := b.g.Backend().NewAllocator()
	if err := b.g.Alloc(al); err != nil {
		al.Close()
		b.t.Fatal(err)
	}
	for _, s := range b.set {
		s()
	}
	return func() {
		if err := b.g.Compute(); err != nil {
			b.t.Fatal(err)
		}
	}, al.Close
}

// run computes outs once.
func (b *bench) run(outs ...*binding.Tensor) [][]float32 {
	b.t.Helper()
	step, done := b.ready(outs...)
	defer done()
	step()
	var res [][]float32
	for _, o := range outs {
		x := make([]float32, o.Elems())
		if o.Type() == binding.I32 {
			ids := make([]int32, o.Elems())
			o.Int32s(ids)
			for i, v := range ids {
				x[i] = float32(v)
			}
		} else {
			o.Floats(x)
		}
		res = append(res, x)
	}
	return res
}

// onGPU chooses a tolerance: CUDA's sines, powers and exponentials are the fast ones.
func onGPU(be *binding.Backend, cpu, gpu float64) float64 {
	if be.Device().IsCPU() {
		return cpu
	}
	return gpu
}

func onlyFlash(ops []string) bool {
	return !slices.ContainsFunc(ops, func(op string) bool { return !strings.HasPrefix(op, "FLASH_ATTN_EXT ") })
}

// closeTo fails at the largest difference above abs. In what, ": " comes before
// what tells cases of one result apart.
func closeTo(t *testing.T, what string, got []float32, want []float64, abs float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	worst, at, sum := -1.0, 0, 0.0
	for i := range got {
		d := math.Abs(float64(got[i]) - want[i])
		if !(d <= worst) { // also NaN
			worst, at = d, i
		}
		sum += d
	}
	testutil.RecordError(t, what, len(got), worst, sum/float64(len(got)), testutil.Tol{Abs: abs})
	if !(worst <= abs) {
		t.Errorf("%s: element %d is %g, want %g (|difference| %.3g > %.3g)", what, at, got[at], want[at], worst, abs)
	}
}

// f16Bytes rounds x, whose values are small multiples of 1/1024, to F16; it is exact for them.
func f16Bytes(x []float32) []byte {
	b := make([]byte, 2*len(x))
	for i, v := range x {
		h := f16(v)
		b[2*i], b[2*i+1] = byte(h), byte(h>>8)
	}
	return b
}

// f16 converts a normal number of F16's range, truncating.
func f16(v float32) uint16 {
	u := math.Float32bits(v)
	sign := uint16(u >> 16 & 0x8000)
	exp := int(u>>23&255) - 127 + 15
	if v == 0 || exp <= 0 {
		return sign
	}
	return sign | uint16(exp)<<10 | uint16(u>>13&0x3ff)
}
