package layers

import "github.com/inkling-go/inkling/binding"

// OnTap is called with a named intermediate result. layer is -1 outside of layers.
type OnTap func(name string, layer int, shape [4]int64, values []float32)

// GraphTap is what Graph.OnTap has to be for a step that is tapped, else nil.
type GraphTap = func(g *binding.Graph, t *binding.Tensor, name string, layer int)

// RunStep is Run, or RunTapped if onTap is set.
func (e *Executor[K, A]) RunStep(key K, few bool, arg A, outs [][]float32, onTap OnTap, build func(GraphTap) *Step[A]) error {
	if onTap != nil {
		return RunTapped(e.be, arg, outs, onTap, build)
	}
	return e.Run(key, few, arg, outs, func() *Step[A] { return build(nil) })
}

// RunTapped computes one step on a graph of its own whose named results are
// kept, and calls onTap with each in the order of the graph: for comparing with
// reference values.
func RunTapped[A any](be *binding.Backend, arg A, outs [][]float32, onTap OnTap, build func(GraphTap) *Step[A]) error {
	type tap struct {
		t     *binding.Tensor
		name  string
		layer int
	}
	var taps []tap
	exec := NewExecutor[struct{}, A](be)
	defer exec.Close()
	err := exec.Run(struct{}{}, false, arg, outs, func() *Step[A] {
		return build(func(g *binding.Graph, t *binding.Tensor, name string, layer int) {
			taps = append(taps, tap{g.Output(g.Cont(t)), name, layer})
		})
	})
	if err != nil {
		return err
	}
	for _, t := range taps {
		values := make([]float32, t.t.Elems())
		exec.read(t.t, values)
		onTap(t.name, t.layer, t.t.Shape(), values)
	}
	return nil
}
