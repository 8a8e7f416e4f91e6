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

// TestHeapMetrics: C's heap has at least the keys and values of the loaded model in use,
// and no more in use than it holds.
func TestHeapMetrics(t *testing.T) {
	if _, ok := engine.Heap(); !ok {
		t.Skip("this C library does not say what its heap holds")
	}
	_, h := newTestServer(t, testOptions(t))
	ask(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"Hi there!"}]}`)
	got := scrape(t, h.URL)
	held, used, cache := got["inkling_heap_held_bytes"], got["inkling_heap_used_bytes"], got[`inkling_memory_bytes{model="tiny",kind="cache"}`]
	if cache <= 0 || used < cache || held < used {
		t.Errorf("%v bytes are held, of them %v in use, of them %v by the cache", held, used, cache)
	}
}
