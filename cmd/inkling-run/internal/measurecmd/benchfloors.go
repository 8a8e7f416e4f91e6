package measurecmd

import (
	"context"
	"fmt"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/bench"
)

// printFloors compares the steps of the tests with one sequence with their floors.
func (o *benchOptions) floors(ctx context.Context, s *bench.Subject) (all []*bench.Floors, err error) {
	rounds := 8 * o.bench.Repeat
	add := func(rows, depth, rounds int) {
		if err != nil {
			return
		}
		var f *bench.Floors
		if f, err = s.Floors(ctx, o.bench, rows, depth, rounds); err == nil {
			all = append(all, f)
		}
	}
	for _, depth := range o.bench.Depth {
		for _, n := range o.bench.Prompt {
			add(min(n, o.bench.UBatch), depth, max(2, rounds/8))
		}
		if len(o.bench.Generate) > 0 {
			add(1, depth, rounds)
		}
	}
	return all, err
}

// printFloors prints what a model's steps are compared with.
func printFloors(p *report.Printer, m *benchModel, bandwidth float64) {
	for _, f := range m.Floors {
		title := fmt.Sprintf("%s, a step of %s: %.2f ms, its %d nodes alone:", m.Name, f.Test, 1e3*f.Step, f.Nodes)
		p.Table(title, func(row func(...string)) {
			row("part", "nodes", "ms", "of the step")
			part := func(name, nodes string, seconds float64) {
				row(name, nodes, fmt.Sprintf("%.2f", 1e3*seconds), fmt.Sprintf("%.1f %%", 100*seconds/f.Step))
			}
			part("matrix products bare", "", f.Bare)
			if bandwidth > 0 && f.Bytes > 0 {
				part("bytes at the memory's speed", "", float64(f.Bytes)/bandwidth)
			}
			for _, op := range f.Ops {
				part(op.Op, fmt.Sprint(op.Nodes), op.Seconds)
			}
		})
	}
}
