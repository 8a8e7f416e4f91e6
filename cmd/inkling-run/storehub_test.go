package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// startHub serves the models of the tests as two repositories of a hub, org/tiny
// and org/checkpoint, and pretends to be a server of Ollama's API that has
// tiny:latest in memory until it is told to stop.
func startHub() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/org/tiny/tree/main", func(w http.ResponseWriter, _ *http.Request) {
		entries, err := tinyEntries()
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(entries)
	})
	mux.HandleFunc("GET /api/models/org/checkpoint/tree/main", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"type":"file","path":"model.safetensors","size":1,"oid":"00"}]`)
	})
	mux.HandleFunc("GET /org/tiny/resolve/main/{file}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(models, r.PathValue("file")))
	})
	var stopped atomic.Bool
	mux.HandleFunc("GET /api/ps", func(w http.ResponseWriter, _ *http.Request) {
		if stopped.Load() {
			fmt.Fprint(w, `{"models":[]}`)
			return
		}
		fmt.Fprint(w, `{"models":[{"name":"tiny:latest","model":"tiny:latest","size":40800000,"digest":"0123456789abcdef","size_vram":0,"expires_at":"2318-01-01T00:00:00Z"}]}`)
	})
	mux.HandleFunc("POST /api/generate", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"keep_alive":0,"model":"tiny:latest","stream":false}` {
			http.Error(w, fmt.Sprintf(`{"error":"body %s"}`, strings.ReplaceAll(string(body), `"`, "'")), http.StatusBadRequest)
			return
		}
		stopped.Store(true)
		fmt.Fprint(w, `{"model":"tiny:latest","done":true,"done_reason":"unload"}`)
	})
	return httptest.NewServer(mux)
}

// tinyEntries lists the files of the trained model as the hub does.
func tinyEntries() ([]any, error) {
	paths, err := filepath.Glob(filepath.Join(models, "*tiny-F32.gguf"))
	if err != nil {
		return nil, err
	}
	var entries []any
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		entries = append(entries, map[string]any{
			"type": "file", "path": filepath.Base(path), "size": len(data), "oid": strings.Repeat("0", 40),
			"lfs": map[string]any{"oid": hex.EncodeToString(sum[:]), "size": len(data)},
		})
	}
	return entries, nil
}
