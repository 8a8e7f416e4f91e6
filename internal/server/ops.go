package server

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// opsRoutes are the ones for the people who run the server.
func (s *Server) opsRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/{$}", open: true, handle: s.root},
		{method: http.MethodGet, path: "/health", open: true, handle: s.health},
		{method: http.MethodGet, path: "/metrics", handle: s.serveMetrics},
	}
}

// root tells Ollama's clients, who look for this text or for any answer at all,
// that the server is there, and shows browsers the page.
func (s *Server) root(w http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := fmt.Fprint(w, "Ollama is running")
		return err
	}
	if s.opt.Page != nil {
		s.opt.Page.ServeHTTP(w, r)
		return nil
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := fmt.Fprintf(w, "<!doctype html><title>inkling-run</title><h1>inkling-run %s</h1>", html.EscapeString(s.opt.Version))
	return err
}

// health answers 200 while the server takes requests and need not wait for its
// first model.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	status, text := http.StatusOK, "ok"
	switch {
	case s.draining.Load():
		status, text = http.StatusServiceUnavailable, "shutting down"
	case s.pool.onlyLoading():
		status, text = http.StatusServiceUnavailable, "loading a model"
	}
	writeJSON(w, status, map[string]string{"status": text})
	return nil
}
