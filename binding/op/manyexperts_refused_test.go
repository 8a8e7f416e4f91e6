package op

import (
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestManyExpertsRefused: what the kernels for experts of many rows do not take is left to the
// composition. Each case is one step away from the first, which they take.
func TestManyExpertsRefused(t *testing.T) {
	const q5_0, q2K = binding.DType(6), binding.DType(10)
	q4K, q6K, q8 := fusedTypes["q4_K"], fusedTypes["q6_K"], fusedTypes["q8_0"]
	taken := refusedExperts{k: 512, ff: 256, embd: 512, experts: 4, gate: q4K, up: q4K, down: q8}
	eachDevice(t, func(t *testing.T, be *binding.Backend) {
		tiles := be.Device().Fuses() && multipliesTiles(t, be)
		for _, c := range []struct {
			name   string
			change func(c *refusedExperts)
			taken  bool
		}{
			{"nothing wrong", func(*refusedExperts) {}, true},
			{"as many experts as are sorted by", func(c *refusedExperts) { c.experts = mostOrdered }, true},
			{"one expert more", func(c *refusedExperts) { c.experts = mostOrdered + 1 }, false},
			{"rows of gate and up no multiple of 256", func(c *refusedExperts) { c.k, c.gate, c.up = 544, q8, q8 }, false},
			{"rows of down no multiple of 256", func(c *refusedExperts) { c.ff = 288 }, false},
			{"rows of down no multiple of 32", func(c *refusedExperts) { c.embd = 520 }, false},
			{"gate and up q2_K", func(c *refusedExperts) { c.gate, c.up = q2K, q2K }, false},
			{"down q5_0", func(c *refusedExperts) { c.down = q5_0 }, false},
			{"down mxfp4", func(c *refusedExperts) { c.down = fusedTypes["mxfp4"] }, false},
			{"gate and up F16", func(c *refusedExperts) { c.gate, c.up = binding.F16, binding.F16 }, false},
			{"down F16", func(c *refusedExperts) { c.down = binding.F16 }, false},
			{"gate and up of different types", func(c *refusedExperts) { c.up = q6K }, false},
			{"shared experts, of any type", func(c *refusedExperts) { c.shared, c.sh = 1, q5_0 }, true},
			{"rows of x with gaps", func(c *refusedExperts) { c.xGap = 4 }, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				layer := taken
				c.change(&layer)
				if got, want := layer.fused(t, be), c.taken && tiles; got != want {
					t.Errorf("taken: %t, want %t", got, want)
				}
			})
		}
	})
}

// refusedExperts is a layer whose parts need not fit the kernels.
type refusedExperts struct {
	k, ff, embd, experts, shared, xGap int64
	gate, up, down, sh                 binding.DType
}

// fused reports whether FusedExperts takes the layer for more than a few rows. Its tensors are declared
// and have no memory.
func (c refusedExperts) fused(t *testing.T, be *binding.Backend) bool {
	const n, used = maxFusedChoices + 1, 2
	b := newBench(t, be)
	bank := func(name string, typ binding.DType, ne ...int64) *binding.Tensor {
		w, err := b.mem.New(name, typ, ne...)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	x := b.g.Input("x", binding.F32, c.k+c.xGap, n)
	if c.xGap > 0 {
		x = b.g.Cols(x, 0, c.k)
	}
	gate, up, down := bank("gate", c.gate, c.k, c.ff, c.experts), bank("up", c.up, c.k, c.ff, c.experts), bank("down", c.down, c.ff, c.embd, c.experts)
	var gateSh, upSh, downSh *binding.Tensor
	if c.shared > 0 {
		gateSh, upSh, downSh = bank("gate_sh", c.sh, c.k, c.ff, c.shared), bank("up_sh", c.sh, c.k, c.ff, c.shared), bank("down_sh", c.sh, c.ff, c.embd, c.shared)
	}
	_, ok := FusedExperts(b.g, x, b.g.Input("ids", binding.I32, used, n), b.g.Input("weights", binding.F32, used+c.shared, n), gate, up, down, gateSh, upSh, downSh)
	return ok
}
