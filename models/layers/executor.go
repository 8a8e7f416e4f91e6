// Package layers holds what the graphs of two or more models share: graphs that
// are kept and reused, key-value caches, and feed-forward blocks.
package layers

import (
	"github.com/inkling-go/inkling/binding"
)

// Step is one built graph with the code that fills its inputs from an argument.
type Step[A any] struct {
	Graph *binding.Graph
	Fill  func(A)
	Outs  []*binding.Tensor // F32 or I32, contiguous; what Run reads back as F32, nil for nothing
}

// Executor keeps built graphs. Steps of equal shape share a graph, so that a
// decode step costs the host no more than its inputs. Three are kept, each with
// memory of its own: one of many rows, and two of few, which take little of it.
// Prefill, decode steps and steps that check guesses then take turns without
// building anything anew.
type Executor[K comparable, A any] struct {
	be    *binding.Backend
	slots [3]slot[K, A] // the first is for many rows
	last  int           // the slot of few rows that was used last
}

type slot[K comparable, A any] struct {
	key   K
	step  *Step[A]
	alloc *binding.Allocator
}

// NewExecutor returns an executor without graphs.
func NewExecutor[K comparable, A any](be *binding.Backend) *Executor[K, A] {
	return &Executor[K, A]{be: be}
}

// Run computes the step that key stands for with the inputs of arg and copies
// its results to outs, one for each of Step.Outs. build is called if no kept
// graph has that key.
func (e *Executor[K, A]) Run(key K, few bool, arg A, outs [][]float32, build func() *Step[A]) error {
	s := e.slot(key, few)
	if s.step == nil || s.key != key {
		if s.step != nil {
			s.step.Graph.Close()
			s.step = nil
		}
		var step *Step[A]
		if err := binding.Guard(func() { step = build() }); err != nil {
			return err
		}
		if s.alloc == nil {
			s.alloc = e.be.NewAllocator()
		}
		if err := step.Graph.Alloc(s.alloc); err != nil {
			step.Graph.Close()
			return err
		}
		s.key, s.step = key, step
	}
	s.step.Fill(arg)
	if err := s.step.Graph.Compute(); err != nil {
		return err
	}
	for i, t := range s.step.Outs {
		if t != nil {
			e.read(t, outs[i])
		}
	}
	return nil
}

// slot is where the graph of key is, or is to be.
func (e *Executor[K, A]) slot(key K, few bool) *slot[K, A] {
	if !few {
		return &e.slots[0]
	}
	for i := 1; i < len(e.slots); i++ {
		if s := &e.slots[i]; s.step != nil && s.key == key {
			e.last = i
			return s
		}
	}
	e.last = 1 + e.last%(len(e.slots)-1)
	return &e.slots[e.last]
}

// read copies a result; ids become numbers, exact below 1<<24.
func (e *Executor[K, A]) read(t *binding.Tensor, dst []float32) {
	if t.Type() != binding.I32 {
		e.be.Read(t, dst)
		return
	}
	ids := make([]int32, len(dst))
	t.Int32s(ids)
	for i, id := range ids {
		dst[i] = float32(id)
	}
}

// Room is n values in dst's memory, or in new memory if its capacity is not enough. What
// they are is undefined.
func Room[T any](dst []T, n int) []T {
	if cap(dst) < n {
		return make([]T, n)
	}
	return dst[:n]
}

// Measure is the memory that the results of a graph would take. Nothing is
// allocated.
func Measure[A any](build func() *Step[A]) (n int64, err error) {
	err = binding.Guard(func() {
		step := build()
		n = step.Graph.Measure()
		step.Graph.Close()
	})
	return n, err
}

// Splits is the number of parts that the kept graphs are cut into, at most.
func (e *Executor[K, A]) Splits() int {
	n := 1
	for _, s := range e.slots {
		if s.step != nil {
			n = max(n, s.step.Graph.Splits())
		}
	}
	return n
}

// Bytes is the memory of the kept graphs.
func (e *Executor[K, A]) Bytes() int64 {
	n := int64(0)
	for _, s := range e.slots {
		if s.alloc != nil {
			n += s.alloc.Size()
		}
	}
	return n
}

// Close frees the kept graphs.
func (e *Executor[K, A]) Close() {
	for i := range e.slots {
		if s := &e.slots[i]; s.step != nil {
			s.step.Graph.Close()
			s.step = nil
		}
		e.slots[i].alloc.Close()
	}
}
