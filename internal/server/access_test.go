package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAPIKey(t *testing.T) {
	o := testOptions(t)
	o.APIKeys = []string{"first", "second"}
	s, _ := newTestServer(t, o)
	for _, tt := range []struct {
		name, path, header, value string
		want                      int
	}{
		{"none", "/v1/models", "", "", 401},
		{"wrong", "/v1/models", "Authorization", "Bearer third", 401},
		{"beginning of one", "/v1/models", "Authorization", "Bearer firs", 401},
		{"empty", "/v1/models", "Authorization", "Bearer ", 401},
		{"another scheme", "/v1/models", "Authorization", "Basic first", 401},
		{"bearer", "/v1/models", "Authorization", "Bearer first", 200},
		{"the second", "/v1/models", "authorization", "bearer second", 200},
		{"Anthropic's header", "/v1/models", "X-Api-Key", "first", 200},
		{"health without", "/health", "", "", 200},
		{"probe without", "/", "", "", 200},
		{"metrics without", "/metrics", "", "", 401},
		{"metrics", "/metrics", "Authorization", "Bearer first", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, tt.path, nil)
			if tt.header != "" {
				req.Header.Set(tt.header, tt.value)
			}
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, req)
			if rec.Code != tt.want {
				t.Errorf("status %d, want %d: %s", rec.Code, tt.want, rec.Body)
			}
			if tt.want == 401 {
				if _, _, _, code := errorOf(t, rec.Body.Bytes()); code != "invalid_api_key" || strings.Contains(rec.Body.String(), "third") {
					t.Errorf("answered %s", rec.Body)
				}
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	o := testOptions(t)
	o.AllowOrigins = []string{"https://example.org"}
	s, _ := newTestServer(t, o)
	for _, tt := range []struct {
		origin string
		want   int
	}{
		{"", 200},
		{"http://localhost:3000", 200},
		{"https://127.0.0.1", 200},
		{"http://[::1]:8080", 200},
		{"http://server.test", 200}, // the server's own
		{"app://obsidian.md", 200},
		{"https://example.org", 200},
		{"https://EXAMPLE.org", 200},
		{"https://example.org.evil.test", 403},
		{"https://evil.test", 403},
		{"http://localhost.evil.test", 403},
		{"null", 403},
	} {
		t.Run(tt.origin, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, "http://server.test/v1/models", nil)
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, req)
			if rec.Code != tt.want {
				t.Errorf("status %d, want %d", rec.Code, tt.want)
			}
			allowed := ""
			if tt.want == 200 {
				allowed = tt.origin
			}
			if got := rec.Header().Get("Access-Control-Allow-Origin"); got != allowed {
				t.Errorf("allowed %q, want %q", got, allowed)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	o := testOptions(t)
	o.APIKeys = []string{"key"} // browsers ask without it
	s, _ := newTestServer(t, o)
	req := httptest.NewRequest(http.MethodOptions, "/v1/chat/completions", nil)
	req.Header.Set("Origin", "http://localhost:3000")
	req.Header.Set("Access-Control-Request-Method", "POST")
	req.Header.Set("Access-Control-Request-Headers", "authorization, x-stainless-os")
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, req)
	if h := rec.Header(); rec.Code != 204 || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") || h.Get("Access-Control-Allow-Headers") != "authorization, x-stainless-os" {
		t.Errorf("status %d, header %v", rec.Code, h)
	}
}

// TestHosts: a name of somebody else's that leads to the loopback address is no
// way in.
func TestHosts(t *testing.T) {
	o := testOptions(t)
	o.Loopback = true
	s, _ := newTestServer(t, o)
	for host, want := range map[string]int{
		"127.0.0.1:11434": 200, "localhost": 200, "localhost:1": 200, "[::1]:11434": 200, "mybox": 200, "mybox.local": 200, "host.docker.internal:11434": 200,
		"evil.test": 403, "evil.test:11434": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test": 403,
	} {
		req := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
		req.Host = host
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		if rec.Code != want {
			t.Errorf("%s: status %d, want %d", host, rec.Code, want)
		}
	}
}
