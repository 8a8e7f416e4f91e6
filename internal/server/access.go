package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// authorize checks the key of a request, which OpenAI's and Ollama's clients send
// as a bearer token and Anthropic's in a header of its own.
func (s *Server) authorize(r *http.Request) error {
	if len(s.opt.APIKeys) == 0 {
		return nil
	}
	given := r.Header.Get("X-Api-Key")
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		given = strings.TrimSpace(token)
	}
	// Hashes, because the comparison takes constant time for equal lengths only.
	sum := sha256.Sum256([]byte(given))
	match := 0
	for _, key := range s.opt.APIKeys {
		want := sha256.Sum256([]byte(key))
		match |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	if match == 1 {
		return nil
	}
	e := &Error{Status: http.StatusUnauthorized, Code: codeInvalidKey, Message: "the API key is wrong"}
	if given == "" {
		e.Message = "an API key is needed: Authorization: Bearer KEY, or x-api-key: KEY"
	}
	return e
}

// localSchemes are those of programs of this machine that show web pages.
var localSchemes = []string{"app", "file", "tauri", "vscode-file", "vscode-webview"}

// crossOrigin keeps web pages of other hosts away from the server, whose requests
// a browser would make on behalf of whoever reads them, and answers the browser's
// questions about those that are allowed. It reports whether the request has been
// answered.
func (s *Server) crossOrigin(w *recorder, r *http.Request) bool {
	refuse := func(msg string) bool {
		dialectOf(r.URL.Path).writeError(w, &Error{Status: http.StatusForbidden, Message: msg})
		return true
	}
	if s.opt.Loopback && !localHost(r.Host) {
		return refuse("the host " + r.Host + " is not this machine")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	if !s.allowsOrigin(origin, r.Host) {
		return refuse("the origin " + origin + " is not allowed: --allow-origin allows it")
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
	// SDKs send a dozen headers of their own, new ones with each version.
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowsOrigin reports whether pages of an origin may use the server: its own,
// those of this machine, and those that were named.
func (s *Server) allowsOrigin(origin, host string) bool {
	if slices.ContainsFunc(s.opt.AllowOrigins, func(o string) bool { return o == "*" || strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	if slices.Contains(localSchemes, u.Scheme) || strings.EqualFold(u.Host, host) {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || err == nil && (a.IsLoopback() || a.IsUnspecified())
}

// localHost reports whether a Host header names this machine, or an address: a
// name of somebody else's that leads here is an attempt to pass for one of ours.
func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "" || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".docker.internal"}, func(s string) bool { return strings.HasSuffix(host, s) })
}
