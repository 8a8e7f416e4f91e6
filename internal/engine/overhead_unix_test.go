//go:build unix

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/inkling-go/inkling/binding"
)

// BenchmarkOverhead compares what a token of the trained checkpoint takes, all that the
// engine does for it with one thread, with computing the graph of the same step alone:
// processor time of the process, best of rounds in which they take turns. A prompt is
// in both lengths of an answer and so not in their difference.
func BenchmarkOverhead(b *testing.B) {
	const short, long = 32, 288
	e := openWith(b, Options{})
	var graph *binding.Graph
	e.be.Watch = func(g *binding.Graph) { graph = g }
	answer := func(n int) time.Duration {
		r := endless(e)
		r.MaxTokens = n
		before := processorTime(b)
		if _, err := e.Generate(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - before
	}
	best := [3]time.Duration{time.Hour, time.Hour, time.Hour} // short, long, graphs alone
	for b.Loop() {
		best[0], best[1] = min(best[0], answer(short)), min(best[1], answer(long))
		before := processorTime(b)
		for range long - short { // the engine is idle, and its owner waits
			if err := graph.Compute(); err != nil {
				b.Fatal(err)
			}
		}
		best[2] = min(best[2], processorTime(b)-before)
	}
	step, alone := float64(best[1]-best[0]), float64(best[2])
	b.ReportMetric(step/(long-short)/1e3, "µs/step")
	b.ReportMetric(alone/(long-short)/1e3, "µs/graph")
	b.ReportMetric(1-alone/step, "overhead")
	b.ReportMetric(0, "ns/op")
}
