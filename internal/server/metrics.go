package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Upper bounds of the histograms, in seconds.
var (
	requestSeconds = []float64{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	firstSeconds   = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	tokenSeconds   = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}
)

// metrics counts what the server has done since it began.
type metrics struct {
	mu       sync.Mutex
	requests map[requestLabels]uint64
	routes   map[string]*histogram
	models   map[string]*modelMetrics
}

type requestLabels struct{ route, status string }

// modelMetrics are those of one model, loaded or not.
type modelMetrics struct {
	answers                                    map[string]uint64 // by the reason of their end
	prompt, cached, hits, generated, reasoning uint64
	firstToken, nextToken                      *histogram
}

func newMetrics() *metrics {
	return &metrics{requests: map[requestLabels]uint64{}, routes: map[string]*histogram{}, models: map[string]*modelMetrics{}}
}

// request counts an HTTP request.
func (m *metrics) request(route string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[requestLabels{route, strconv.Itoa(status)}]++
	h := m.routes[route]
	if h == nil {
		h = newHistogram(requestSeconds)
		m.routes[route] = h
	}
	h.observe(took.Seconds())
}

// with calls f with the counters of a model.
func (m *metrics) with(model string, f func(*modelMetrics)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mm := m.models[model]
	if mm == nil {
		mm = &modelMetrics{answers: map[string]uint64{}, firstToken: newHistogram(firstSeconds), nextToken: newHistogram(tokenSeconds)}
		m.models[model] = mm
	}
	f(mm)
}

// answered counts an answer, whole or not; end is why it ended.
func (m *metrics) answered(model string, a *answer, end string) {
	m.with(model, func(mm *modelMetrics) {
		mm.answers[end]++
		mm.prompt += uint64(a.PromptTokens)
		mm.cached += uint64(a.Cached)
		if a.Cached > 0 {
			mm.hits++
		}
		mm.generated += uint64(a.GeneratedTokens)
		mm.reasoning += uint64(a.ReasoningTokens)
	})
}

// serveMetrics is GET /metrics.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) error {
	var x exposition
	s.metrics.write(&x)
	writePool(&x, s.pool.list())
	writeHeap(&x)
	writeRuntime(&x)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := w.Write(x.b.Bytes())
	return err
}

func (m *metrics) write(x *exposition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.family("inkling_http_requests_total", "counter", "Requests by route and status.")
	for _, l := range slices.SortedFunc(maps.Keys(m.requests), func(a, b requestLabels) int {
		return cmp.Or(strings.Compare(a.route, b.route), strings.Compare(a.status, b.status))
	}) {
		x.sample("inkling_http_requests_total", float64(m.requests[l]), "route", l.route, "status", l.status)
	}
	x.family("inkling_http_request_seconds", "histogram", "Time from the request to the end of the answer.")
	for _, route := range slices.Sorted(maps.Keys(m.routes)) {
		x.histogram("inkling_http_request_seconds", m.routes[route], "route", route)
	}
	names := slices.Sorted(maps.Keys(m.models))
	x.family("inkling_answers_total", "counter", "Answers by the reason of their end.")
	for _, name := range names {
		for _, end := range slices.Sorted(maps.Keys(m.models[name].answers)) {
			x.sample("inkling_answers_total", float64(m.models[name].answers[end]), "model", name, "finish_reason", end)
		}
	}
	for _, c := range []struct {
		name, help string
		value      func(*modelMetrics) uint64
	}{
		{"inkling_prompt_tokens_total", "Tokens of prompts, the cached ones included.", func(m *modelMetrics) uint64 { return m.prompt }},
		{"inkling_cached_tokens_total", "Tokens of prompts that had not to be computed again.", func(m *modelMetrics) uint64 { return m.cached }},
		{"inkling_cache_hits_total", "Answers whose prompt was partly there.", func(m *modelMetrics) uint64 { return m.hits }},
		{"inkling_generated_tokens_total", "Tokens of answers.", func(m *modelMetrics) uint64 { return m.generated }},
		{"inkling_reasoning_tokens_total", "Tokens of answers that the model thought.", func(m *modelMetrics) uint64 { return m.reasoning }},
	} {
		x.family(c.name, "counter", c.help)
		for _, name := range names {
			x.sample(c.name, float64(c.value(m.models[name])), "model", name)
		}
	}
	x.family("inkling_time_to_first_token_seconds", "histogram", "Time until an answer begins, waiting included.")
	for _, name := range names {
		x.histogram("inkling_time_to_first_token_seconds", m.models[name].firstToken, "model", name)
	}
	x.family("inkling_time_per_token_seconds", "histogram", "Time from one token of an answer to the next.")
	for _, name := range names {
		x.histogram("inkling_time_per_token_seconds", m.models[name].nextToken, "model", name)
	}
}

// writePool writes what the loaded models are at.
func writePool(x *exposition, models []running) {
	x.family("inkling_models_loaded", "gauge", "Models in memory.")
	x.sample("inkling_models_loaded", float64(len(models)))
	for _, g := range []struct {
		name, help string
		value      func(*running) int
	}{
		{"inkling_requests_active", "Sequences at work.", func(r *running) int { return r.Stats.Active }},
		{"inkling_requests_waiting", "Requests that wait for a sequence.", func(r *running) int { return r.Stats.Waiting }},
		{"inkling_requests_held", "HTTP requests that hold the model in memory.", func(r *running) int { return r.Busy }},
	} {
		x.family(g.name, "gauge", g.help)
		for i := range models {
			x.sample(g.name, float64(g.value(&models[i])), "model", models[i].Name)
		}
	}
	x.family("inkling_batch_sequences", "histogram", "Steps of the model by the number of sequences in them, since it was loaded.")
	for _, r := range models {
		x.histogram("inkling_batch_sequences", batchHistogram(r.Stats.Batches), "model", r.Name)
	}
	for _, g := range []struct {
		name, help string
		counts     func(*running) []int
	}{
		{"inkling_drafted_tokens_total", "Guesses of next tokens that were checked, by how far ahead they were.", func(r *running) []int { return r.Stats.Drafts.Drafted }},
		{"inkling_accepted_tokens_total", "Those of them that were right.", func(r *running) []int { return r.Stats.Drafts.Accepted }},
	} {
		x.family(g.name, "counter", g.help)
		for i := range models {
			for depth, n := range g.counts(&models[i]) {
				x.sample(g.name, float64(n), "model", models[i].Name, "depth", strconv.Itoa(depth+1))
			}
		}
	}
	x.family("inkling_memory_bytes", "gauge", "Memory of loaded models, outside of Go's heap.")
	for _, r := range models {
		for _, m := range []struct {
			kind  string
			bytes int64
		}{
			{"weights", r.Stats.Memory.Weights},
			{"cache", r.Stats.Memory.Cache},
			{"compute", r.Stats.Memory.Compute},
			{"saved", r.Stats.Memory.Saved},
		} {
			x.sample("inkling_memory_bytes", float64(m.bytes), "model", r.Name, "kind", m.kind)
		}
	}
	x.family("inkling_experts_read_bytes_total", "counter", "Experts that were chosen of models larger than memory, by whether they were in memory then.")
	for _, r := range models {
		if reads := r.Stats.Reads; reads.Chosen > 0 {
			x.sample("inkling_experts_read_bytes_total", float64(reads.Resident), "model", r.Name, "from", "memory")
			x.sample("inkling_experts_read_bytes_total", float64(reads.Chosen-reads.Resident), "model", r.Name, "from", "disk")
		}
	}
}

// batchHistogram makes a histogram of steps counted by exact size.
func batchHistogram(bySize []uint64) *histogram {
	h := newHistogram(nil)
	h.counts = h.counts[:0]
	for size, n := range bySize {
		h.bounds = append(h.bounds, float64(size))
		h.counts = append(h.counts, n)
		h.sum += float64(size) * float64(n)
	}
	h.counts = append(h.counts, 0)
	return h
}
