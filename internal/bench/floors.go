package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/inkling-go/inkling/binding"
)

// Floors compares a step with what it can not be faster than.
type Floors struct {
	Test  string  `json:"test"`
	Step  float64 `json:"step_s"`          // seconds
	Bare  float64 `json:"products_s"`      // seconds of its matrix products alone, on the same memory
	Bytes int64   `json:"bytes,omitempty"` // what a step reads; 0 for prompts, which compute more than they read
	Nodes int     `json:"nodes"`

	Ops []OpTime `json:"ops"` // the most expensive first
}

// OpTime is the time of the nodes of one operation in a step, run alone.
type OpTime struct {
	Op      string  `json:"op"`
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"s"`
}

// products are the operations that multiply by weights or by keys and values.
var products = []string{"MUL_MAT", "MUL_MAT_ID", "PRODUCT", "EXPERTS", "FLASH_ATTN_EXT"}

// Floors measures steps of rows rows behind depth others, and the same matrix
// products bare: the nodes of the step's graph alone. Both are the best of rounds
// that take turns, so that what else the machine does hits both. With one thread
// time is the processor's, which counts that thread only.
func (s *Subject) Floors(ctx context.Context, o Options, rows, depth, rounds int) (*Floors, error) {
	if len(s.be.Parts()) > 1 || !s.be.Device().IsCPU() {
		return nil, fmt.Errorf("device %s: floors are those of the CPU alone", s.device)
	}
	runtime.LockOSThread() // whose time is taken
	defer runtime.UnlockOSThread()
	t := test{prompt: rows, depth: depth}
	if rows == 1 {
		t = test{generate: 1, depth: depth}
	}
	c, err := s.model.NewCache(1, depth+rows, o.KV)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	st := &stepper{ctx: ctx, m: s.model, c: c, ubatch: o.UBatch, logits: make([]float32, s.model.Config().Vocab), ids: make([][]int32, 1)}
	if err := st.prompts(depth); err != nil {
		return nil, err
	}
	start := c.Checkpoint(0)
	var graph *binding.Graph
	s.be.Watch = func(g *binding.Graph) { graph = g }
	defer func() { s.be.Watch = nil }()
	step := func() (float64, error) {
		b := st.batch(0, rows)
		began := s.now()
		err := st.forward(b)
		took := s.now() - began
		if err == nil && depth > 0 {
			err = c.Restore(0, start)
		} else {
			c.Reset(0)
		}
		return took, err
	}
	if _, err := step(); err != nil { // builds the graph
		return nil, err
	}
	s.be.Watch = nil
	f := &Floors{Test: t.String(), Step: math.Inf(1), Bare: math.Inf(1), Nodes: graph.Nodes()}
	if rows == 1 {
		f.Bytes = s.Costs.perToken(depth, 1)
	}
	bare, err := graph.Only(products...)
	if err != nil {
		return nil, err
	}
	defer bare.Close()
	for range rounds {
		took, err := step()
		if err != nil {
			return nil, err
		}
		f.Step = min(f.Step, took)
		if took, err = s.compute(ctx, bare.Graph); err != nil {
			return nil, err
		}
		f.Bare = min(f.Bare, took)
	}
	f.Ops, err = s.breakdown(ctx, graph, rounds)
	return f, err
}

// untimed are the operations that compute nothing, and those that go by indices:
// whatever has overwritten these by the end of the step leads anywhere.
var untimed = []string{"VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE", "NONE", "GET_ROWS", "SET_ROWS"}

// breakdown times the nodes of each operation alone.
func (s *Subject) breakdown(ctx context.Context, g *binding.Graph, rounds int) ([]OpTime, error) {
	var ops []OpTime
	for op, n := range g.Ops() {
		if slices.Contains(untimed, op) {
			continue
		}
		best, err := s.alone(ctx, g, op, rounds)
		if err != nil {
			return nil, err
		}
		ops = append(ops, OpTime{op, n, best})
	}
	slices.SortFunc(ops, func(a, b OpTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return ops, nil
}

// alone is the best time of the nodes of one operation.
func (s *Subject) alone(ctx context.Context, g *binding.Graph, op string, rounds int) (float64, error) {
	one, err := g.Only(op)
	if err != nil {
		return 0, err
	}
	defer one.Close()
	best := math.Inf(1)
	for range rounds {
		took, err := s.compute(ctx, one.Graph)
		if err != nil {
			return 0, err
		}
		best = min(best, took)
	}
	return best, nil
}

func (s *Subject) compute(ctx context.Context, g *binding.Graph) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	began := s.now()
	err := g.Compute()
	return s.now() - began, err
}

// now is a time in seconds: the thread's own of one thread, that of the clock else.
func (s *Subject) now() float64 {
	if s.threads == 1 {
		if t, ok := threadTime(); ok {
			return t
		}
	}
	return time.Since(epoch).Seconds()
}

var epoch = time.Now()
