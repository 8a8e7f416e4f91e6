//go:build unix

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/inkling-go/inkling/binding"
)

// BenchmarkOverhead compares what a token of the trained checkpoint takes, all that the
// engine does for it with one thread, with computing the nodes of the same step alone,
// but those that go by indices, whose operands are overwritten by then: processor time
// of the process, best of rounds in which they take turns. A prompt is in both lengths of
// an answer and so not in their difference.
func BenchmarkOverhead(b *testing.B) {
	const short, long = 32, 288
	e := openWith(b, Options{})
	answer := func(n int) time.Duration {
		r := endless(e)
		r.MaxTokens = n
		before := processorTime(b)
		if _, err := e.Generate(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - before
	}
	var step *binding.Graph
	e.be.Watch = func(g *binding.Graph) { step = g }
	answer(short)
	e.be.Watch = nil // the engine is idle
	var ops []string
	for op := range step.Ops() {
		if op != "GET_ROWS" && op != "SET_ROWS" {
			ops = append(ops, op)
		}
	}
	alone, err := step.Only(ops...)
	if err != nil {
		b.Fatal(err)
	}
	defer alone.Close()
	best := [3]time.Duration{time.Hour, time.Hour, time.Hour} // short, long, nodes alone
	for b.Loop() {
		best[0], best[1] = min(best[0], answer(short)), min(best[1], answer(long))
		before := processorTime(b)
		for range long - short {
			if err := alone.Compute(); err != nil {
				b.Fatal(err)
			}
		}
		best[2] = min(best[2], processorTime(b)-before)
	}
	token, graph := float64(best[1]-best[0])/(long-short), float64(best[2])/(long-short)
	b.ReportMetric(token/1e3, "µs/token")
	b.ReportMetric(graph/1e3, "µs/graph")
	b.ReportMetric(1-graph/token, "overhead")
	b.ReportMetric(0, "ns/op")
}
