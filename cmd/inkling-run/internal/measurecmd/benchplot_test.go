package measurecmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/inkling-go/inkling/internal/bench"
	"github.com/inkling-go/inkling/internal/plot"
)

// TestThroughput: prompts and guesses are left out, depths are lines, and what was
// not measured is no point.
func TestThroughput(t *testing.T) {
	nan := blank(1)[0]
	got := throughput(&benchReport{Threads: 2, Models: []benchModel{{Name: "m", Results: []bench.Result{
		{Prompt: 8, Parallel: 2, Mean: 9},
		{Generate: 4, Parallel: 4, Mean: 20},
		{Generate: 4, Parallel: 1, Mean: 10},
		{Generate: 4, Parallel: 1, Draft: 1, Mean: 99},
		{Generate: 4, Parallel: 4, Depth: 16, Mean: 5},
	}}}})
	want := []plot.Panel{{
		Title: "m, 2 threads, by sequences at once", YLabel: "tokens a second, log scale", Places: []string{"1", "4"}, Values: true,
		Lines: []plot.Line{
			{Name: "depth 0", Colour: plot.Colour(0), Y: []float64{10, 20}},
			{Name: "depth 16", Colour: plot.Colour(1), Y: []float64{nan, 5}},
		},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("panels (-want +got):\n%s", diff)
	}
}
