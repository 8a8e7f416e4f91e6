package server

import (
	"cmp"
	"net/http"
)

// ollamaVersion is the version of Ollama whose API this is. Its clients compare it
// with the one that brought what they need.
const ollamaVersion = "0.24.0"

// ollamaRoutes are those of Ollama's API.
func (s *Server) ollamaRoutes() []route {
	routes := []route{
		{method: http.MethodPost, path: "/api/chat", handle: s.ollamaChat},
		{method: http.MethodPost, path: "/api/generate", handle: s.ollamaGenerate},
		{method: http.MethodPost, path: "/api/embed", handle: s.ollamaEmbed},
		{method: http.MethodPost, path: "/api/embeddings", handle: s.ollamaEmbeddings},
		{method: http.MethodGet, path: "/api/tags", handle: s.ollamaTags},
		{method: http.MethodGet, path: "/api/ps", handle: s.ollamaRunning},
		{method: http.MethodPost, path: "/api/show", handle: s.ollamaShow},
		{method: http.MethodGet, path: "/api/version", handle: s.ollamaVersion},
		{method: http.MethodPost, path: "/api/pull", handle: s.ollamaPull},
		{method: http.MethodPost, path: "/api/push", handle: s.ollamaPush},
		{method: http.MethodPost, path: "/api/create", handle: s.ollamaCreate},
		{method: http.MethodPost, path: "/api/copy", handle: s.ollamaCopy},
		{method: http.MethodDelete, path: "/api/delete", handle: s.ollamaDelete},
		{method: http.MethodHead, path: "/api/blobs/{digest}", handle: s.ollamaHasBlob},
		{method: http.MethodPost, path: "/api/blobs/{digest}", handle: s.ollamaPutBlob, large: true},
	}
	for i := range routes {
		routes[i].dialect = ollama
	}
	return routes
}

// ollamaVersion is GET /api/version.
func (s *Server) ollamaVersion(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"version": ollamaVersion, "server": s.opt.Version})
	return nil
}

// ollamaName is the model of a request; the older clients write name.
type ollamaName struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

func (n *ollamaName) name() string { return cmp.Or(n.Model, n.Name) }
