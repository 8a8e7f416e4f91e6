package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/engine"
)

// TestDraftMetrics: guesses are counted by model and by how far ahead they were.
func TestDraftMetrics(t *testing.T) {
	var x exposition
	writePool(&x, []running{
		{Model: &Model{Name: "a"}, Stats: engine.Stats{Drafts: engine.Drafts{Rounds: 7, Drafted: []int{7, 5}, Accepted: []int{5, 1}}}},
		{Model: &Model{Name: "b"}},
	})
	var got []string
	for line := range strings.Lines(x.b.String()) {
		if strings.HasPrefix(line, "inkling_drafted") || strings.HasPrefix(line, "inkling_accepted") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`inkling_drafted_tokens_total{model="a",depth="1"} 7`,
		`inkling_drafted_tokens_total{model="a",depth="2"} 5`,
		`inkling_accepted_tokens_total{model="a",depth="1"} 5`,
		`inkling_accepted_tokens_total{model="a",depth="2"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}
