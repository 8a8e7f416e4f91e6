package server

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/store"
)

// ollamaShown is the answer of /api/show.
type ollamaShown struct {
	License       string               `json:"license,omitempty"`
	Modelfile     string               `json:"modelfile,omitempty"`
	Parameters    string               `json:"parameters,omitempty"`
	Template      string               `json:"template,omitempty"`
	System        string               `json:"system,omitempty"`
	Details       ollamaDetails        `json:"details"`
	Messages      []store.Message      `json:"messages,omitempty"`
	ModelInfo     map[string]any       `json:"model_info"`
	ProjectorInfo map[string]any       `json:"projector_info,omitempty"`
	Tensors       []store.HeaderTensor `json:"tensors,omitempty"`
	Capabilities  []string             `json:"capabilities"`
	Modified      time.Time            `json:"modified_at"`
}

// Keys of GGUF that are shown in a place of their own.
const (
	keyTemplate = "tokenizer.chat_template"
	keyTokens   = "tokenizer.ggml.tokens"
)

// ollamaShow is POST /api/show.
func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		ollamaName
		System  string `json:"system"`
		Verbose bool   `json:"verbose"`
	}
	if err := readJSON(r, &req); err != nil {
		return err
	}
	m, err := s.catalog.resolve(req.name())
	if err != nil {
		return err
	}
	d, err := m.details()
	if err != nil {
		return err
	}
	header, err := store.ReadHeader(m.Path)
	if err != nil {
		return err
	}
	shown := &ollamaShown{
		Details: ollamaDetailsOf(d), Modified: m.Modified, ModelInfo: shownKeys(header.Keys, req.Verbose),
		Capabilities: capabilities(d, header),
	}
	shown.ModelInfo["general.parameter_count"] = d.Parameters
	shown.Template, _ = header.Keys[keyTemplate].(string)
	if req.Verbose {
		shown.Tensors = header.Tensors
	}
	if m.MMProj != "" {
		projector, err := store.ReadHeader(m.MMProj)
		if err != nil {
			return err
		}
		shown.ProjectorInfo = shownKeys(projector.Keys, req.Verbose)
	}
	if err := shown.stored(m); err != nil {
		return err
	}
	if req.System != "" {
		shown.System = req.System
	}
	writeJSON(w, http.StatusOK, shown)
	return nil
}

// stored adds what a Modelfile says.
func (o *ollamaShown) stored(m *Model) (err error) {
	if m.Stored == nil {
		o.Modelfile = "FROM " + m.Path + "\n"
		return nil
	}
	o.License, o.System, o.Messages = strings.Join(m.Stored.License, "\n"), m.Stored.System, m.Stored.Messages
	if m.Stored.Template != "" {
		o.Template = m.Stored.Template
	}
	var lines []string
	m.Stored.Params.Each(func(name, text string) { lines = append(lines, fmt.Sprintf("%-30s %s", name, text)) })
	o.Parameters = strings.Join(lines, "\n")
	o.Modelfile, err = m.Stored.Modelfile()
	return err
}

// maxShownList bounds the lists of a header that are shown: a vocabulary is some
// megabytes of JSON, which clients ask for by verbose.
const maxShownList = 16

// shownKeys are the keys of a header; long lists are null, as Ollama has them.
func shownKeys(keys map[string]any, verbose bool) map[string]any {
	shown := map[string]any{}
	for key, v := range keys {
		if key == keyTemplate {
			continue
		}
		if list := reflect.ValueOf(v); !verbose && list.Kind() == reflect.Slice && list.Len() > maxShownList {
			v = nil
		}
		shown[key] = v
	}
	return shown
}

// capabilities are what a model can do, in Ollama's words.
func capabilities(d store.Details, h *store.Header) []string {
	all := []string{"completion"}
	tokens, _ := h.Keys[keyTokens].([]string)
	tools, thinking := chat.Abilities(func(t string) bool { return slices.Contains(tokens, t) })
	for _, c := range []struct {
		name string
		has  bool
	}{{"vision", d.Vision}, {"audio", d.Audio}, {"tools", tools}, {"thinking", thinking}} {
		if c.has {
			all = append(all, c.name)
		}
	}
	return all
}
