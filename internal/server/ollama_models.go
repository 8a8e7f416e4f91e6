package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/inkling-go/inkling/internal/store"
)

// ollamaDetails is what Ollama's lists say about a model.
type ollamaDetails struct {
	ParentModel       string   `json:"parent_model"`
	Format            string   `json:"format"`
	Family            string   `json:"family"`
	Families          []string `json:"families"`
	ParameterSize     string   `json:"parameter_size"`
	QuantizationLevel string   `json:"quantization_level"`
}

func ollamaDetailsOf(d store.Details) ollamaDetails {
	return ollamaDetails{
		Format: "gguf", Family: d.Architecture, Families: []string{d.Architecture},
		ParameterSize: parameterSize(d.Parameters), QuantizationLevel: d.Quantization,
	}
}

// parameterSize writes a number of weights as people do: 8.0B.
func parameterSize(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if float64(n) >= unit.size {
			return fmt.Sprintf("%.1f%s", float64(n)/unit.size, unit.name)
		}
	}
	return fmt.Sprint(n)
}

// details are those of a model of the store, or read from the file.
func (m *Model) details() (store.Details, error) {
	if m.Stored != nil {
		return m.Stored.Details, nil
	}
	return store.FileDetails(m.Path, m.MMProj)
}

// digest tells models apart. That of a file is of what the file system says about
// it: its content may be hundreds of gigabytes.
func (m *Model) digest() string {
	if m.Stored != nil {
		return m.Stored.Digest
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", m.Path, m.Size, m.Modified.UnixNano()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ollamaModel is a model in a list.
type ollamaModel struct {
	Name     string        `json:"name"`
	Model    string        `json:"model"`
	Size     int64         `json:"size"` // of the files; of a running one in memory
	Digest   string        `json:"digest"`
	Details  ollamaDetails `json:"details"`
	Modified *time.Time    `json:"modified_at,omitempty"` // of /api/tags

	*ollamaLoaded // of /api/ps
}

// ollamaLoaded is what only a model in memory has.
type ollamaLoaded struct {
	Expires  time.Time `json:"expires_at"`
	SizeVRAM int64     `json:"size_vram"`
	Context  int       `json:"context_length"`
}

func ollamaModelOf(m *Model) (ollamaModel, error) {
	d, err := m.details()
	return ollamaModel{Name: m.Name, Model: m.Name, Size: m.Size, Digest: m.digest(), Details: ollamaDetailsOf(d)}, err
}

// ollamaTags is GET /api/tags.
func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) error {
	all := []ollamaModel{}
	for _, m := range s.catalog.list() {
		j, err := ollamaModelOf(m)
		if err != nil {
			s.log.Warn("a model cannot be listed", "model", m.Name, "error", err)
			continue
		}
		j.Modified = &m.Modified
		all = append(all, j)
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": all})
	return nil
}

// forever is how far away the end of a model is that stays for ever.
const forever = 100 * 365 * 24 * time.Hour

// ollamaRunning is GET /api/ps.
func (s *Server) ollamaRunning(w http.ResponseWriter, _ *http.Request) error {
	all := []ollamaModel{}
	for _, r := range s.pool.list() {
		j, err := ollamaModelOf(r.Model)
		if err != nil {
			s.log.Warn("the details of a model cannot be read", "model", r.Name, "error", err)
		}
		m := r.Stats.Memory
		j.Size = m.Weights + m.Cache + m.Compute
		j.ollamaLoaded = &ollamaLoaded{Expires: r.Expires, SizeVRAM: r.VRAM, Context: r.Context}
		if r.Expires.IsZero() {
			keep := r.KeepAlive // from now, if it is at work
			if keep < 0 {
				keep = forever
			}
			j.Expires = time.Now().Add(keep)
		}
		all = append(all, j)
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": all})
	return nil
}
