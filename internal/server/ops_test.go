package server

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scrape reads /metrics and checks each line against the text format.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	line := regexp.MustCompile(`^([a-z_]+)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? (\S+)$`)
	comment := regexp.MustCompile(`^# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))$`)
	samples := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if comment.MatchString(lines.Text()) {
			continue
		}
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Errorf("line %q", lines.Text())
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Errorf("line %q: %v", lines.Text(), err)
		}
		if _, twice := samples[m[1]+m[2]]; twice {
			t.Errorf("%s%s twice", m[1], m[2])
		}
		samples[m[1]+m[2]] = v
	}
	return samples
}

func TestMetrics(t *testing.T) {
	_, h := newTestServer(t, testOptions(t))
	body := `{` + greedy + `,"messages":[{"role":"user","content":"What is the capital of France?"}]}`
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", body, &resp)
	askOK(t, h, "/v1/chat/completions", body, &resp)
	ask(t, h, "/v1/chat/completions", `{}`)
	ask(t, h, "/nothing", `{}`)
	got := scrapeIdle(t, h.URL)
	for name, want := range map[string]float64{
		`inkling_http_requests_total{route="/v1/chat/completions",status="200"}`:      2,
		`inkling_http_requests_total{route="/v1/chat/completions",status="400"}`:      1,
		`inkling_http_requests_total{route="other",status="404"}`:                     1,
		`inkling_http_request_seconds_count{route="/v1/chat/completions"}`:            3,
		`inkling_http_request_seconds_bucket{route="/v1/chat/completions",le="+Inf"}`: 3,
		`inkling_answers_total{model="tiny",finish_reason="stop"}`:                    2,
		`inkling_prompt_tokens_total{model="tiny"}`:                                   46,
		`inkling_generated_tokens_total{model="tiny"}`:                                26,
		`inkling_cache_hits_total{model="tiny"}`:                                      1,
		`inkling_cached_tokens_total{model="tiny"}`:                                   float64(resp.Usage.PromptTokensDetails.CachedTokens),
		`inkling_time_to_first_token_seconds_count{model="tiny"}`:                     2,
		`inkling_time_per_token_seconds_count{model="tiny"}`:                          24,
		`inkling_models_loaded`:                                                       1,
		`inkling_requests_active{model="tiny"}`:                                       0,
		`inkling_requests_waiting{model="tiny"}`:                                      0,
		`inkling_requests_held{model="tiny"}`:                                         0,
		`inkling_batch_sequences_bucket{model="tiny",le="0"}`:                         0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{
		"go_goroutines", "process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total", "go_gc_heap_live_bytes", `inkling_memory_bytes{model="tiny",kind="weights"}`, `inkling_memory_bytes{model="tiny",kind="cache"}`,
		`inkling_batch_sequences_count{model="tiny"}`,
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

// scrapeIdle is scrape when the engine has taken stock of the last answer, which it may do
// after the answer's end has been sent.
func scrapeIdle(t *testing.T, url string) map[string]float64 {
	t.Helper()
	for range 1000 {
		if got := scrape(t, url); got[`inkling_requests_active{model="tiny"}`] == 0 {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the engine does not come to rest")
	return nil
}

func TestRoot(t *testing.T) {
	o := testOptions(t)
	o.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") })
	_, h := newTestServer(t, o)
	for _, tt := range []struct{ method, accept, want string }{
		{"GET", "", "Ollama is running"},
		{"GET", "*/*", "Ollama is running"},
		{"GET", "text/html,application/xhtml+xml", "page"},
		{"HEAD", "", ""},
	} {
		req, err := http.NewRequest(tt.method, h.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", tt.accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(data) != tt.want || !strings.HasPrefix(resp.Header.Get("X-Request-Id"), "req_") {
			t.Errorf("%s with Accept %q: status %d: %q, error %v", tt.method, tt.accept, resp.StatusCode, data, err)
		}
	}
}
