package measurecmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/bench"
)

// TestBenchHostExperts: models without experts in host memory are left out.
func TestBenchHostExperts(t *testing.T) {
	reads := binding.Reads{Chosen: 4 << 30, Resident: 1 << 30}
	got := benchHostExperts(&benchReport{Models: []benchModel{
		{Name: "a"},
		{Name: "b", Streaming: &binding.Streaming{Link: 55.2e9, CPU: 84e9, Rows: 40}},
		{Name: "c", Streaming: &binding.Streaming{Link: 1e9, CPU: 90e9}, Results: []bench.Result{{Test: "tg8", Reads: &bench.Reads{Reads: reads, HitRate: reads.HitRate()}}}},
	}})
	want := []string{
		"b: experts in host memory go to the GPU at 55.2 GB/s, the CPU multiplies them by a row at 84.0 GB/s: the GPU takes steps of 40 rows and more",
		"c: experts in host memory go to the GPU at 1.0 GB/s, the CPU multiplies them by a row at 90.0 GB/s: the GPU takes steps of no size",
		"c, tg8: of 4.0 GiB of experts that were chosen 25.0 % were in memory",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
